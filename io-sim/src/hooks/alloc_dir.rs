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
        checker.directory_is_built_after_alloc_is_saved(world, of.alloc)
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
        checker.destroying_is_saved_before_directory_removal(world, of.alloc)?;
        checker.directory_with_live_process_is_not_removed(world, of.alloc)
    }
}
