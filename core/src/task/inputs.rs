//! Inputs of a task: one method for each input, and in it one arm for each phase.

use std::collections::BTreeMap;

use super::runner::{Phase, Stop, TaskRunner};
use crate::cx::Cx;
use crate::input::{DriverInput, Found, HookOutput};
use crate::model::alloc::{DriverNetwork, ExitResult};
use crate::model::event::{EventType, TaskEvent};
use crate::op::{Failure, Op};
use crate::operations::Owner;
use crate::store::record::Loss;
use crate::time::Instant;

impl TaskRunner {
    /// A driver says something of this task. What is late, doubled or of an earlier launch is
    /// dropped and counted.
    pub fn on_driver(&mut self, cx: &mut Cx<'_>, input: DriverInput) {
        let mut until = None;
        if let Some((op, succeeded)) = input.answers() {
            let owner = Owner::Task(self.spec.key.clone());
            match cx.shared.operations.answered(&owner, op, succeeded) {
                Some(operation) => until = operation.until(),
                None => return cx.count_stale(),
            }
        }
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
            DriverInput::Started { op, network, .. } => self.on_started(cx, op, network),
            DriverInput::StartFailed { op, failure, .. } => {
                self.on_start_failed(cx, op, failure, None);
            }
            DriverInput::StartLost { op, why, .. } => {
                self.on_start_failed(cx, op, Failure::recoverable(why), Some(Loss::Start));
            }
            DriverInput::Recovered {
                op, found, network, ..
            } => self.on_recovered(cx, op, found, network),
            DriverInput::Exited { result, .. } => self.on_exited(cx, result),
            DriverInput::Stopped { op, result, .. } => self.on_stopped(cx, op, result, until),
            DriverInput::Signaled { op, result, .. } => self.on_signaled(cx, op, result),
            DriverInput::Executed { op, result, .. } => self.on_executed(cx, op, result),
            DriverInput::SessionOpened { op, result, .. } => {
                self.on_session_opened(cx, op, result);
            }
            DriverInput::SessionEnded { op, launch } => self.on_session_ended(cx, op, launch),
            DriverInput::Destroyed { op, result, .. } => self.on_destroyed(cx, op, result),
            DriverInput::Event {
                message, details, ..
            } => self.on_event(cx, &message, details),
        }
    }

    /// The driver's own words, for people.
    fn on_event(&mut self, cx: &mut Cx<'_>, message: &str, details: BTreeMap<String, String>) {
        if self.is_dead() {
            return cx.count_stale();
        }
        let mut event = TaskEvent::new(EventType::Driver, cx.now.wall, message);
        event.details = details;
        self.push(cx, event.detail("driver_message", message));
    }

    fn on_started(&mut self, cx: &mut Cx<'_>, op: Op, network: Option<DriverNetwork>) {
        match &self.phase {
            Phase::Starting(asked) if *asked == op => {
                self.take_network(cx, network);
                self.mark_running(cx);
                self.now_runs(cx);
            }
            Phase::Starting(_)
            | Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => cx.count_stale(),
        }
    }

    /// What only the driver knows of the network is remembered with the launch, if it can be believed.
    fn take_network(&mut self, cx: &mut Cx<'_>, network: Option<DriverNetwork>) {
        match network.map(DriverNetwork::checked) {
            None => {}
            Some(Ok(network)) => {
                if self.network() != Some(&network)
                    && let Some(launch) = &mut self.edit().launch
                {
                    launch.network = Some(network);
                    self.save(cx);
                }
            }
            Some(Err(why)) => {
                let message = format!("What the driver reports of the network is ignored: {why}");
                self.event(cx, EventType::Driver, &message);
            }
        }
    }

    /// The process lives: a kill comes before a restart before peace.
    fn now_runs(&mut self, cx: &mut Cx<'_>) {
        self.phase = Phase::Running;
        if let Some(kill) = &self.kill {
            let with_delay = !kill.at_once;
            self.begin_stop(cx, with_delay);
        } else if self.record.restarting {
            self.begin_stop(cx, false);
        }
    }

    /// It was not started. If it is `lost`, the program had no part in that, so another start need not be
    /// paid for.
    pub(super) fn on_start_failed(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        failure: Failure,
        lost: Option<Loss>,
    ) {
        match &self.phase {
            Phase::Starting(asked) if *asked == op => {
                if lost.is_some()
                    && let Some(launch) = &mut self.edit().launch
                {
                    launch.lost = lost;
                }
                self.give_up_start(cx, failure);
            }
            Phase::Starting(_)
            | Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
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

    fn on_recovered(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        found: Found,
        network: Option<DriverNetwork>,
    ) {
        match &self.phase {
            Phase::Recovering(asked) if *asked == op => {}
            Phase::Recovering(_)
            | Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Starting(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => return cx.count_stale(),
        }
        match found {
            Found::Running => {
                self.take_network(cx, network);
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
                record.unhealthy = false;
                self.phase = Phase::Waiting;
                self.save(cx);
            }
            Found::Rebooted => {
                if let Some(launch) = &mut self.edit().launch {
                    launch.lost = Some(Loss::Reboot);
                }
                let why = "the machine restarted while the task ran";
                self.ended(cx, ExitResult::unknown(why));
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
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_) => {
                let is_saved = self
                    .record
                    .launch
                    .as_ref()
                    .is_some_and(|l| l.exit.is_some());
                if is_saved {
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

    /// The grace ends `until` then, which was counted from when the request left.
    fn on_stopped(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        result: Result<(), Failure>,
        until: Option<Instant>,
    ) {
        match &self.phase {
            Phase::Stopping(Stop::Asked(asked)) if *asked == op => match result {
                Ok(()) => {
                    let over = until.unwrap_or(cx.now.at + self.grace(cx));
                    self.phase = Phase::Stopping(Stop::Sent(over));
                }
                // A signal that cannot be sent ends nobody: force follows at once.
                Err(_) => self.clean_up(cx),
            },
            Phase::Stopping(_)
            | Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => cx.count_stale(),
        }
    }

    pub(super) fn on_destroyed(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        result: Result<Option<ExitResult>, Failure>,
    ) {
        match &mut self.phase {
            // That nothing of the launch lives any more is true whichever try it answers.
            Phase::Cleaning(destroyer) | Phase::Dead(destroyer)
                if destroyer.awaited() == Some(op) || result.is_ok() =>
            {
                match result {
                    Ok(exit) => {
                        destroyer.succeeded(cx, &self.spec.key);
                        self.cleaned(cx, exit);
                    }
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
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Pausing(_) => cx.count_stale(),
        }
    }

    /// The answer of a hook's worker.
    pub fn on_hook(&mut self, cx: &mut Cx<'_>, op: Op, result: Result<HookOutput, Failure>) {
        let owner = Owner::Task(self.spec.key.clone());
        let operations = &mut cx.shared.operations;
        match operations.answered(&owner, op, result.is_ok()) {
            Some(_) => self.hook_over(cx, op, result),
            None => cx.count_stale(),
        }
    }

    /// The work of a hook is over, or given up.
    pub(super) fn hook_over(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        result: Result<HookOutput, Failure>,
    ) {
        if self.watched_again(cx, op, &result) || self.identities_renewed(cx, op, &result) {
            return;
        }
        let awaited = match &self.phase {
            Phase::Preparing(pipeline) => pipeline.awaited(),
            Phase::Waiting
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => None,
        };
        if awaited != Some(op) {
            return cx.count_stale();
        }
        let outcome = match result {
            Ok(output) => self.hook_done(cx, op, output),
            Err(failure) if self.signs_again(cx, op, &failure) => return,
            Err(failure) => Err(failure),
        };
        if outcome.is_err() {
            cx.shared.operations.end(op);
        }
        if let Phase::Preparing(pipeline) = &mut self.phase {
            pipeline.answer(op, outcome);
        }
    }
}
