//! Watching launches until they end.
//!
//! When the shim's pidfd becomes readable, the launch's record is read on a blocking thread. If it
//! says `Exited`, the watcher takes the right to report the end, which only one holder gets
//! ([`super::held`]), and reports it even if it is dropped.
//!
//! A shim that was killed gets a successor, unless somebody destroys the launch. Whoever is about to destroy it waits
//! for a successor that is being begun, which he would not see. A shim that was stopped does not see the end of its
//! task. So the task itself is watched too: from its end on, a shim that still runs is checked now and then, and
//! continued. Until then nothing is checked, since an agent at rest does nothing.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::DriverInput;
use drover_core::model::alloc::ExitResult;
use drover_core::model::task::LogConfig;

use super::machine::{Machine, Shim};
use super::{World, destroy};
use crate::shim::{Outcome, StartError};

/// How often a shim is checked whose task has ended. It usually needs milliseconds for what is left to do.
const CHECK: Duration = Duration::from_secs(10);

/// How many successors in a row may be killed before they answer: a task of root could go on killing them for ever.
const MOST_LOST_SUCCESSORS: u32 = 16;

impl<M: Machine> World<M> {
    /// Waits for the end of a launch and tells it, once. A shim that is killed gets a successor,
    /// which goes on where it was.
    pub(super) async fn watch(
        self: Arc<Self>,
        task: TaskKey,
        launch: LaunchId,
        mut live: Arc<M::Shim>,
        logs: LogConfig,
    ) {
        let mut end = End {
            world: self.clone(),
            task: task.clone(),
            launch,
            result: ExitResult::unknown("its process is not watched any more"),
            is_reported_by_another: false,
        };
        let mut lost_in_a_row = 0;
        loop {
            match self.outcome(&task, launch, &live).await {
                Ok(Outcome::Exited(exit)) => {
                    end.result = self.told(launch, &exit);
                    return;
                }
                Ok(Outcome::ShimLost) => {
                    match self.clone().take_over(&task, launch, &live, logs).await {
                        Ok(Successor::Lives(successor)) => {
                            (live, lost_in_a_row) = (successor, 0);
                        }
                        // What it left is looked at as if it had been the one that was lost.
                        Ok(Successor::Lost) if lost_in_a_row < MOST_LOST_SUCCESSORS => {
                            lost_in_a_row += 1;
                        }
                        Ok(Successor::Lost) => {
                            let why = "its shim was killed, and so was each successor";
                            end.result = ExitResult::unknown(why);
                            return;
                        }
                        // Whoever destroys it says how it ended.
                        Ok(Successor::NotNeeded) => {
                            end.is_reported_by_another = true;
                            return;
                        }
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

    /// Waits until a shim is gone, and says what it left. One that is found stopped after the end of its
    /// task is continued.
    async fn outcome(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        live: &Arc<M::Shim>,
    ) -> io::Result<Outcome> {
        let machine = &self.dependencies;
        let mut outcome = pin!(machine.outcome(live));
        tokio::select! {
            biased;
            outcome = &mut outcome => return outcome,
            () = machine.task_ended(live) => {}
        }
        loop {
            tokio::select! {
                biased;
                outcome = &mut outcome => return outcome,
                () = machine.pause(CHECK) => {}
            }
            let shim = live.clone();
            // If that could not be done, it can be the next time.
            let _ = machine.run(move || shim.continue_if_stopped()).await;
            self.report_continued_shim(task, launch, live);
        }
    }

    async fn take_over(
        self: Arc<Self>,
        task: &TaskKey,
        launch: LaunchId,
        live: &Arc<M::Shim>,
        logs: LogConfig,
    ) -> io::Result<Successor<M::Shim>> {
        if !self.held.begin_replacement(launch) {
            return Ok(Successor::NotNeeded);
        }
        tracing::warn!(%launch, task = %task.task, "a task's shim was killed; another takes over");
        let (task, live, world) = (task.clone(), live.clone(), self.clone());
        let begun = self.blocking(move || {
            let successor = match world.dependencies.take_over(&task, launch, &live, logs) {
                Ok(successor) => successor,
                Err(StartError::Lost) => return Ok(Successor::Lost),
                Err(error) => return Err(io::Error::other(error)),
            };
            match world.held.replace(launch, successor) {
                Ok(successor) => Ok(Successor::Lives(successor)),
                // Whoever destroyed the launch did not see this one.
                Err(successor) => {
                    destroy::end(&world.dependencies, &successor).map(|_| Successor::NotNeeded)
                }
            }
        });
        let successor = begun.await;
        self.held.end_replacement(launch);
        self.changes.notify_waiters();
        successor
    }
}

/// What became of the shim that was to go on for one that was killed.
enum Successor<S> {
    Lives(Arc<S>),
    /// It was killed before it answered.
    Lost,
    /// The launch is being destroyed, or was.
    NotNeeded,
}

/// The end of a launch, told when this is dropped: also if the watch is given up or panics.
struct End<M: Machine> {
    world: Arc<World<M>>,
    task: TaskKey,
    launch: LaunchId,
    result: ExitResult,
    is_reported_by_another: bool,
}

impl<M: Machine> Drop for End<M> {
    fn drop(&mut self) {
        // Not if whoever destroyed it tells it.
        if !self.is_reported_by_another && self.world.held.claim_report(self.launch) {
            let (launch, result) = (self.launch, std::mem::take(&mut self.result));
            let reported = DriverInput::Exited { launch, result };
            self.world.inbox.send(&self.task, reported);
            self.world.held.note_received(self.launch);
            self.world.changes.notify_waiters();
        }
    }
}
