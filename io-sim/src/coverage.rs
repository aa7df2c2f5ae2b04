//! Which inputs reached which states, and what was told and answered: what a search came by.
//!
//! `sim-tests/coverage.txt` lists what is reached often enough; the test `coverage` fails when a
//! line is not reached any more, when a property has nothing to check, or a situation never
//! happens.

use std::collections::BTreeMap;

use drover_core::agent::requests::{Request, Subject};
use drover_core::agent::{Agent, Input, TimerName};
use drover_core::alloc::runner::{AllocRunner, AllocTimer, Phase as AllocPhase};
use drover_core::effect::{Effect, Notification, Refusal, Reply};
use drover_core::input::{
    DeviceReport, DriverReport, HookInput, NodeInput, ShutdownMode, StoreInput, TemplateInput,
};
use drover_core::model::placement::PlacementFailure;
use drover_core::op::Op;
use drover_core::operations::{Owner, Purpose};
use drover_core::task::runner::{Phase, TaskRunner, TaskTimer};

/// One thing that was reached: whose, in which state, and by what.
type Point = (&'static str, &'static str, &'static str);

/// Everything that was reached, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    points: BTreeMap<Point, u64>,
}

impl Coverage {
    /// Adds what another run reached.
    pub fn merge(&mut self, other: &Coverage) {
        for (point, times) in &other.points {
            *self.points.entry(*point).or_default() += times;
        }
    }

    /// One line for each thing that was reached, sorted, and how often it was.
    pub fn lines(&self) -> impl Iterator<Item = (String, u64)> {
        let line = |(who, state, what): &Point| format!("{who}: {state} × {what}");
        self.points
            .iter()
            .map(move |(point, times)| (line(point), *times))
    }

    /// An input, before the agent takes it; none is a timeout.
    pub(crate) fn input(&mut self, agent: &Agent, input: Option<&Input>) {
        let view = agent.view();
        match input {
            Some(Input::Driver(key, reported)) => {
                let task = view.alloc(key.alloc).and_then(|a| a.task(&key.task));
                self.task(task, reported.name());
            }
            Some(Input::Hook(hook)) => {
                let what = hook_answer(hook);
                let alloc = view.alloc(hook.alloc);
                match &hook.task {
                    Some(name) => self.task(alloc.and_then(|alloc| alloc.task(name)), what),
                    None => self.alloc(alloc, what),
                }
            }
            Some(Input::Template(key, reported)) => {
                let task = view.alloc(key.alloc).and_then(|a| a.task(&key.task));
                self.task(task, template(reported));
            }
            Some(Input::Check(check)) => {
                let what = match check.result {
                    Ok(_) => "a service answers",
                    Err(_) => "a service does not answer",
                };
                self.alloc(view.alloc(check.alloc), what);
            }
            Some(Input::Request(_, asked)) => self.request(agent, asked),
            Some(Input::Store(reported)) => self.store(agent, reported),
            Some(Input::Shutdown(mode)) => {
                let what = match mode {
                    ShutdownMode::KeepTasks => "shut down and keep tasks",
                    ShutdownMode::StopTasks => "shut down and stop tasks",
                };
                for alloc in view.allocs() {
                    self.alloc(Some(alloc), what);
                    for task in alloc.tasks() {
                        self.task(Some(task), what);
                    }
                }
                self.reach("agent", "lives", what);
            }
            Some(Input::Node(report)) => self.node(agent, report),
            Some(Input::Server(_)) => self.reach("server", "any", "input"),
            None => self.timer(agent),
        }
    }

    /// An effect, as it leaves.
    pub(crate) fn effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Notify(Notification::Event(_, event)) => {
                self.reach("told", "event", event.kind.as_str());
            }
            Effect::Reply(_, reply) => self.reach("told", "reply", answer(reply)),
            Effect::Driver(..)
            | Effect::Forget(..)
            | Effect::Hook(_)
            | Effect::Check(_)
            | Effect::Node(_)
            | Effect::Server(_)
            | Effect::Store(_)
            | Effect::Notify(Notification::Index(_) | Notification::Notice(_))
            | Effect::Stopped => {}
        }
    }

    /// An allocation's status, as it is shown.
    pub(crate) fn status(&mut self, alloc: &AllocRunner) {
        let record = alloc.record();
        self.reach("status", record.desired.as_str(), record.status.as_str());
    }

    fn node(&mut self, agent: &Agent, report: &NodeInput) {
        let known = agent.view().is_fingerprinted();
        let state = if known {
            "is known"
        } else {
            "is not known yet"
        };
        let what = match report {
            NodeInput::Probed { result: Ok(_), .. } => "a probe answers",
            NodeInput::Probed { result: Err(_), .. } => "a probe fails",
            NodeInput::Driver { report, .. } => match report {
                DriverReport::Fingerprint(_) => "a driver's condition",
                DriverReport::Failed(_) => "a driver does not know",
                DriverReport::Ended(_) => "a driver stream ended",
            },
            NodeInput::DiskUsage { .. } => "how full the disk is",
            NodeInput::DirUsage { .. } => "how much directories take",
            NodeInput::TimeZone { result: Ok(_), .. } => "a time zone",
            NodeInput::TimeZone { result: Err(_), .. } => "a time zone is not known",
            NodeInput::Image { result: Ok(_), .. } => "an image is looked up",
            NodeInput::Image { result: Err(_), .. } => "an image is not looked up",
            NodeInput::Volume { result: Ok(_), .. } => "a volume is made or removed",
            NodeInput::Volume { result: Err(_), .. } => "a volume is not made or removed",
            NodeInput::Devices { report, .. } => match report {
                DeviceReport::Devices(_) => "a plugin's devices",
                DeviceReport::Disabled(_) => "a plugin has nothing to do",
                DeviceReport::Ended(_) => "a plugin stream ended",
            },
        };
        self.reach("machine", state, what);
    }

    fn reach(&mut self, who: &'static str, state: &'static str, what: &'static str) {
        *self.points.entry((who, state, what)).or_default() += 1;
    }

    fn task(&mut self, task: Option<&TaskRunner>, what: &'static str) {
        self.reach("task", task.map_or("gone", task_state), what);
    }

    fn alloc(&mut self, alloc: Option<&AllocRunner>, what: &'static str) {
        self.reach("allocation", alloc.map_or("gone", alloc_state), what);
    }

    fn store(&mut self, agent: &Agent, reported: &StoreInput) {
        let what = match reported {
            StoreInput::Saved(_) => "saved",
            StoreInput::Failed(..) => "not saved",
        };
        let trouble = agent.view().store_error();
        let state = trouble.map_or("writes", |_| "tries again");
        self.reach("store", state, what);
    }

    fn request(&mut self, agent: &Agent, asked: &Request) {
        let what = asked.get().name();
        match asked.get().subject() {
            Subject::Alloc(id) => {
                let alloc = agent.view().alloc(id);
                self.alloc(alloc, what);
                for task in alloc.into_iter().flat_map(AllocRunner::tasks) {
                    self.task(Some(task), what);
                }
            }
            Subject::Job(job) => {
                let state = match agent.view().job(&job) {
                    None => "unknown",
                    Some(record) if record.purge => "going",
                    Some(record) if record.job.stop => "stopped",
                    Some(_) => "wanted",
                };
                self.reach("job", state, what);
            }
            Subject::Deployment(id) => {
                let known = agent.view().deployment(id);
                let state = known.map_or("unknown", |one| one.status.as_str());
                self.reach("deployment", state, what);
            }
            Subject::Variable(key) => {
                let there = agent.view().variables().contains_key(key);
                self.reach("variable", if there { "there" } else { "not there" }, what);
            }
            Subject::Namespace(name) => {
                let there = agent.view().has_namespace(name);
                let state = if there { "there" } else { "not there" };
                self.reach("namespace", state, what);
            }
            Subject::Acl => {
                let begun = agent.view().acl_bootstrapped().is_some();
                let state = if begun { "begun" } else { "not begun" };
                self.reach("acl", state, what);
            }
            Subject::Node => self.reach("node", node_state(agent), what),
            Subject::Everything => self.reach("job", "any", what),
        }
    }

    fn operation(&mut self, agent: &Agent, op: Op) {
        let Some(operation) = agent.view().operations().get(op) else {
            return;
        };
        let what = overdue(&operation.purpose);
        let alloc = |id| agent.view().alloc(id);
        match &operation.owner {
            Owner::Task(key) => {
                let alloc = alloc(key.alloc);
                self.task(alloc.and_then(|alloc| alloc.task(&key.task)), what);
            }
            Owner::Alloc(id) => self.alloc(alloc(*id), what),
            Owner::Machine => self.reach("machine", "any", what),
            Owner::Server => self.reach("server", "any", what),
            Owner::Job(_) => self.reach("job", "follows images", what),
        }
    }

    fn timer(&mut self, agent: &Agent) {
        match agent.poll_timeout() {
            Some((_, TimerName::Store)) => self.reach("store", "waits", "time"),
            Some((_, TimerName::Acl)) => self.reach("acl", "begun", "time"),
            Some((_, TimerName::Garbage)) => self.reach("garbage", "any", "time"),
            Some((_, TimerName::Drain)) => self.reach("node", node_state(agent), "time"),
            Some((_, TimerName::Periodic(_))) => self.reach("job", "periodic", "time"),
            Some((_, TimerName::Images(_))) => self.reach("job", "follows images", "time"),
            Some((_, TimerName::Job(_))) => self.reach("job", "wanted", "time"),
            Some((_, TimerName::Progress(_))) => self.reach("deployment", "running", "time"),
            Some((_, TimerName::Alloc(id, timer))) => {
                let alloc = agent.view().alloc(id);
                match &timer {
                    AllocTimer::Task(name, timer) => {
                        let task = alloc.and_then(|alloc| alloc.task(name));
                        self.task(task, task_timer(*timer));
                    }
                    AllocTimer::AskAgain
                    | AllocTimer::ShutdownDelay
                    | AllocTimer::Health
                    | AllocTimer::Check
                    | AllocTimer::MaxRunDuration
                    | AllocTimer::NetworkRetry
                    | AllocTimer::DestroyRetry => self.alloc(alloc, alloc_timer(&timer)),
                }
            }
            Some((_, TimerName::Operation(op))) => self.operation(agent, op),
            Some((_, TimerName::Machine)) => self.reach("machine", "any", "time"),
            Some((_, TimerName::Server(_))) => self.reach("server", "any", "time"),
            None => {}
        }
    }
}

fn task_state(task: &TaskRunner) -> &'static str {
    match task.phase() {
        Phase::Waiting => "waiting",
        Phase::Preparing(_) => "preparing",
        Phase::Starting(_) => "starting",
        Phase::Recovering(_) => "recovering",
        Phase::Running => "running",
        Phase::Delaying(_) => "delaying",
        Phase::Deregistering(_) => "deregistering",
        Phase::Stopping(_) => "stopping",
        Phase::Cleaning(_) => "cleaning",
        Phase::Pausing(_) => "pausing",
        Phase::Dead(_) if task.has_remains() => "dead, with remains",
        Phase::Dead(_) => "dead",
    }
}

fn alloc_state(alloc: &AllocRunner) -> &'static str {
    match alloc.phase() {
        AllocPhase::Prerun(setup) if setup.awaited().is_some() => "setting up",
        AllocPhase::Prerun(_) => "awaiting previous allocation",
        AllocPhase::Tasks(_) => "tasks",
        AllocPhase::Finished if alloc.has_remains() => "finished, with remains",
        AllocPhase::Finished => "finished",
        AllocPhase::Destroying(_) => "destroying",
        AllocPhase::DestroyPause(_) => "destroy pause",
        AllocPhase::Destroyed => "destroyed",
    }
}

fn hook_answer(hook: &HookInput) -> &'static str {
    match &hook.result {
        Ok(_) => "hook done",
        Err(_) => "hook failed",
    }
}

fn template(reported: &TemplateInput) -> &'static str {
    match reported {
        TemplateInput::Missing { .. } => "templates lack something",
        TemplateInput::Rendered { .. } => "templates changed",
        TemplateInput::Failed { .. } => "templates are not rendered anew",
    }
}

fn node_state(agent: &Agent) -> &'static str {
    match agent.view().node_record().refusal() {
        None => "eligible",
        Some(PlacementFailure::Draining) => "drains",
        Some(_) => "ineligible",
    }
}

fn answer(reply: &Reply) -> &'static str {
    match reply {
        Reply::Registered { .. } => "registered",
        Reply::Dispatched { .. } => "dispatched",
        Reply::Stopping { eval: Some(_), .. } => "stopping",
        Reply::Stopping { eval: None, .. } => "nothing to stop",
        Reply::Done { .. } => "done",
        Reply::NodeChanged { index: 0, .. } => "node as it was",
        Reply::NodeChanged { .. } => "node changed",
        Reply::Deployment { .. } => "deployment changed",
        Reply::Variable(_) => "put",
        Reply::AclToken(_) => "token",
        Reply::Volume(_) => "volume",
        Reply::HandedOver(_) => "handed over",
        Reply::Refused(Refusal::NotFound(_)) => "not found",
        Reply::Refused(Refusal::Conflict(_)) => "conflict",
        Reply::Refused(Refusal::Invalid(_)) => "invalid",
        Reply::Refused(Refusal::Forbidden(_)) => "forbidden",
    }
}

/// The time for an answer that is over.
fn overdue(purpose: &Purpose) -> &'static str {
    match purpose {
        Purpose::Hook | Purpose::MoveDisk => "time of a hook",
        Purpose::Start => "time of the start",
        Purpose::Recover => "time of the search",
        Purpose::Stop => "time of the stop",
        Purpose::Destroy => "time of the destroy",
        Purpose::Signal => "time of a signal",
        Purpose::Exec => "time of a script",
        Purpose::Session => "time of a session",
        Purpose::Check => "time of a check",
        Purpose::Templates => "time of the rendering",
        Purpose::Probe(_)
        | Purpose::Driver(_)
        | Purpose::Devices(_)
        | Purpose::DiskUsage
        | Purpose::DirUsage
        | Purpose::TimeZone(_)
        | Purpose::Volume(_)
        | Purpose::Image
        | Purpose::Call(_) => "time",
    }
}

fn task_timer(timer: TaskTimer) -> &'static str {
    match timer {
        TaskTimer::ShutdownDelay => "time of the shutdown delay",
        TaskTimer::Deregistration => "time of the deregistration",
        TaskTimer::KillGrace => "time of the grace",
        TaskTimer::Destroy => "time of the next destroy",
        TaskTimer::RestartDelay => "time of the pause",
        TaskTimer::Template => "time of templates",
        TaskTimer::Identity => "time of tokens",
    }
}

fn alloc_timer(timer: &AllocTimer) -> &'static str {
    match timer {
        AllocTimer::AskAgain => "time of the next question",
        AllocTimer::ShutdownDelay => "time of the shutdown delay",
        AllocTimer::Health => "time of health",
        AllocTimer::Check => "time of the next check",
        AllocTimer::MaxRunDuration => "time of the longest run",
        AllocTimer::NetworkRetry => "time of the next removal of the network",
        AllocTimer::DestroyRetry => "time of the next try",
        AllocTimer::Task(..) => "time of a task",
    }
}
