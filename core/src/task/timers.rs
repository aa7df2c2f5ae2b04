//! The task's timers: when it wants to be called back, and what it does then.

use super::runner::{Phase, Stop, TaskRunner, TaskTimer};
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect};
use crate::hooks::too_late;
use crate::model::event::EventType;
use crate::op::{Failure, Op};
use crate::operations::Purpose;
use crate::time::Instant;

impl TaskRunner {
    /// The next timer, and its name. The deadlines of what the task asked for are those of
    /// [`crate::operations`].
    pub fn deadline(&self) -> Option<(Instant, TaskTimer)> {
        let phase = match &self.phase {
            Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Stopping(Stop::Asked(_)) => None,
            Phase::Delaying(until) => Some((*until, TaskTimer::ShutdownDelay)),
            Phase::Deregistering(until) => Some((*until, TaskTimer::Deregistration)),
            Phase::Stopping(Stop::Sent(until)) => Some((*until, TaskTimer::KillGrace)),
            Phase::Cleaning(destroyer) | Phase::Dead(destroyer) => {
                destroyer.deadline().map(|at| (at, TaskTimer::Destroy))
            }
            Phase::Pausing(until) => Some((*until, TaskTimer::RestartDelay)),
        };
        let templates = self.templates.deadline();
        let templates = templates.map(|at| (at, TaskTimer::Template));
        let identities = self.identities_deadline();
        let identities = identities.map(|at| (at, TaskTimer::Identity));
        phase.into_iter().chain(templates).chain(identities).min()
    }

    /// Does what is due. Calls that are not due change nothing.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.templates_are_due(cx);
        self.identities_are_due(cx);
        let now = cx.now.at;
        match &mut self.phase {
            Phase::Delaying(until) if *until <= now => self.ask_to_stop(cx),
            Phase::Deregistering(until) if *until <= now => self.send_stop(cx),
            Phase::Stopping(Stop::Sent(until)) if *until <= now => self.clean_up(cx),
            Phase::Cleaning(destroyer) | Phase::Dead(destroyer) => destroyer.handle_timeout(now),
            Phase::Pausing(until) if *until <= now => self.phase = Phase::Waiting,
            Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Running
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Pausing(_) => {}
        }
    }

    /// The answer to what was asked for did not come in time.
    pub fn on_overdue(&mut self, cx: &mut Cx<'_>, op: Op, purpose: &Purpose) {
        match purpose {
            Purpose::Start => {
                let failure = Failure::recoverable("the driver did not answer the start in time");
                self.on_start_failed(cx, op, failure, None);
            }
            Purpose::Recover => self.recover_overdue(cx),
            // The grace is over.
            Purpose::Stop => self.clean_up(cx),
            Purpose::Destroy => {
                let failure = Failure::recoverable("the driver did not answer");
                self.on_destroyed(cx, op, Err(failure));
            }
            Purpose::Signal => self.signal_overdue(cx, op),
            Purpose::Exec => {
                let failure = Failure::recoverable("the driver did not answer");
                self.on_executed(cx, op, Err(failure));
            }
            Purpose::Session => {
                let failure = Failure::recoverable("the driver did not answer in time");
                self.on_session_opened(cx, op, Err(failure));
            }
            Purpose::Hook | Purpose::Templates => {
                cx.send(Effect::Hook(HookEffect::Cancel { op }));
                self.hook_over(cx, op, Err(too_late()));
            }
            Purpose::Check
            | Purpose::MoveDisk
            | Purpose::Probe(_)
            | Purpose::Driver(_)
            | Purpose::Devices(_)
            | Purpose::DiskUsage
            | Purpose::DirUsage
            | Purpose::TimeZone(_)
            | Purpose::Call(_)
            | Purpose::Image
            | Purpose::Volume(_) => {}
        }
    }

    /// The driver cannot say what became of the launch: force makes sure that nothing of it
    /// lives, and the policy decides what follows.
    pub(super) fn recover_overdue(&mut self, cx: &mut Cx<'_>) {
        let message = "the driver could not report what became of the task";
        self.event(cx, EventType::FailedRestoring, message);
        self.clean_up(cx);
    }

    /// The operation that the phase awaits, if it awaits one.
    pub fn awaited(&self) -> Option<Op> {
        match &self.phase {
            Phase::Starting(op) | Phase::Recovering(op) | Phase::Stopping(Stop::Asked(op)) => {
                Some(*op)
            }
            Phase::Preparing(pipeline) => pipeline.awaited(),
            Phase::Cleaning(destroyer) | Phase::Dead(destroyer) => destroyer.awaited(),
            Phase::Stopping(Stop::Sent(_))
            | Phase::Waiting
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Pausing(_) => None,
        }
    }
}
