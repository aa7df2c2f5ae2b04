//! Watching launches until they end.
//!
//! When the shim's pidfd becomes readable, the launch's record is read on a blocking thread. If it
//! says `Exited`, the watcher takes the right to report the end, which only one holder gets
//! ([`super::held`]), and reports it even if it is dropped.

use std::io;
use std::sync::Arc;

use drover_core::ids::LaunchId;
use drover_core::input::{DriverInput, TaskKey};
use drover_core::model::alloc::ExitResult;
use drover_core::model::task::LogConfig;

use super::{World, exit_result};
use crate::driver::shims;
use crate::shim::{Live, Outcome};

impl World {
    /// Waits for the end of a launch and tells it, once. A shim that is killed gets a successor,
    /// which goes on where it was.
    pub(super) async fn watch(
        self: Arc<Self>,
        task: TaskKey,
        launch: LaunchId,
        mut live: Arc<Live>,
        logs: LogConfig,
    ) {
        let mut end = End {
            world: self.clone(),
            task: task.clone(),
            launch,
            result: ExitResult::unknown("nobody watches its process any more"),
        };
        loop {
            match shims::outcome(&live, &self.gate).await {
                Ok(Outcome::Exited(exit)) => {
                    end.result = exit_result(&exit);
                    return;
                }
                Ok(Outcome::ShimLost) => {
                    match self.clone().take_over(&task, launch, &live, logs).await {
                        Ok(Some(successor)) => live = successor,
                        // Destroyed, with its record: whoever did that says how it ended.
                        Ok(None) => return,
                        Err(error) => {
                            let why = format!("its shim was killed and has no successor: {error}");
                            end.result = ExitResult::unknown(why);
                            return;
                        }
                    }
                }
                Err(error) => {
                    end.result =
                        ExitResult::unknown(format!("its process cannot be watched: {error}"));
                    return;
                }
            }
        }
    }

    /// `None`: it was destroyed.
    async fn take_over(
        self: Arc<Self>,
        task: &TaskKey,
        launch: LaunchId,
        live: &Arc<Live>,
        logs: LogConfig,
    ) -> io::Result<Option<Arc<Live>>> {
        if !self.held.untold(launch) {
            return Ok(None);
        }
        tracing::warn!(%launch, task = %task.task, "a task's shim was killed; another takes over");
        let (task, live, world) = (task.clone(), live.clone(), self.clone());
        self.blocking(move || {
            let successor = world.means.take_over(&task, launch, &live, logs)?;
            Ok(world.held.replace(launch, successor))
        })
        .await
    }
}

/// The end of a launch, told when this is dropped: also if the watch is given up or panics.
struct End {
    world: Arc<World>,
    task: TaskKey,
    launch: LaunchId,
    result: ExitResult,
}

impl Drop for End {
    fn drop(&mut self) {
        // Not if whoever destroyed it tells it.
        if self.world.held.tell(self.launch) {
            let (launch, result) = (self.launch, std::mem::take(&mut self.result));
            let said = DriverInput::Exited { launch, result };
            self.world.inbox.say(&self.task, said);
            self.world.held.was_heard(self.launch);
            self.world.ends.notify_waiters();
        }
    }
}
