//! What plugins give with their devices.

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::model::device::Mount;
use drover_core::op::Failure;
use drover_core::work::Reserve;

use super::{Of, Simulated};
use crate::check::{Checker, Verdict};
use crate::faults::Fault;
use crate::machine;
use crate::world::World;

impl Simulated for Reserve {
    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        let mut given = machine::reservation(&self.devices);
        if world.scene.fires(Fault::OddReservation, &of.entity) {
            given.mounts.push(Mount::default());
        }
        Ok(given)
    }

    fn check(&self, checker: &mut Checker, _: &World, agent: &Agent, of: &Of<'_>) -> Verdict {
        let Some(key) = of.key() else { return Ok(()) };
        checker.reserved_device_is_held(agent, &key, &self.devices)
    }
}
