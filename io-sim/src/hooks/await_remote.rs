//! What another node says of an allocation of it.

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::work::AskRemote;

use super::{Of, Simulated};
use crate::check::{Checker, Verdict};
use crate::world::World;

impl Simulated for AskRemote {
    fn can_be_cancelled(&self) -> bool {
        true
    }

    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        let World {
            scene,
            remotes,
            link,
            ..
        } = world;
        let remote = match self.previous.of_servers {
            true => Some(remotes.servers_say_of(scene, link, self.previous.alloc, &of.entity)?),
            false => remotes.answer(scene, self.previous.alloc, &of.entity, self.index)?,
        };
        Ok(HookOutput {
            remote,
            ..HookOutput::default()
        })
    }

    fn check(&self, checker: &mut Checker, world: &World, _: &Agent, of: &Of<'_>) -> Verdict {
        checker.question_to_other_node_follows_its_answer(of.alloc, of.op, self)?;
        checker.requests_to_other_nodes_have_a_backoff(world, of.alloc, &self.previous)
    }
}
