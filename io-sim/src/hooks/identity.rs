//! Tokens of tasks.

use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::model::authority::Authority;
use drover_core::op::Failure;
use drover_core::work::Issuing;

use super::{Of, Simulated};
use crate::check::{Checker, Verdict};
use crate::faults::Fault;
use crate::world::World;

impl Simulated for Arc<Issuing> {
    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        let key = of.key_with_dir(world)?;
        if self.authority == Authority::Servers
            && world.scene.fires(Fault::RefuseSigning, &of.entity)
        {
            return Err(Failure::recoverable("the servers do not sign"));
        }
        world.tokens.issue(world.scene.at, &key, self);
        Ok(HookOutput::default())
    }

    fn check(&self, checker: &mut Checker, world: &World, agent: &Agent, of: &Of<'_>) -> Verdict {
        let Some(key) = of.key() else {
            return Ok(());
        };
        checker.token_is_not_renewed_before_its_time(world, agent, of.op, &key, self)?;
        match self.authority {
            Authority::Servers => {
                checker.refused_signing_is_repeated_in_time(world, agent, of.op, &key)
            }
            Authority::Node => Ok(()),
        }
    }
}
