//! What a dispatch brought, where it was written down for a task.

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::task::hooks::TaskHook;
use drover_core::task::hooks::dispatch_payload::DispatchPayload;
use drover_core::work::WritePayload;

use super::{Of, Simulated};
use crate::check::{Checker, Verdict};
use crate::world::World;

impl Simulated for WritePayload {
    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        let key = of.key_with_dir(world)?;
        let own = (key.alloc, key.task);
        world.dirs.payloads.insert(own, self.payload.clone());
        Ok(HookOutput::default())
    }

    fn check(&self, checker: &mut Checker, world: &World, _: &Agent, of: &Of<'_>) -> Verdict {
        let Some(key) = of.key() else { return Ok(()) };
        checker.dispatch_payload_is_written_once(world, &key)?;
        checker.done_hook_is_not_run_again(world, &key, DispatchPayload.name())
    }
}
