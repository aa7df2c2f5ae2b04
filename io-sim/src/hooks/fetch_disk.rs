//! What another node gives of an allocation's disk.

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::work::FetchDisk;

use super::{Of, Simulated};
use crate::check::{Checker, Verdict};
use crate::remote::Remotes;
use crate::world::World;

impl Simulated for FetchDisk {
    fn can_be_cancelled(&self) -> bool {
        true
    }

    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        let World {
            scene,
            remotes,
            link,
            dirs,
            ..
        } = world;
        if self.previous.of_servers {
            return Remotes::node_gives(scene, link, dirs, &self.previous, of.alloc, &of.entity);
        }
        Ok(HookOutput {
            remote: remotes.give(scene, dirs, self.previous.alloc, of.alloc, &of.entity)?,
            ..HookOutput::default()
        })
    }

    fn check(&self, checker: &mut Checker, world: &World, _: &Agent, of: &Of<'_>) -> Verdict {
        checker.fetching_a_disk_is_given_up(of.alloc)?;
        checker.directory_is_built_after_alloc_is_saved(world, of.alloc)?;
        checker.disk_of_previous_node_is_fetched_when_unused(world, &self.previous)
    }
}
