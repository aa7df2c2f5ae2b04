//! Signals of operators: passed on as long as the task's process lives, and answered whatever becomes of it; and
//! signals that report a change of templates.

use super::runner::{PendingSignal, Phase, TaskRunner};
use crate::cx::Cx;
use crate::effect::{Effect, Refusal, Reply, request};
use crate::ids::{LaunchId, RequestId};
use crate::model::event::{EventType, TaskEvent};
use crate::op::{Failure, Op};
use crate::operations::Purpose;

/// How many signals of operators may be unanswered at a time.
const MAX_PENDING_SIGNALS: usize = 64;

impl TaskRunner {
    /// An operator's signal. Answers `request` now if it cannot be sent, else when the driver did.
    pub fn signal(&mut self, cx: &mut Cx<'_>, signal: &str, request: RequestId) {
        let lives = match &self.phase {
            Phase::Running | Phase::Delaying(_) | Phase::Deregistering(_) | Phase::Stopping(_) => {
                true
            }
            Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => false,
        };
        let Some(launch) = self.record.launch.as_ref().filter(|_| lives) else {
            return refuse(cx, request, "Task not running");
        };
        let launch = launch.id;
        if self.signals.len() >= MAX_PENDING_SIGNALS {
            return refuse(cx, request, "too many signals are under way; try again");
        }
        let words = "Task being sent a signal";
        let effect = self.signal_effect(cx, launch, signal, Some(request), words);
        cx.drive(&self.spec.driver, &self.spec.key, effect);
    }

    /// Tells the task that something of it changed, once that is remembered: it is told at most
    /// once.
    pub(super) fn signal_of_change(&mut self, cx: &mut Cx<'_>, signal: &str, words: &str) {
        let Some(launch) = self.record.launch.as_ref().map(|launch| launch.id) else {
            return;
        };
        if self.signals.len() >= MAX_PENDING_SIGNALS {
            return self.signal_failed(cx, "too many signals are under way");
        }
        let effect = self.signal_effect(cx, launch, signal, None, words);
        cx.drive_after_save(&self.spec.driver, &self.spec.key, effect);
    }

    /// A signal that is awaited and told from now on.
    fn signal_effect(
        &mut self,
        cx: &mut Cx<'_>,
        launch: LaunchId,
        signal: &str,
        request: Option<RequestId>,
        words: &str,
    ) -> request::Signal {
        let event = TaskEvent::new(EventType::Signaling, cx.now.wall, words);
        self.push(cx, event.detail("signal", signal));
        let op = self.operation(cx, Purpose::Signal, cx.config.timeouts.signal);
        self.signals.push(PendingSignal { op, request });
        request::Signal {
            op,
            launch,
            signal: signal.to_owned(),
        }
    }

    /// The signals whose arrival is awaited.
    pub fn awaited_signals(&self) -> impl Iterator<Item = Op> {
        self.signals.iter().map(|signal| signal.op)
    }

    fn signal_failed(&mut self, cx: &mut Cx<'_>, why: &str) {
        let message = format!("Something changed, and its signal was not sent: {why}");
        self.event(cx, EventType::Template, &message);
    }

    pub(super) fn on_signaled(&mut self, cx: &mut Cx<'_>, op: Op, result: Result<(), Failure>) {
        let Some(at) = self.signals.iter().position(|signal| signal.op == op) else {
            return cx.count_stale();
        };
        match (self.signals.remove(at).request, result) {
            (Some(request), Ok(())) => {
                let index = cx.shared.index;
                cx.send(Effect::Reply(request, Reply::Done { index }));
            }
            (Some(request), Err(failure)) => refuse(cx, request, &failure.message),
            (None, Ok(())) => {}
            (None, Err(failure)) => self.signal_failed(cx, &failure.message),
        }
    }

    /// The launch is over: whoever waits for a signal's arrival waits no longer.
    pub(super) fn answer_signals(&mut self, cx: &mut Cx<'_>) {
        for signal in self.signals.drain(..) {
            cx.shared.operations.end(signal.op);
            if let Some(request) = signal.request {
                let why = "the task ended; the signal may or may not have arrived";
                refuse(cx, request, why);
            }
        }
    }

    /// The driver did not answer.
    pub(super) fn signal_overdue(&mut self, cx: &mut Cx<'_>, op: Op) {
        let Some(at) = self.signals.iter().position(|signal| signal.op == op) else {
            return;
        };
        match self.signals.remove(at).request {
            Some(request) => {
                let why = "the driver did not answer; the signal may or may not have arrived";
                refuse(cx, request, why);
            }
            None => self.signal_failed(cx, "the driver did not answer"),
        }
    }
}

fn refuse(cx: &mut Cx<'_>, request: RequestId, why: &str) {
    let refusal = Refusal::Conflict(why.to_owned());
    cx.send(Effect::Reply(request, Reply::Refused(refusal)));
}
