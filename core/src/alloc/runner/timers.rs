//! The allocation's timers: when it wants to be called back, and what it does then.

use serde::{Deserialize, Serialize};

use super::{AllocRunner, Phase};
use crate::alloc::health::HealthWatch;
use crate::alloc::kill_order::KillOrder;
use crate::checks::CheckRunner;
use crate::cx::Cx;
use crate::ids::TaskName;
use crate::task::runner::TaskTimer;
use crate::time::Instant;

/// The names of an allocation's timers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AllocTimer {
    /// The group's shutdown delay is over.
    ShutdownDelay,
    /// Health is to be looked at.
    Health,
    /// A check runs.
    Check,
    /// Its time is over.
    MaxRunDuration,
    /// Another node is asked again.
    AskAgain,
    /// Garbage collection is tried again.
    DestroyRetry,
    /// The removal of its network is tried again.
    NetworkRetry,
    /// One of a task.
    Task(TaskName, TaskTimer),
}

impl AllocRunner {
    /// The next timer, and its name.
    pub fn deadline(&self) -> Option<(Instant, AllocTimer)> {
        let phase = match &self.phase {
            Phase::Prerun(setup) => setup.asks_again_at().map(|at| (at, AllocTimer::AskAgain)),
            Phase::DestroyPause(until) => Some((*until, AllocTimer::DestroyRetry)),
            Phase::Destroying(_) | Phase::Tasks(_) | Phase::Finished | Phase::Destroyed => None,
        };
        let kill = self.kill.as_ref().and_then(KillOrder::deadline);
        let watching = matches!(self.phase, Phase::Tasks(_) | Phase::Finished);
        let health = self
            .health
            .as_ref()
            .filter(|_| watching)
            .map(HealthWatch::deadline);
        let checks = self.checks.iter().filter_map(CheckRunner::deadline);
        let tasks = self.tasks.iter().filter_map(|task| {
            let (at, timer) = task.deadline()?;
            Some((at, AllocTimer::Task(task.spec().key.task.clone(), timer)))
        });
        let network = self.network_deadline();
        phase
            .into_iter()
            .chain(network.map(|at| (at, AllocTimer::NetworkRetry)))
            .chain(kill.map(|at| (at, AllocTimer::ShutdownDelay)))
            .chain(health.map(|at| (at, AllocTimer::Health)))
            .chain(checks.map(|at| (at, AllocTimer::Check)))
            .chain(
                self.max_run_deadline
                    .map(|at| (at, AllocTimer::MaxRunDuration)),
            )
            .chain(tasks)
            .min()
    }

    /// Does what is due. Calls that are not due change nothing.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        // It may have to wait for a place again.
        if matches!(self.phase, Phase::DestroyPause(until) if until <= cx.now.at) {
            self.phase = Phase::Finished;
        }
        self.retry_network(cx);
        if self.max_run_deadline.is_some_and(|at| at <= cx.now.at) {
            self.max_run_deadline = None;
            self.max_run_duration_passed(cx);
        }
        for task in &mut self.tasks {
            task.handle_timeout(cx);
        }
    }
}
