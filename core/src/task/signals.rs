//! Signals of operators: sent on, and answered whatever becomes of the task.

use super::runner::{PendingSignal, Phase, TaskRunner};
use crate::cx::Cx;
use crate::effect::{DriverEffect, Effect, Refusal, Reply};
use crate::input::RequestId;
use crate::model::event::{EventType, TaskEvent};
use crate::op::{Failure, Op};

/// How many signals of operators may be unanswered at a time.
const MAX_PENDING_SIGNALS: usize = 64;

impl TaskRunner {
    /// An operator's signal. Answers `request` now if it cannot be sent, else when the driver did.
    pub fn signal(&mut self, cx: &mut Cx<'_>, signal: &str, request: RequestId) {
        let refuse = |cx: &mut Cx<'_>, why: &str| {
            cx.send(Effect::Reply(
                request,
                Reply::Refused(Refusal::Conflict(why.to_owned())),
            ));
        };
        let launch = match (&self.phase, &self.record.launch) {
            (Phase::Running | Phase::Stopping { .. }, Some(launch)) => launch.id,
            _ => return refuse(cx, "Task not running"),
        };
        if self.signals.len() >= MAX_PENDING_SIGNALS {
            return refuse(cx, "too many signals are under way; try again");
        }
        let event = TaskEvent::new(
            EventType::Signaling,
            cx.now.wall,
            "Task being sent a signal",
        )
        .detail("signal", signal);
        self.push(cx, event);
        let awaited = cx.awaited(cx.config.patience.signal);
        self.signals.push(PendingSignal { awaited, request });
        let effect = DriverEffect::Signal {
            op: awaited.op,
            launch,
            signal: signal.to_owned(),
        };
        cx.drive(&self.spec.driver, &self.spec.key, effect);
    }

    pub(super) fn on_signaled(&mut self, cx: &mut Cx<'_>, op: Op, result: Result<(), Failure>) {
        let Some(at) = self
            .signals
            .iter()
            .position(|signal| signal.awaited.op == op)
        else {
            return cx.count_stale();
        };
        let request = self.signals.remove(at).request;
        let reply = match result {
            Ok(()) => Reply::Done {
                index: cx.shared.index,
            },
            Err(failure) => Reply::Refused(Refusal::Conflict(failure.message)),
        };
        cx.send(Effect::Reply(request, reply));
    }

    /// The launch is over: whoever waits for a signal's arrival waits no longer.
    pub(super) fn answer_signals(&mut self, cx: &mut Cx<'_>) {
        for signal in self.signals.drain(..) {
            let why = "the task ended; the signal may or may not have arrived";
            let refusal = Refusal::Conflict(why.to_owned());
            cx.send(Effect::Reply(signal.request, Reply::Refused(refusal)));
        }
    }

    pub(super) fn expire_signals(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now.at;
        let late = |signal: &PendingSignal| signal.awaited.deadline <= now;
        if !self.signals.iter().any(late) {
            return;
        }
        for signal in self.signals.extract_if(.., |signal| late(signal)) {
            let why = "the driver did not answer; the signal may or may not have arrived";
            let refusal = Refusal::Conflict(why.to_owned());
            cx.send(Effect::Reply(signal.request, Reply::Refused(refusal)));
        }
    }
}
