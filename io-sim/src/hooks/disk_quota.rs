//! Limits of disk space.

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::work::SetDiskQuota;

use super::{Of, Simulated};
use crate::check::{Checker, Verdict};
use crate::world::World;

impl Simulated for SetDiskQuota {
    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        if !world.dirs.allocs.contains(&of.alloc) {
            return Err(Failure::fatal("the allocation has no directory"));
        }
        world.dirs.quotas.insert(of.alloc, self.bytes);
        Ok(HookOutput::default())
    }

    fn check(&self, checker: &mut Checker, world: &World, agent: &Agent, of: &Of<'_>) -> Verdict {
        checker.disk_quota_is_that_of_job_file(world, agent, of.alloc, self.bytes)
    }
}
