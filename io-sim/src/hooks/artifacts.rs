//! Files that are fetched for tasks.

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::task::hooks::TaskHook;
use drover_core::task::hooks::artifacts::Artifacts;
use drover_core::time::Span;
use drover_core::work::FetchArtifacts;

use super::{Of, Simulated};
use crate::check::{Checker, Verdict};
use crate::faults::Fault;
use crate::world::World;

impl Simulated for FetchArtifacts {
    fn can_be_cancelled(&self) -> bool {
        true
    }

    fn time(&self, world: &mut World, of: &Of<'_>) -> Span {
        let limit = world.scene.timeouts.artifacts;
        if world.scene.fires(Fault::StallFetch, &of.entity) {
            // Whoever serves it says no more: only a cancellation ends that.
            return Span(2 * limit.0);
        }
        world.scene.latency(&of.entity, limit)
    }

    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        if world.scene.fires(Fault::FailFetch, &of.entity) {
            return Err(Failure::recoverable("the server answered 503"));
        }
        let key = of.key_with_dir(world)?;
        let mut to = self.artifacts.iter();
        let secret = to.any(|one| one.relative_dest.starts_with("secrets"));
        world.dirs.fetch(&key, secret)?;
        Ok(HookOutput::default())
    }

    fn check(&self, checker: &mut Checker, world: &World, _: &Agent, of: &Of<'_>) -> Verdict {
        let Some(key) = of.key() else { return Ok(()) };
        checker.artifacts_are_fetched_into_existing_task_dir(world, &key)?;
        checker.done_hook_is_not_run_again(world, &key, Artifacts.name())
    }
}
