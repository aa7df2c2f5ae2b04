//! The allocation's timers: when it wants to be called back, and what it does then.

use serde::{Deserialize, Serialize};

use super::{AllocRunner, Phase};
use crate::alloc::health::HealthWatch;
use crate::alloc::kill_order::KillOrder;
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect};
use crate::ids::TaskName;
use crate::op::Op;
use crate::task::runner::TaskTimer;
use crate::time::Instant;

/// The names of an allocation's timers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AllocTimer {
    /// A hook does not answer.
    Hook,
    /// The group's shutdown delay is over.
    ShutdownDelay,
    /// Health is to be looked at.
    Health,
    /// Its time is over.
    MaxRunDuration,
    /// Cleaning away is tried again.
    DestroyRetry,
    /// One of a task.
    Task(TaskName, TaskTimer),
}

impl AllocRunner {
    /// The next timer, and its name.
    pub fn deadline(&self) -> Option<(Instant, AllocTimer)> {
        let phase = match &self.phase {
            Phase::Prerun(pipeline) | Phase::Destroying(pipeline) => {
                pipeline.deadline().map(|at| (at, AllocTimer::Hook))
            }
            Phase::DestroyPause(until) => Some((*until, AllocTimer::DestroyRetry)),
            Phase::Tasks | Phase::Finished | Phase::Destroyed => None,
        };
        let kill = self.kill.as_ref().and_then(KillOrder::deadline);
        let watching = matches!(self.phase, Phase::Tasks | Phase::Finished);
        let health = self
            .health
            .as_ref()
            .filter(|_| watching)
            .map(HealthWatch::deadline);
        let tasks = self.tasks.iter().filter_map(|task| {
            let (at, timer) = task.deadline()?;
            Some((at, AllocTimer::Task(task.spec().key.task.clone(), timer)))
        });
        phase
            .into_iter()
            .chain(kill.map(|at| (at, AllocTimer::ShutdownDelay)))
            .chain(health.map(|at| (at, AllocTimer::Health)))
            .chain(
                self.time_is_over_at
                    .map(|at| (at, AllocTimer::MaxRunDuration)),
            )
            .chain(tasks)
            .min()
    }

    /// A hook's work that waited for the disk left the agent: the time for its answer begins now.
    pub fn hook_left(&mut self, cx: &Cx<'_>, op: Op) {
        match &mut self.phase {
            Phase::Prerun(pipeline) | Phase::Destroying(pipeline) => {
                pipeline.left(cx.now, cx.config.patience.hook, op);
            }
            Phase::DestroyPause(_) | Phase::Tasks | Phase::Finished | Phase::Destroyed => {}
        }
    }

    /// Does what is due. Calls that are not due change nothing.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        match &mut self.phase {
            Phase::Prerun(pipeline) | Phase::Destroying(pipeline) => {
                let held = |op| cx.shared.ledger.holds(op);
                pipeline.wait_for_the_store(cx.now, cx.config.patience.hook, held);
                if let Some(op) = pipeline.expire(cx.now) {
                    cx.count_overdue();
                    cx.send(Effect::Hook(HookEffect::Cancel { op }));
                }
            }
            // It may have to wait for a place again.
            Phase::DestroyPause(until) if *until <= cx.now.at => self.phase = Phase::Finished,
            Phase::DestroyPause(_) | Phase::Tasks | Phase::Finished | Phase::Destroyed => {}
        }
        if self.time_is_over_at.is_some_and(|at| at <= cx.now.at) {
            self.time_is_over_at = None;
            self.time_is_over(cx);
        }
        for task in &mut self.tasks {
            task.handle_timeout(cx);
        }
    }
}
