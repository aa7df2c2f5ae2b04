//! Disks that go from one allocation to the next.

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::work::InheritDisk;

use super::{Of, Simulated};
use crate::check::{Checker, Verdict};
use crate::world::World;

impl Simulated for InheritDisk {
    fn delays_removal(&self) -> bool {
        false
    }

    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        if !world.dirs.allocs.contains(&of.alloc) {
            return Err(Failure::fatal("the allocation has no directory"));
        }
        world.dirs.inherit(of.alloc, &self.from);
        Ok(HookOutput::default())
    }

    fn check(&self, checker: &mut Checker, world: &World, agent: &Agent, of: &Of<'_>) -> Verdict {
        checker.directory_is_built_after_alloc_is_saved(world, of.alloc)?;
        checker.sticky_disk_moves_when_unused(world, agent, &self.from)
    }
}
