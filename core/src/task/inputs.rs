//! What reaches a task: one method for each input, and in it one arm for each phase.

use super::destroyer::Destroyer;
use super::runner::{Kill, PendingSignal, Phase, TaskRunner, TaskTimer};
use crate::cx::Cx;
use crate::effect::{DriverEffect, Effect, HookEffect, Refusal, Reply};
use crate::ids::LaunchId;
use crate::input::{DriverInput, Found, HookOutput, RequestId};
use crate::model::alloc::ExitResult;
use crate::model::event::{EventType, TaskEvent};
use crate::op::{Awaited, Failure, Op};
use crate::time::{Instant, Span};

/// How many signals of operators may be unanswered at a time.
const MAX_PENDING_SIGNALS: usize = 64;

impl TaskRunner {
    /// The task shall end for good. Asking again changes nothing.
    pub fn kill(&mut self, cx: &mut Cx<'_>, kill: Kill) {
        if self.kill.is_some() || self.is_dead() {
            return;
        }
        if self.record.state.finished_at.is_none() {
            let grace = self.grace(cx);
            self.push(
                cx,
                TaskEvent::killing(cx.now.wall, grace, kill.reason.as_deref()),
            );
        }
        self.kill = Some(kill);
        let grace = self.grace(cx);
        match &mut self.phase {
            Phase::Waiting | Phase::Pausing(_) => self.die(cx),
            Phase::Preparing(pipeline) => match pipeline.awaited() {
                None => self.die(cx),
                Some(awaited) => cx.send(Effect::Hook(HookEffect::Cancel { op: awaited.op })),
            },
            // What never left never happens.
            Phase::Starting(awaited) if cx.shared.ledger.withdraw(awaited.op) => self.unlaunch(cx),
            // A driver that hangs gets as long as a process would.
            Phase::Starting(awaited) | Phase::Recovering(awaited) => {
                awaited.deadline = awaited.deadline.min(cx.now.at + grace);
            }
            Phase::Running => self.begin_stop(cx, true),
            Phase::Delaying(_) | Phase::Stopping { .. } | Phase::Cleaning(_) | Phase::Dead(_) => {}
        }
    }

    /// The start that was decided never left the agent: it is as if it had not been decided.
    fn unlaunch(&mut self, cx: &mut Cx<'_>) {
        self.edit().launch = None;
        self.die(cx);
    }

    /// The task shall end and start again, at no cost to its budget. `false` if it does not run.
    pub fn restart(&mut self, cx: &mut Cx<'_>, reason: &str) -> bool {
        let runs = match &self.phase {
            Phase::Running | Phase::Starting(_) => true,
            Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Recovering(_)
            | Phase::Delaying(_)
            | Phase::Stopping { .. }
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => false,
        };
        if !runs || self.kill.is_some() {
            return false;
        }
        let event = TaskEvent::new(EventType::RestartSignaled, cx.now.wall, reason)
            .detail("restart_reason", reason);
        self.edit().restarting = true;
        self.push(cx, event);
        if matches!(self.phase, Phase::Running) {
            self.begin_stop(cx, false);
        }
        true
    }

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

    /// A driver says something of this task. What is late, doubled or of an earlier launch is
    /// dropped and counted.
    pub fn on_driver(&mut self, cx: &mut Cx<'_>, input: DriverInput) {
        let launch = input.launch();
        if self
            .record
            .launch
            .as_ref()
            .is_none_or(|current| current.id != launch)
        {
            return cx.count_stale();
        }
        match input {
            DriverInput::Started { op, .. } => self.on_started(cx, op),
            DriverInput::StartFailed { op, failure, .. } => self.on_start_failed(cx, op, failure),
            DriverInput::Recovered { op, found, .. } => self.on_recovered(cx, op, found),
            DriverInput::Exited { result, .. } => self.on_exited(cx, result),
            DriverInput::Stopped { op, result, .. } => self.on_stopped(cx, op, result),
            DriverInput::Signaled { op, result, .. } => self.on_signaled(cx, op, result),
            DriverInput::Destroyed { op, result, .. } => self.on_destroyed(cx, op, result),
        }
    }

    fn on_started(&mut self, cx: &mut Cx<'_>, op: Op) {
        match &self.phase {
            Phase::Starting(awaited) if awaited.op == op => {
                self.mark_running(cx);
                self.now_runs(cx);
            }
            Phase::Starting(_)
            | Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Stopping { .. }
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => cx.count_stale(),
        }
    }

    /// The process lives: a kill comes before a restart before peace.
    fn now_runs(&mut self, cx: &mut Cx<'_>) {
        self.phase = Phase::Running;
        if self.kill.is_some() {
            self.begin_stop(cx, true);
        } else if self.record.restarting {
            self.begin_stop(cx, false);
        }
    }

    fn on_start_failed(&mut self, cx: &mut Cx<'_>, op: Op, failure: Failure) {
        match &self.phase {
            Phase::Starting(awaited) if awaited.op == op => self.give_up_start(cx, failure),
            Phase::Starting(_)
            | Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Stopping { .. }
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => cx.count_stale(),
        }
    }

    fn give_up_start(&mut self, cx: &mut Cx<'_>, failure: Failure) {
        let event = TaskEvent::new(EventType::DriverFailure, cx.now.wall, &failure.message)
            .detail("driver_error", &failure.message);
        self.push(cx, event);
        self.start_failed(cx, failure.recoverable);
    }

    fn on_recovered(&mut self, cx: &mut Cx<'_>, op: Op, found: Found) {
        let awaited = match &self.phase {
            Phase::Recovering(awaited) => *awaited,
            Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Starting(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Stopping { .. }
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => return cx.count_stale(),
        };
        if awaited.op != op {
            return cx.count_stale();
        }
        match found {
            Found::Running => {
                if self.record.state.state != crate::model::alloc::TaskLife::Running {
                    self.mark_running(cx);
                }
                self.now_runs(cx);
            }
            Found::Exited(result) => self.ended(cx, result),
            Found::NeverStarted => {
                let record = self.edit();
                record.launch = None;
                record.restarting = false;
                self.phase = Phase::Waiting;
                self.save(cx);
            }
            Found::Gone(why) => self.ended(cx, ExitResult::unknown(why)),
        }
    }

    fn on_exited(&mut self, cx: &mut Cx<'_>, result: ExitResult) {
        match &self.phase {
            // The end may overtake the word of the beginning.
            Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Stopping { .. }
            | Phase::Cleaning(_) => {
                let told = self
                    .record
                    .launch
                    .as_ref()
                    .is_some_and(|l| l.exit.is_some());
                if told {
                    cx.count_stale()
                } else {
                    self.ended(cx, result)
                }
            }
            Phase::Waiting | Phase::Preparing(_) | Phase::Pausing(_) | Phase::Dead(_) => {
                cx.count_stale();
            }
        }
    }

    fn on_stopped(&mut self, cx: &mut Cx<'_>, op: Op, result: Result<(), Failure>) {
        match &mut self.phase {
            Phase::Stopping { awaited, .. } if awaited.is_some_and(|a| a.op == op) => {
                *awaited = None;
                // A signal that cannot be sent ends nobody: force follows at once.
                if result.is_err() {
                    self.phase = Phase::Cleaning(Destroyer::default());
                }
            }
            Phase::Stopping { .. }
            | Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => cx.count_stale(),
        }
    }

    fn on_signaled(&mut self, cx: &mut Cx<'_>, op: Op, result: Result<(), Failure>) {
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

    fn on_destroyed(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        result: Result<Option<ExitResult>, Failure>,
    ) {
        match &mut self.phase {
            Phase::Cleaning(destroyer) | Phase::Dead(destroyer) if destroyer.awaits(op) => {
                match result {
                    Ok(exit) => self.cleaned(cx, exit),
                    Err(failure) => {
                        destroyer.failed(cx, failure.message);
                        self.stop_waiting_for_destroy(cx);
                    }
                }
            }
            Phase::Cleaning(_)
            | Phase::Dead(_)
            | Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Stopping { .. }
            | Phase::Pausing(_) => cx.count_stale(),
        }
    }

    /// A kill ends even if the driver does not: what is left stays remembered and is tried on.
    fn stop_waiting_for_destroy(&mut self, cx: &mut Cx<'_>) {
        let Phase::Cleaning(destroyer) = &self.phase else {
            return;
        };
        if self.kill.is_none() || !destroyer.gave_up() {
            return;
        }
        let destroyer = destroyer.clone();
        let why = destroyer.last_error.clone().unwrap_or_default();
        let event = TaskEvent::new(EventType::Killed, cx.now.wall, &why).detail("kill_error", &why);
        self.push(cx, event);
        self.die(cx);
        self.phase = Phase::Dead(destroyer);
    }

    /// The work of a hook is over.
    pub fn on_hook(&mut self, cx: &mut Cx<'_>, op: Op, result: Result<HookOutput, Failure>) {
        let awaited = match &self.phase {
            Phase::Preparing(pipeline) => pipeline.awaited(),
            Phase::Waiting
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Stopping { .. }
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => None,
        };
        if awaited.is_none_or(|awaited| awaited.op != op) {
            return cx.count_stale();
        }
        let outcome = match result {
            Ok(output) => {
                self.hook_done(cx, output.env);
                Ok(())
            }
            Err(failure) => Err(failure),
        };
        if let Phase::Preparing(pipeline) = &mut self.phase {
            pipeline.answer(op, outcome);
        }
    }

    fn grace(&self, cx: &Cx<'_>) -> Span {
        self.spec.kill_timeout(cx.config.max_kill_timeout)
    }

    /// Asks the running process to end, after its shutdown delay if it is for good.
    fn begin_stop(&mut self, cx: &mut Cx<'_>, with_delay: bool) {
        let delay = self.spec.task().shutdown_delay;
        if with_delay && !delay.is_zero() {
            let message = format!("Waiting for shutdown_delay of {delay} before killing the task.");
            self.event(cx, EventType::WaitingShutdownDelay, &message);
            self.phase = Phase::Delaying(cx.now.at + delay);
            return;
        }
        self.ask_to_stop(cx);
    }

    fn ask_to_stop(&mut self, cx: &mut Cx<'_>) {
        let Some(launch) = self.launch_id() else {
            return;
        };
        let grace = self.grace(cx);
        let awaited = cx.awaited(cx.config.patience.signal.min(grace));
        let signal = self.spec.task().kill_signal.clone();
        let effect = DriverEffect::Stop {
            op: awaited.op,
            launch,
            signal,
            grace,
        };
        cx.drive_after_save(&self.spec.driver, &self.spec.key, effect);
        self.phase = Phase::Stopping {
            awaited: Some(awaited),
            until: cx.now.at + grace,
        };
    }

    fn launch_id(&self) -> Option<LaunchId> {
        self.record.launch.as_ref().map(|launch| launch.id)
    }

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
        phase.into_iter().chain(signal).min()
    }

    /// Does what is due. Calls that are not due change nothing.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.expire_signals(cx);
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

    /// While the store cannot write, nobody outside was asked yet: time that counts against others
    /// begins when they are.
    fn wait_for_the_store(&mut self, cx: &Cx<'_>) {
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
    fn recover_overdue(&mut self, cx: &mut Cx<'_>) {
        cx.count_overdue();
        let message = "the driver could not say what became of the task";
        self.event(cx, EventType::FailedRestoring, message);
        self.phase = Phase::Cleaning(Destroyer::default());
    }

    /// The launch is over: whoever waits for a signal's arrival waits no longer.
    pub(super) fn answer_signals(&mut self, cx: &mut Cx<'_>) {
        for signal in self.signals.drain(..) {
            let why = "the task ended; the signal may or may not have arrived";
            let refusal = Refusal::Conflict(why.to_owned());
            cx.send(Effect::Reply(signal.request, Reply::Refused(refusal)));
        }
    }

    fn expire_signals(&mut self, cx: &mut Cx<'_>) {
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
