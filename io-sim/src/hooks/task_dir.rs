//! Directories and secrets of tasks.

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::task::hooks::TaskHook;
use drover_core::task::hooks::task_dir::TaskDir;
use drover_core::work::BuildTaskDir;

use super::{Of, Simulated};
use crate::check::{Checker, Verdict};
use crate::world::World;

impl Simulated for BuildTaskDir {
    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        let key = of
            .key()
            .ok_or_else(|| Failure::fatal("no task was named"))?;
        let (secrets, rebuilt) = world.dirs.make_task(&key, self.made)?;
        Ok(HookOutput {
            secrets,
            rebuilt,
            ..HookOutput::default()
        })
    }

    fn check(&self, checker: &mut Checker, world: &World, _: &Agent, of: &Of<'_>) -> Verdict {
        checker.directory_is_built_after_alloc_is_saved(world, of.alloc)?;
        let Some(key) = of.key() else { return Ok(()) };
        checker.task_hooks_run_after_alloc_hooks(world, &key)?;
        match self.made {
            true => Ok(()),
            false => checker.done_hook_is_not_run_again(world, &key, TaskDir.name()),
        }
    }
}
