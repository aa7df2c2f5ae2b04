//! The task runner: one task's life, from its gate to its end, through every restart.
//!
//! The phase says where the task is; the record ([`TaskRecord`]) holds what must outlive the
//! agent. Each input has one method with a match over every phase. Where latched facts meet, the
//! order is: a kill before an exit before a restart.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::destroyer::Destroyer;
use super::hooks::UPDATE;
use super::identities::Identities;
pub use super::phase::{Phase, Stop, TaskTimer};
use super::restart::{self, Decision, Ending, Policy, WITHIN_POLICY};
use super::scripts::Script;
use super::sessions::Session;
use super::spec::TaskSpec;
use super::templates::Templates;
use crate::cx::Cx;
use crate::ids::{RequestId, Run};
use crate::ledger::Haste;
use crate::model::alloc::{ClientStatus, DriverNetwork, ExitResult, TaskLife, TaskState};
use crate::model::event::{EventType, TaskEvent};
use crate::op::Op;
use crate::operations::{Owner, Purpose};
use crate::store::record::{AllocRecord, Launch, Loss, TaskRecord};
use crate::store::{Key, Record};
use crate::time::{Span, Timestamp};

/// What the task runner sees of its allocation while it handles one input.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The allocation's record.
    pub alloc: &'a AllocRecord,
    /// Whether the stage of this task has begun and is not over.
    pub gate_open: bool,
}

/// A request to end for good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Kill {
    /// What the event says instead of the usual words.
    pub reason: Option<String>,
    /// Whether the task has failed with it.
    #[serde(default)]
    pub fails: bool,
    /// Whether it does not wait for its shutdown delay.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub at_once: bool,
}

impl Kill {
    /// A script failed that must not.
    pub(super) fn of_a_script() -> Kill {
        Kill {
            reason: Some("Template script failed, task is being killed".to_owned()),
            fails: true,
            at_once: false,
        }
    }
}

/// A signal that the driver has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct PendingSignal {
    pub(super) op: Op,
    /// Which operator waits; none if it tells of a template.
    pub(super) request: Option<RequestId>,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskRunner {
    pub(super) spec: TaskSpec,
    pub(super) record: Arc<TaskRecord>,
    pub(super) phase: Phase,
    pub(super) kill: Option<Kill>,
    pub(super) signals: Vec<PendingSignal>,
    /// Which secrets directory it has, once that was seen to.
    #[serde(default)]
    pub(crate) secrets: String,
    #[serde(default)]
    pub(crate) identities: Identities,
    #[serde(default)]
    pub(super) templates: Templates,
    /// Those that run beside it.
    #[serde(default)]
    pub(super) scripts: Vec<Script>,
    /// What people have open beside it.
    #[serde(default)]
    pub(super) sessions: Vec<Session>,
    /// Whether something happened that its allocation has not noted yet.
    changed: bool,
}

impl TaskRunner {
    /// A task that was never seen before.
    pub fn new(cx: &mut Cx<'_>, spec: TaskSpec) -> TaskRunner {
        let mut runner = TaskRunner::with(spec, Arc::default(), Phase::Waiting);
        runner.event(cx, EventType::Received, "Task received by client");
        runner
    }

    fn with(spec: TaskSpec, record: Arc<TaskRecord>, phase: Phase) -> TaskRunner {
        TaskRunner {
            spec,
            record,
            phase,
            kill: None,
            signals: Vec::new(),
            secrets: String::new(),
            identities: Identities::default(),
            templates: Templates::default(),
            scripts: Vec::new(),
            sessions: Vec::new(),
            changed: false,
        }
    }

    /// A task of an earlier life of the agent.
    pub fn restore(cx: &mut Cx<'_>, spec: TaskSpec, record: Arc<TaskRecord>) -> TaskRunner {
        let mut runner = TaskRunner::with(spec, record, Phase::Waiting);
        if runner.record.failing {
            runner.kill = Some(Kill::of_a_script());
        }
        runner.phase = runner.restored_phase(cx);
        runner
    }

    /// A task of an earlier life of the agent whose record cannot be read. It is dead, whatever it
    /// was; what may be left of it is known from the record of its allocation.
    pub fn unreadable(cx: &mut Cx<'_>, spec: TaskSpec, alloc: &AllocRecord) -> TaskRunner {
        let known = alloc.launches.get(&spec.key.task);
        let run = Run(u32::from(known.is_some()));
        let launch = known.map(|id| Launch {
            id: *id,
            run,
            ..Launch::default()
        });
        let mut record = TaskRecord {
            launch,
            runs: run,
            ..TaskRecord::default()
        };
        record.state.state = TaskLife::Dead;
        record.state.finished_at = Some(cx.now.wall);
        let dead = Phase::Dead(Destroyer::default());
        let mut runner = TaskRunner::with(spec, Arc::new(record), dead);
        let why = "The record of the task cannot be read: it is not started again";
        let event = TaskEvent::new(EventType::FailedRestoring, cx.now.wall, why);
        // One that completed before stays so.
        let failed = alloc.status != ClientStatus::Complete;
        runner.push(cx, if failed { event.fails_task() } else { event });
        runner
    }

    fn restored_phase(&mut self, cx: &mut Cx<'_>) -> Phase {
        let dead = self.record.state.state == TaskLife::Dead;
        match &self.record.launch {
            _ if dead => Phase::Dead(Destroyer::default()),
            Some(
                Launch { exit: Some(_), .. }
                | Launch {
                    start_failed: Some(_),
                    ..
                },
            ) => Phase::Cleaning(Destroyer::default()),
            Some(Launch { id, .. }) => {
                let launch = *id;
                self.ask_to_recover(cx, launch)
            }
            None => match self.record.paused_until {
                Some(until) => Phase::Pausing(cx.now.at + self.rest_of_pause(cx, until)),
                None => Phase::Waiting,
            },
        }
    }

    /// What is left of a pause: no more than the whole of it, whatever the wall clock did meanwhile.
    fn rest_of_pause(&self, cx: &Cx<'_>, until: Timestamp) -> Span {
        let began = self.record.state.last_restart.unwrap_or(cx.now.wall);
        let whole = (until - began).max(Span::ZERO);
        (until - cx.now.wall).clamp(Span::ZERO, whole)
    }

    /// Its name, its job's words.
    pub fn spec(&self) -> &TaskSpec {
        &self.spec
    }

    /// The state that is reported.
    pub fn state(&self) -> &TaskState {
        &self.record.state
    }

    /// What is remembered.
    pub fn record(&self) -> &Arc<TaskRecord> {
        &self.record
    }

    /// What the driver knows of its network, while it has a launch.
    pub fn network(&self) -> Option<&DriverNetwork> {
        self.record.launch.as_ref()?.network.as_ref()
    }

    /// Where it is.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Whether it ended and is not started again by itself.
    pub fn is_dead(&self) -> bool {
        matches!(self.phase, Phase::Dead(_))
    }

    /// Whether it ended, and nothing but its remains is left to be seen to: it is not started again by
    /// itself.
    pub fn is_terminal(&self) -> bool {
        let launch = self.record.launch.as_ref();
        let exit = launch.and_then(|launch| launch.exit.as_ref());
        let succeeded = exit.is_some_and(ExitResult::is_success);
        let done = succeeded && !self.spec.restarts_on_success() && !self.record.restarting;
        self.is_dead() || done
    }

    /// Whether it is dead and nobody should wait for its remains: there are none, or they resist.
    pub fn is_finished(&self) -> bool {
        match &self.phase {
            Phase::Dead(destroyer) => !self.has_remains() || destroyer.gave_up(),
            Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_) => false,
        }
    }

    /// Whether it is reported to run and its end is not known: remains of an earlier run that are
    /// garbage-collected are none.
    pub fn runs(&self) -> bool {
        let launch = self.record.launch.as_ref();
        let ended = launch.is_some_and(|launch| launch.exit.is_some());
        self.record.state.state == TaskLife::Running && !ended
    }

    /// Whether it is asked to end, for good or to start again.
    pub fn is_ending(&self) -> bool {
        self.kill.is_some() || self.record.restarting
    }

    /// Whether something of it may be alive or lie around.
    pub fn has_remains(&self) -> bool {
        self.record.launch.is_some()
    }

    /// Takes a new version of the job that needs no new start. Its restart policy holds from now.
    pub fn update(&mut self, cx: &mut Cx<'_>, spec: TaskSpec) {
        let before = core::mem::replace(&mut self.spec, spec);
        for hook in UPDATE {
            if !self.is_dead() && hook.is_outdated(before.task(), self.spec.task()) {
                hook.update(self, cx, before.task());
            }
        }
    }

    /// Does what can be done without an answer from outside. Returns whether that was anything
    /// that others may look at.
    pub fn advance(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) -> bool {
        let before = (
            core::mem::discriminant(&self.phase),
            self.record.state.state,
        );
        self.step(cx, scope);
        before
            != (
                core::mem::discriminant(&self.phase),
                self.record.state.state,
            )
    }

    fn step(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) {
        match &mut self.phase {
            Phase::Waiting if self.kill.is_some() => self.set_dead(cx),
            Phase::Waiting if scope.gate_open => self.prepare(cx, scope),
            Phase::Preparing(_) => self.continue_prestart(cx, scope),
            Phase::Running => {
                self.check_identities(cx);
                self.check_templates(cx, scope);
            }
            Phase::Cleaning(destroyer) | Phase::Dead(destroyer) => {
                if let Some(launch) = &self.record.launch {
                    // Somebody waits for what was told to end.
                    let is_awaited = self.kill.is_some() || self.record.restarting;
                    let haste = match launch.exit.is_some() && !is_awaited {
                        true => Haste::Soon,
                        false => Haste::AtOnce,
                    };
                    destroyer.begin(cx, &self.spec, launch.id, haste);
                }
            }
            Phase::Waiting
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Pausing(_) => {}
        }
    }

    /// The process is over: remembers how, and cleans up.
    pub(super) fn ended(&mut self, cx: &mut Cx<'_>, result: ExitResult) {
        let Some(launch) = &self.record.launch else {
            return;
        };
        if launch.exit.is_some() || self.is_dead() {
            return;
        }
        self.forget_scripts(cx);
        self.end_sessions(cx);
        if self.record.state.state != TaskLife::Running {
            self.mark_running(cx);
        }
        let event = terminated(cx.now.wall, &result);
        let record = self.edit();
        if let Some(launch) = &mut record.launch {
            launch.exit = Some(result);
        }
        self.push(cx, event);
        if !matches!(self.phase, Phase::Cleaning(_)) {
            self.clean_up(cx);
        }
    }

    /// Nothing is awaited any more but that nothing of the launch is left.
    pub(super) fn clean_up(&mut self, cx: &mut Cx<'_>) {
        if let Some(op) = self.awaited() {
            cx.shared.operations.end(op);
        }
        self.phase = Phase::Cleaning(Destroyer::default());
    }

    /// Asks for something of which the answer may take `limit`.
    pub(super) fn operation(&self, cx: &mut Cx<'_>, purpose: Purpose, limit: Span) -> Op {
        cx.operation(Owner::Task(self.spec.key.clone()), purpose, limit)
    }

    /// Nothing of the launch is left.
    pub(super) fn cleaned(&mut self, cx: &mut Cx<'_>, exit: Option<ExitResult>) {
        if self.is_dead() {
            if let Some(launch) = self.edit().launch.take() {
                cx.forget_launch(&self.spec.driver, launch.id);
            }
            return self.save(cx);
        }
        let Some(launch) = &self.record.launch else {
            return;
        };
        if launch.exit.is_none() && launch.start_failed.is_none() {
            let result = exit
                .unwrap_or_else(|| ExitResult::unknown("the process ended, and how is not known"));
            self.ended(cx, result);
        }
        self.decide(cx);
    }

    /// A run is over and nothing of it is left: what follows.
    fn decide(&mut self, cx: &mut Cx<'_>) {
        self.answer_signals(cx);
        let record = self.edit();
        let launch = record.launch.take();
        let restarting = core::mem::take(&mut record.restarting);
        let unhealthy = core::mem::take(&mut record.unhealthy);
        let (exit, failed_start, lost) = match launch {
            Some(launch) => {
                cx.forget_launch(&self.spec.driver, launch.id);
                (launch.exit, launch.start_failed, launch.lost)
            }
            None => (None, None, None),
        };
        if self.kill.is_some() {
            if failed_start.is_none() {
                self.event(cx, EventType::Killed, "Task successfully killed");
            }
            return self.set_dead(cx);
        }
        self.follow(
            cx,
            match (restarting, lost, failed_start, exit) {
                (true, _, _, _) if !unhealthy => Ending::Asked,
                (_, Some(Loss::Reboot), _, _) => Ending::Rebooted,
                (true, _, _, _) => Ending::Unhealthy,
                (false, Some(Loss::Start), _, _) => Ending::StartLost,
                (false, None, Some(recoverable), _) => Ending::StartFailed { recoverable },
                (false, None, None, exit) => {
                    Ending::Exit(exit.unwrap_or_else(|| ExitResult::unknown("never started")))
                }
            },
        );
    }

    /// What follows an ending, by the restart policy.
    pub(super) fn follow(&mut self, cx: &mut Cx<'_>, ending: Ending) {
        let policy = Policy {
            rules: self.spec.restart_rules(),
            on_success: self.spec.restarts_on_success(),
            is_batch: self.spec.job().job_type.runs_to_completion(),
        };
        let budget = &mut self.edit().budget;
        match restart::decide(&policy, budget, &ending, cx.now.wall) {
            Decision::Done => self.set_dead(cx),
            Decision::Fail { reason } => self.fail(cx, &reason),
            Decision::Restart {
                delay,
                jitter,
                reason,
            } => {
                let delay = if jitter { cx.jittered(delay) } else { delay };
                self.pause(cx, delay, reason);
            }
        }
    }

    fn fail(&mut self, cx: &mut Cx<'_>, reason: &str) {
        let event = TaskEvent::new(EventType::NotRestarting, cx.now.wall, reason)
            .detail("restart_reason", reason)
            .fails_task();
        self.push(cx, event);
        self.set_dead(cx);
    }

    fn pause(&mut self, cx: &mut Cx<'_>, delay: Span, reason: &str) {
        let message = match reason {
            "" | WITHIN_POLICY => format!("Task restarting in {delay}"),
            _ => format!("{reason} - Task restarting in {delay}"),
        };
        let event = TaskEvent::new(EventType::Restarting, cx.now.wall, message)
            .detail("restart_reason", reason)
            .detail("start_delay", delay.0);
        let wall = cx.now.wall;
        let record = self.edit();
        record.state.state = TaskLife::Pending;
        record.state.restarts += 1;
        record.state.last_restart = Some(wall);
        record.paused_until = Some(wall + delay);
        self.push(cx, event);
        self.phase = Phase::Pausing(cx.now.at + delay);
    }

    /// The task ends for good, unless all tasks are asked to run again.
    pub(super) fn set_dead(&mut self, cx: &mut Cx<'_>) {
        self.answer_signals(cx);
        self.stop_watching(cx);
        self.forget_identities(cx);
        let wall = cx.now.wall;
        let record = self.edit();
        record.state.state = TaskLife::Dead;
        record.state.finished_at.get_or_insert(wall);
        record.restarting = false;
        record.unhealthy = false;
        record.failing = false;
        record.paused_until = None;
        self.phase = Phase::Dead(Destroyer::default());
        self.save(cx);
    }

    /// A task that ended runs again, from its gate, as soon as it is clean. `false` if it did not
    /// end, or if that it is clean may never come.
    pub fn rerun(&mut self, cx: &mut Cx<'_>) -> bool {
        if matches!(self.phase, Phase::Cleaning(_)) && self.kill.is_none() {
            let record = self.edit();
            record.restarting = true;
            record.unhealthy = false;
            self.save(cx);
            return true;
        }
        if !self.is_dead() || self.has_remains() {
            return false;
        }
        self.kill = None;
        let record = self.edit();
        record.state.state = TaskLife::Pending;
        record.state.finished_at = None;
        self.phase = Phase::Waiting;
        self.save(cx);
        true
    }

    pub(super) fn mark_running(&mut self, cx: &mut Cx<'_>) {
        let wall = cx.now.wall;
        let record = self.edit();
        record.state.state = TaskLife::Running;
        record.state.started_at = Some(wall);
        // A start that was lost may have come to run for a moment.
        if record
            .launch
            .as_ref()
            .is_some_and(|launch| launch.lost.is_none())
        {
            record.budget.lost_starts = 0;
        }
        self.event(cx, EventType::Started, "Task started by client");
    }

    /// Whether something happened since the last question.
    pub fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }

    /// The record, for a change. Whoever changes it saves it.
    pub(crate) fn edit(&mut self) -> &mut TaskRecord {
        self.changed = true;
        Arc::make_mut(&mut self.record)
    }

    pub(super) fn save(&self, cx: &mut Cx<'_>) {
        let key = Key::Task(self.spec.key.alloc, self.spec.key.task.clone());
        cx.remember(key, Record::Task(self.record.clone()));
    }

    /// Something happened to the task.
    pub fn push(&mut self, cx: &mut Cx<'_>, event: TaskEvent) {
        let event = Arc::new(event);
        cx.emit(&self.spec.key, &event);
        self.edit().state.push(event);
        self.save(cx);
    }

    pub(crate) fn event(&mut self, cx: &mut Cx<'_>, kind: EventType, message: &str) {
        self.push(cx, TaskEvent::new(kind, cx.now.wall, message));
    }
}

fn terminated(time: Timestamp, result: &ExitResult) -> TaskEvent {
    let code = result
        .code
        .map_or_else(|| "unknown".to_owned(), |code| code.to_string());
    let mut message = format!("Exit Code: {code}");
    if result.signal != 0 {
        message.push_str(&format!(", Signal: {}", result.signal));
    }
    if let Some(words) = &result.message {
        message.push_str(&format!(", Exit Message: \"{words}\""));
    }
    if result.oom_killed {
        message.push_str(", OOM Killed");
    }
    let event = TaskEvent::new(EventType::Terminated, time, message)
        .detail("exit_code", code)
        .detail("signal", result.signal)
        .detail("oom_killed", result.oom_killed);
    match &result.message {
        Some(words) => event.detail("exit_message", words),
        None => event,
    }
}
