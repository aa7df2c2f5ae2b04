//! The allocation's timers: when it wants to be called back, and what it does then.

use serde::{Deserialize, Serialize};

use super::{AllocRunner, DESTROY, PRERUN, Phase};
use crate::alloc::health::HealthWatch;
use crate::alloc::kill_order::KillOrder;
use crate::config::Patience;
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect};
use crate::hooks::too_late;
use crate::ids::TaskName;
use crate::op::Op;
use crate::task::runner::TaskTimer;
use crate::time::{Instant, Span};

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
    /// Another node is asked again.
    AskAgain,
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
                let again = || self.asks_again_at().map(|at| (at, AllocTimer::AskAgain));
                let answer = pipeline.deadline().map(|at| (at, AllocTimer::Hook));
                answer.or_else(again)
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
        let patience = self.patience(&cx.config.patience);
        match &mut self.phase {
            Phase::Prerun(pipeline) | Phase::Destroying(pipeline) => {
                pipeline.left(cx.now, patience, op);
            }
            Phase::DestroyPause(_) | Phase::Tasks | Phase::Finished | Phase::Destroyed => {}
        }
    }

    /// How long the work of the hook that is under way may take.
    fn patience(&self, patience: &Patience) -> Span {
        let hook = match &self.phase {
            Phase::Prerun(pipeline) => pipeline.current(PRERUN),
            Phase::Destroying(pipeline) => pipeline.current(DESTROY),
            Phase::DestroyPause(_) | Phase::Tasks | Phase::Finished | Phase::Destroyed => None,
        };
        hook.map_or(patience.hook, |hook| hook.patience(patience))
    }

    /// Does what is due. Calls that are not due change nothing.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        let patience = self.patience(&cx.config.patience);
        match &mut self.phase {
            Phase::Prerun(pipeline) | Phase::Destroying(pipeline) => {
                let held = |op| cx.shared.ledger.holds(op);
                pipeline.wait_for_the_store(cx.now, patience, held);
                if let Some(op) = pipeline.overdue(cx.now) {
                    cx.count_overdue();
                    self.late_move = Some(op).filter(|_| self.moves_disk());
                    cx.send(Effect::Hook(HookEffect::Cancel { op }));
                    self.answered(cx, op, Err(too_late()));
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
