//! Tokens of tasks.

use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::work::Issuing;

use super::{Of, Simulated};
use crate::world::World;

impl Simulated for Issuing {
    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        let key = of.key_with_dir(world)?;
        world.issue(&key, self);
        Ok(HookOutput::default())
    }
}
