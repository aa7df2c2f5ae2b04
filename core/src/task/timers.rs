//! The task's timers: when it wants to be called back, and what it does then.

use super::destroyer::Destroyer;
use super::runner::{Phase, TaskRunner, TaskTimer};
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect};
use crate::model::event::EventType;
use crate::op::{Awaited, Failure, Op};
use crate::time::Instant;

impl TaskRunner {
    /// The next timer, and its name.
    pub fn deadline(&self) -> Option<(Instant, TaskTimer)> {
        let phase = match &self.phase {
            Phase::Waiting | Phase::Running => None,
            Phase::Preparing(pipeline) => pipeline.deadline().map(|at| (at, TaskTimer::Hook)),
            Phase::Starting(awaited) => Some((awaited.deadline, TaskTimer::Start)),
            Phase::Recovering(awaited) => Some((awaited.deadline, TaskTimer::Recover)),
            Phase::Delaying(until) => Some((*until, TaskTimer::ShutdownDelay)),
            Phase::Stopping { until, .. } => Some((*until, TaskTimer::KillGrace)),
            Phase::Cleaning(destroyer) | Phase::Dead(destroyer) => {
                destroyer.deadline().map(|at| (at, TaskTimer::Destroy))
            }
            Phase::Pausing(until) => Some((*until, TaskTimer::RestartDelay)),
        };
        let signal = self
            .signals
            .iter()
            .map(|s| (s.awaited.deadline, TaskTimer::Signal))
            .min();
        let templates = self.templates.deadline();
        let templates = templates.map(|at| (at, TaskTimer::Template));
        let scripts = self.scripts_deadline();
        let scripts = scripts.map(|at| (at, TaskTimer::Template));
        let identities = self.identities_deadline();
        let identities = identities.map(|at| (at, TaskTimer::Identity));
        let others = (signal.into_iter())
            .chain(templates)
            .chain(scripts)
            .chain(identities);
        phase.into_iter().chain(others).min()
    }

    /// Does what is due. Calls that are not due change nothing.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.expire_signals(cx);
        self.templates_are_due(cx);
        self.expire_scripts(cx);
        self.identities_are_due(cx);
        self.wait_for_the_store(cx);
        let now = cx.now.at;
        let due = |at: Instant| at <= now;
        match &mut self.phase {
            Phase::Preparing(pipeline) => {
                if let Some(op) = pipeline.expire(cx.now) {
                    cx.count_overdue();
                    cx.send(Effect::Hook(HookEffect::Cancel { op }));
                }
            }
            Phase::Starting(awaited) if due(awaited.deadline) => {
                cx.count_overdue();
                let failure = Failure::recoverable("the driver did not answer the start in time");
                self.give_up_start(cx, failure);
            }
            Phase::Recovering(awaited) if due(awaited.deadline) => self.recover_overdue(cx),
            Phase::Delaying(until) if due(*until) => self.ask_to_stop(cx),
            Phase::Stopping { until, .. } if due(*until) => {
                self.phase = Phase::Cleaning(Destroyer::default());
            }
            Phase::Cleaning(destroyer) | Phase::Dead(destroyer) => {
                destroyer.handle_timeout(cx);
                self.stop_waiting_for_destroy(cx);
            }
            Phase::Pausing(until) if due(*until) => self.phase = Phase::Waiting,
            Phase::Waiting
            | Phase::Running
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Delaying(_)
            | Phase::Stopping { .. }
            | Phase::Pausing(_) => {}
        }
    }

    /// A request that waited for the disk left the agent: the time for its answer begins now.
    pub fn left(&mut self, cx: &Cx<'_>, op: Op) {
        let (now, patience) = (cx.now.at, cx.config.patience);
        let grace = self.grace(cx);
        self.script_left(cx, op);
        match &mut self.phase {
            Phase::Starting(awaited) if awaited.op == op => {
                awaited.deadline = now + patience.start;
            }
            Phase::Stopping {
                awaited: Some(awaited),
                until,
            } if awaited.op == op => {
                awaited.deadline = now + patience.signal.min(grace);
                *until = now + grace;
            }
            Phase::Cleaning(destroyer) | Phase::Dead(destroyer) => destroyer.left(cx, op),
            Phase::Starting(_)
            | Phase::Stopping { .. }
            | Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Pausing(_) => {}
        }
    }

    /// While the store cannot write, nobody outside was asked yet: time that counts against others
    /// begins when they are.
    pub(super) fn wait_for_the_store(&mut self, cx: &Cx<'_>) {
        let (now, patience) = (cx.now.at, cx.config.patience);
        let grace = self.grace(cx);
        let held = |awaited: &Awaited| cx.shared.ledger.holds(awaited.op);
        match &mut self.phase {
            Phase::Starting(awaited) if awaited.deadline <= now && held(awaited) => {
                awaited.deadline = now + patience.start;
            }
            Phase::Stopping { awaited, until } if *until <= now => {
                if let Some(awaited) = awaited.as_mut().filter(|awaited| held(awaited)) {
                    awaited.deadline = now + patience.signal.min(grace);
                    *until = now + grace;
                }
            }
            Phase::Cleaning(destroyer) | Phase::Dead(destroyer) => destroyer.wait_for_the_store(cx),
            Phase::Starting(_)
            | Phase::Stopping { .. }
            | Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Pausing(_) => {}
        }
    }

    /// The driver cannot say what became of the launch: force makes sure that nothing of it
    /// lives, and the policy decides what follows.
    pub(super) fn recover_overdue(&mut self, cx: &mut Cx<'_>) {
        cx.count_overdue();
        let message = "the driver could not say what became of the task";
        self.event(cx, EventType::FailedRestoring, message);
        self.phase = Phase::Cleaning(Destroyer::default());
    }

    /// The operation that the phase awaits, if it awaits one.
    pub fn awaited(&self) -> Option<Awaited> {
        match &self.phase {
            Phase::Starting(awaited) | Phase::Recovering(awaited) => Some(*awaited),
            Phase::Stopping { awaited, .. } => *awaited,
            Phase::Preparing(pipeline) => pipeline.awaited(),
            Phase::Waiting
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => None,
        }
    }
}
