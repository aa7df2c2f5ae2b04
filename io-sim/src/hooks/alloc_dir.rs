//! Directories of allocations.

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::work::{BuildAllocDir, RemoveAllocDir};

use super::{Of, Simulated};
use crate::check::{Checker, Verdict};
use crate::world::World;

impl Simulated for BuildAllocDir {
    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        world.dirs.allocs.insert(of.alloc);
        Ok(HookOutput::default())
    }

    fn check(&self, checker: &mut Checker, world: &World, _: &Agent, of: &Of<'_>) -> Verdict {
        checker.directories_belong_to_what_is_saved(world, of.alloc)
    }
}

impl Simulated for RemoveAllocDir {
    fn delays_removal(&self) -> bool {
        false
    }

    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        world.dirs.remove(of.alloc);
        Ok(HookOutput::default())
    }

    fn check(&self, checker: &mut Checker, world: &World, _: &Agent, of: &Of<'_>) -> Verdict {
        checker.a_removal_is_remembered_first(world, of.alloc)?;
        checker.no_directory_is_removed_under_a_process(world, of.alloc)
    }
}
