//! The allocation runner: sets the allocation up, lets its tasks live in their order, ends them
//! in theirs, reports what became of it, and cleans it away.
//!
//! Tasks do not know each other. After each input the runner looks at all of them again
//! ([`AllocRunner::settle`]) until nothing changes any more; so it does not matter in which order
//! things happened.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::coordinator::Coordinator;
use super::health::{HealthWatch, Verdict};
use super::kill_order::KillOrder;
use super::status;
use crate::broadcast::{AllocNews, Heard};
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect, HookWork};
use crate::hooks::{Begun, OnError, Pipeline, Progress};
use crate::ids::{DeploymentId, JobKey, Run, TaskName};
use crate::input::{DriverInput, HookOutput};
use crate::model::alloc::{ClientStatus, DeploymentHealth, TaskLife};
use crate::model::event::{EventType, TaskEvent};
use crate::model::job::Job;
use crate::model::task::Stage;
use crate::op::{Failure, Op};
use crate::store::record::AllocRecord;
use crate::store::{Key, Record, Saved};
use crate::task::runner::{Scope, TaskRunner, TaskTimer};
use crate::task::spec::TaskSpec;
use crate::time::{Instant, Span};

/// The hooks of an allocation, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AllocHook {
    /// The allocation's directory.
    AllocDir,
    /// The end of the allocation that this one replaces.
    AwaitPrevious,
}

/// What happens before the tasks, in order.
pub const PRERUN: &[AllocHook] = &[AllocHook::AwaitPrevious, AllocHook::AllocDir];
/// What happens when the allocation is cleaned away, in order.
pub const DESTROY: &[AllocHook] = &[AllocHook::AllocDir];

impl AllocHook {
    /// The name that events and metrics carry.
    pub fn name(self) -> &'static str {
        match self {
            AllocHook::AllocDir => "alloc_dir",
            AllocHook::AwaitPrevious => "await_previous_allocations",
        }
    }
}

/// Where an allocation is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// It is set up.
    Prerun(Pipeline),
    /// Its tasks have their turn.
    Tasks,
    /// Nothing of it is alive. What is left are its directory and its records.
    Finished,
    /// It is cleaned away.
    Destroying(Pipeline),
    /// A part could not be cleaned away; it is tried again then.
    DestroyPause(Instant),
    /// It is gone.
    Destroyed,
}

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

const TIME_IS_OVER: &str = "Allocation exceeded its max_run_duration";
const DESTROY_PAUSE: Span = Span::secs(30);

/// One allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AllocRunner {
    record: Arc<AllocRecord>,
    job: Arc<Job>,
    tasks: Vec<TaskRunner>,
    phase: Phase,
    coordinator: Coordinator,
    kill: Option<KillOrder>,
    health: Option<HealthWatch>,
    time_is_over_at: Option<Instant>,
    /// Whether it had remains when it last came to rest.
    pub(crate) unclean: bool,
}

impl AllocRunner {
    /// A new allocation. `record` is remembered.
    pub fn new(cx: &mut Cx<'_>, record: AllocRecord, job: Arc<Job>) -> AllocRunner {
        let specs = TaskSpec::of_group(record.id, &job, record.group.as_str());
        let tasks = specs
            .into_iter()
            .map(|spec| TaskRunner::new(cx, spec))
            .collect();
        let runner = AllocRunner::build(cx, Arc::new(record), job, tasks);
        runner.save(cx);
        runner.broadcast(cx);
        runner
    }

    /// An allocation of an earlier life of the agent. A task without a record is new: the crash
    /// came between the two.
    pub fn restore(
        cx: &mut Cx<'_>,
        record: Arc<AllocRecord>,
        job: Arc<Job>,
        saved: &Saved,
    ) -> AllocRunner {
        let specs = TaskSpec::of_group(record.id, &job, record.group.as_str());
        let mut tasks = Vec::with_capacity(specs.len());
        for spec in specs {
            let key = (record.id, spec.key.task.clone());
            tasks.push(match saved.tasks.get(&key) {
                Some(task) => TaskRunner::restore(cx, spec, task.clone()),
                None => TaskRunner::new(cx, spec),
            });
        }
        let runner = AllocRunner::build(cx, record, job, tasks);
        runner.broadcast(cx);
        runner
    }

    fn build(
        cx: &mut Cx<'_>,
        record: Arc<AllocRecord>,
        job: Arc<Job>,
        tasks: Vec<TaskRunner>,
    ) -> AllocRunner {
        // One that is being cleaned away goes on with that when nothing of it can be alive.
        let phase = if record.finished {
            Phase::Finished
        } else {
            Phase::Prerun(Pipeline::new(OnError::Stop))
        };
        let health = watch(cx, &record, &job);
        let group = job.group(record.group.as_str());
        let limit = group.and_then(|group| group.max_run_duration);
        let time_is_over_at = limit
            .filter(|_| !record.finished && !record.forced)
            .map(|limit| {
                let left = (record.create_time + limit) - cx.now.wall;
                cx.now.at + left.clamp(Span::ZERO, limit)
            });
        let mut runner = AllocRunner {
            record,
            job,
            tasks,
            phase,
            coordinator: Coordinator::default(),
            kill: None,
            health,
            time_is_over_at,
            unclean: false,
        };
        if runner.record.forced || runner.record.destroying {
            runner.end(cx, None, true);
        } else if runner.record.desired.is_terminal() {
            runner.stop(cx);
        }
        runner
    }

    /// What is wanted of it and what became of it.
    pub fn record(&self) -> &Arc<AllocRecord> {
        &self.record
    }

    /// The version of the job that it runs.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// Its tasks, in the order of the job file.
    pub fn tasks(&self) -> &[TaskRunner] {
        &self.tasks
    }

    /// Where it is.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The task of this name.
    pub fn task(&self, name: &TaskName) -> Option<&TaskRunner> {
        self.tasks.iter().find(|task| task.spec().key.task == *name)
    }

    /// The task of this name, to act on it.
    pub fn task_mut(&mut self, name: &TaskName) -> Option<&mut TaskRunner> {
        self.tasks
            .iter_mut()
            .find(|task| task.spec().key.task == *name)
    }

    /// Changes what is wanted of it, or what else the scheduling side decides.
    pub fn edit(&mut self, cx: &mut Cx<'_>, change: impl FnOnce(&mut AllocRecord)) {
        let index = cx.next_index();
        let record = Arc::make_mut(&mut self.record);
        change(record);
        record.modify_index = index;
        record.modify_time = cx.now.wall;
        self.save(cx);
    }

    fn save(&self, cx: &mut Cx<'_>) {
        cx.remember(
            Key::Alloc(self.record.id),
            Record::Alloc(self.record.clone()),
        );
    }

    /// Takes a version of the job that needs no new start of anything. Its health is looked at
    /// anew for the roll-out of that version.
    pub fn update(&mut self, cx: &mut Cx<'_>, job: Arc<Job>, deployment: Option<DeploymentId>) {
        let specs = TaskSpec::of_group(self.record.id, &job, self.record.group.as_str());
        for spec in specs {
            if let Some(task) = self.task_mut(&spec.key.task.clone()) {
                task.update(spec);
            }
        }
        let version = job.version;
        self.job = job;
        self.edit(cx, |record| {
            record.job_version = version;
            record.deployment = deployment;
            record.health = None;
        });
        self.health = watch(cx, &self.record, &self.job);
    }

    /// Ends it for good. Hooks of updates do not run: this is no update.
    pub fn stop(&mut self, cx: &mut Cx<'_>) {
        self.end(cx, None, false);
    }

    fn end(&mut self, cx: &mut Cx<'_>, reason: Option<String>, poststop_too: bool) {
        if self.kill.is_some() && !poststop_too {
            return;
        }
        let delay = self
            .job
            .group(self.record.group.as_str())
            .and_then(|g| g.shutdown_delay);
        let order = KillOrder::begin(cx, delay.unwrap_or(Span::ZERO), reason, poststop_too);
        self.kill = Some(order);
        self.cancel_prerun(cx);
    }

    /// What is being set up is not wanted any more. What was not even asked for is taken back.
    fn cancel_prerun(&mut self, cx: &mut Cx<'_>) {
        let Phase::Prerun(pipeline) = &self.phase else {
            return;
        };
        let Some(awaited) = pipeline.awaited() else {
            return;
        };
        if cx.shared.ledger.withdraw(awaited.op) {
            self.phase = Phase::Prerun(Pipeline::new(OnError::Stop));
        } else {
            cx.send(Effect::Hook(HookEffect::Cancel { op: awaited.op }));
        }
    }

    /// Cleans it away; ends it first if it is alive. Its records go last.
    pub fn destroy(&mut self, cx: &mut Cx<'_>) {
        if self.record.destroying {
            return;
        }
        self.edit(cx, |record| record.destroying = true);
        self.end(cx, None, true);
    }

    /// All tasks run again, in their order, also those that ended. `false` if that cannot be.
    pub fn rerun_all(&mut self, cx: &mut Cx<'_>, reason: &str) -> bool {
        if self.kill.is_some() || !matches!(self.phase, Phase::Tasks) {
            return false;
        }
        self.coordinator = Coordinator::Again;
        for task in &mut self.tasks {
            let _ = task.restart(cx, reason) || task.rerun(cx);
        }
        true
    }

    /// A driver says something of a task.
    pub fn on_driver(&mut self, cx: &mut Cx<'_>, task: &TaskName, input: DriverInput) {
        match self.task_mut(task) {
            Some(task) => task.on_driver(cx, input),
            None => cx.count_stale(),
        }
    }

    /// The work of a hook is over.
    pub fn on_hook(
        &mut self,
        cx: &mut Cx<'_>,
        task: Option<&TaskName>,
        op: Op,
        result: Result<HookOutput, Failure>,
    ) {
        if let Some(name) = task {
            match self.task_mut(name) {
                Some(task) => task.on_hook(cx, op, result),
                None => cx.count_stale(),
            }
            return;
        }
        let taken = match &mut self.phase {
            Phase::Prerun(pipeline) | Phase::Destroying(pipeline) => {
                pipeline.answer(op, result.map(|_| ()))
            }
            Phase::Tasks | Phase::Finished | Phase::DestroyPause(_) | Phase::Destroyed => false,
        };
        if !taken {
            cx.count_stale();
        }
    }

    /// Does all that can be done without an answer from outside.
    pub fn settle(&mut self, cx: &mut Cx<'_>) {
        loop {
            let mut changed = self.advance_phase(cx);
            let record = self.record.clone();
            let ending = self.kill.is_some();
            for task in &mut self.tasks {
                let in_turn = matches!(self.phase, Phase::Tasks);
                let stage = task.spec().stage();
                // A group that is being ended starts nothing but what comes after the end.
                let wanted = !ending || stage == Stage::Poststop;
                let open = in_turn && wanted && self.coordinator.is_open(stage);
                changed |= task.advance(
                    cx,
                    Scope {
                        alloc: &record,
                        gate_open: open,
                    },
                );
            }
            changed |= self.look_at_tasks(cx);
            if let Some(kill) = &mut self.kill {
                changed |= kill.advance(cx, &mut self.tasks);
            }
            if !changed {
                break;
            }
        }
        self.look_at_health(cx);
        self.report(cx);
        self.unclean = self.has_remains();
    }

    /// Returns whether the phase changed.
    fn advance_phase(&mut self, cx: &mut Cx<'_>) -> bool {
        match &self.phase {
            Phase::Prerun(pipeline) => {
                let pipeline = pipeline.clone();
                self.advance_prerun(cx, pipeline)
            }
            Phase::Tasks => {
                let over = self.tasks.iter().all(TaskRunner::is_dead);
                if over {
                    self.edit(cx, |record| record.finished = true);
                    self.phase = Phase::Finished;
                }
                over
            }
            Phase::Finished => {
                let begin = self.record.destroying && !self.has_remains();
                if begin {
                    self.phase = Phase::Destroying(Pipeline::new(OnError::Collect));
                }
                begin
            }
            Phase::Destroying(pipeline) => {
                let pipeline = pipeline.clone();
                self.advance_destroy(cx, pipeline)
            }
            Phase::DestroyPause(_) | Phase::Destroyed => false,
        }
    }

    fn advance_prerun(&mut self, cx: &mut Cx<'_>, mut pipeline: Pipeline) -> bool {
        if self.kill.is_some() || self.record.is_terminal() {
            return self.abandon_prerun(cx, &pipeline);
        }
        match pipeline.advance(PRERUN, |hook| self.begin_prerun(cx, hook)) {
            Progress::Pending => {
                self.phase = Phase::Prerun(pipeline);
                false
            }
            Progress::Finished(_) => {
                self.phase = Phase::Tasks;
                true
            }
            Progress::Failed(hook, failure) => {
                self.setup_failed(cx, hook, &failure);
                self.phase = Phase::Tasks;
                true
            }
        }
    }

    /// What was to be set up is not wanted any more. An answer that is under way is awaited, so
    /// that nothing is made after it was cleaned away.
    fn abandon_prerun(&mut self, cx: &mut Cx<'_>, pipeline: &Pipeline) -> bool {
        if let Some(previous) = self.record.previous {
            cx.shared.broadcasts.leave(previous, self.record.id);
        }
        if pipeline.awaited().is_some() {
            return false;
        }
        if self.never_ran() {
            // Nothing ran that something should come after, and there is no directory for it.
            self.end(cx, None, true);
        } else if self.kill.is_none() {
            self.stop(cx);
        }
        self.phase = Phase::Tasks;
        true
    }

    /// Whether it is over and something of it may be alive nevertheless.
    pub fn has_remains(&self) -> bool {
        self.record.finished && self.tasks.iter().any(TaskRunner::has_remains)
    }

    /// Whether no task of it was ever started.
    pub fn never_ran(&self) -> bool {
        self.tasks
            .iter()
            .all(|task| task.record().runs == Run::default())
    }

    fn begin_prerun(&self, cx: &mut Cx<'_>, hook: AllocHook) -> Begun {
        match hook {
            AllocHook::AllocDir => self.hook_work(cx, HookWork::BuildAllocDir),
            AllocHook::AwaitPrevious => {
                let Some(previous) = self.record.previous else {
                    return Begun::Done;
                };
                match cx.shared.broadcasts.listen(previous, self.record.id) {
                    Heard::New(AllocNews { finished: true, .. }) | Heard::Closed => {
                        cx.shared.broadcasts.leave(previous, self.record.id);
                        Begun::Done
                    }
                    Heard::New(_) | Heard::Nothing => Begun::Waiting,
                }
            }
        }
    }

    fn hook_work(&self, cx: &mut Cx<'_>, work: HookWork) -> Begun {
        let awaited = cx.awaited(cx.config.patience.hook);
        let (op, alloc) = (awaited.op, self.record.id);
        // A directory of an allocation that a crash made unknown would stay for ever.
        cx.send_after_save(Effect::Hook(HookEffect::Run {
            op,
            alloc,
            task: None,
            work,
        }));
        Begun::Working(awaited)
    }

    fn setup_failed(&mut self, cx: &mut Cx<'_>, hook: AllocHook, failure: &Failure) {
        let why = format!(
            "failed to setup alloc: {}: {}",
            hook.name(),
            failure.message
        );
        for task in &mut self.tasks {
            let event = TaskEvent::new(EventType::SetupFailure, cx.now.wall, &why)
                .detail("setup_error", &why)
                .fails_task();
            task.push(cx, event);
        }
        self.end(cx, Some(why), true);
    }

    fn advance_destroy(&mut self, cx: &mut Cx<'_>, mut pipeline: Pipeline) -> bool {
        let progress = pipeline.advance(DESTROY, |hook| match hook {
            AllocHook::AllocDir => self.hook_work(cx, HookWork::RemoveAllocDir),
            AllocHook::AwaitPrevious => Begun::Done,
        });
        self.phase = match progress {
            Progress::Pending => {
                self.phase = Phase::Destroying(pipeline);
                return false;
            }
            Progress::Finished(errors) if errors.is_empty() => {
                self.forget(cx);
                Phase::Destroyed
            }
            Progress::Finished(_) | Progress::Failed(..) => {
                Phase::DestroyPause(cx.now.at + cx.jittered(DESTROY_PAUSE))
            }
        };
        true
    }

    fn forget(&self, cx: &mut Cx<'_>) {
        for task in &self.tasks {
            cx.forget(Key::Task(self.record.id, task.spec().key.task.clone()));
        }
        cx.forget(Key::Alloc(self.record.id));
        cx.shared.broadcasts.close(self.record.id);
        cx.next_index_of_forgetting();
    }

    /// What one task's state means for the others, and for the stage. Returns whether anything
    /// follows from it.
    fn look_at_tasks(&mut self, cx: &mut Cx<'_>) -> bool {
        if !matches!(self.phase, Phase::Tasks) {
            return false;
        }
        let states = self
            .tasks
            .iter()
            .map(|task| (task.spec().stage(), task.state()));
        let stage = self.coordinator.after(states);
        let mut changed = stage != self.coordinator;
        self.coordinator = stage;
        if self.kill.is_none()
            && let Some((kind, message, failed)) = self.reason_to_end()
        {
            changed = true;
            for task in &mut self.tasks {
                let live = task.spec().stage() != Stage::Poststop && !task.is_dead();
                if live {
                    let mut event = TaskEvent::new(kind, cx.now.wall, &message);
                    if let Some(name) = &failed {
                        event = event.detail("failed_sibling", name);
                    }
                    task.push(cx, event);
                }
            }
            self.end(cx, None, false);
        }
        changed
    }

    /// Why the rest of the group has to end, if it has to.
    fn reason_to_end(&self) -> Option<(EventType, String, Option<TaskName>)> {
        let before_end = |task: &&TaskRunner| task.spec().stage() != Stage::Poststop;
        let mut live = self
            .tasks
            .iter()
            .filter(before_end)
            .filter(|task| !task.is_dead());
        live.clone().next()?;
        let dead = |task: &&TaskRunner| task.is_dead();
        if let Some(task) = self
            .tasks
            .iter()
            .filter(dead)
            .find(|task| task.state().failed)
        {
            let name = task.spec().key.task.clone();
            let message = format!("Task's sibling \"{name}\" failed");
            return Some((EventType::SiblingFailed, message, Some(name)));
        }
        if self
            .tasks
            .iter()
            .filter(dead)
            .any(|task| task.spec().task().leader)
        {
            let message = "Leader Task in Group dead".to_owned();
            return Some((EventType::LeaderDead, message, None));
        }
        let only_sidecars = live.all(|task| task.spec().stage().is_sidecar());
        let has_main = self
            .tasks
            .iter()
            .filter(before_end)
            .any(|task| !task.spec().stage().is_sidecar());
        let main_over = only_sidecars && (has_main || self.coordinator > Coordinator::Main);
        main_over.then(|| {
            (
                EventType::MainDead,
                "Main tasks in the group died".to_owned(),
                None,
            )
        })
    }

    fn look_at_health(&mut self, cx: &mut Cx<'_>) {
        let Some(watch) = &mut self.health else {
            return;
        };
        if self.record.desired.is_terminal() {
            self.health = None;
            return;
        }
        if !matches!(self.phase, Phase::Tasks | Phase::Finished) {
            return;
        }
        let tasks = self.tasks.iter().map(|task| {
            (
                task.spec().key.task.as_str(),
                task.spec().stage(),
                task.state(),
            )
        });
        let Some(verdict) = watch.look(cx.now, tasks) else {
            return;
        };
        self.health = None;
        let healthy = verdict == Verdict::Healthy;
        let timestamp = cx.now.wall;
        self.edit(cx, |record| {
            record.health = Some(DeploymentHealth { healthy, timestamp })
        });
        if let Verdict::Unhealthy(why) = verdict {
            for task in &mut self.tasks {
                let event = TaskEvent::new(EventType::AllocUnhealthy, cx.now.wall, &why);
                task.push(cx, event.detail("message", &why));
            }
        }
    }

    /// Notes the status that follows from the tasks, and tells those who listen.
    fn report(&mut self, cx: &mut Cx<'_>) {
        if matches!(self.phase, Phase::Destroyed) {
            return;
        }
        let mut news = false;
        for task in &mut self.tasks {
            news |= task.take_news();
        }
        if !self.record.forced {
            let states = self.tasks.iter().map(TaskRunner::state);
            let (status, why) = status::of_tasks(states);
            if self.record.status != status || *self.record.status_description != *why {
                self.edit(cx, |record| {
                    record.status = status;
                    record.status_description = why.into();
                });
                news = false;
            }
        }
        // Whoever watches the allocation sees what happens to its tasks.
        if news {
            self.edit(cx, |_| {});
        }
        self.broadcast(cx);
    }

    fn broadcast(&self, cx: &mut Cx<'_>) {
        // Whoever takes over its ports waits until nothing can hold them any longer.
        let holds_ports = self.has_remains() && !self.record.ports.is_empty();
        let news = AllocNews {
            status: self.record.status,
            finished: self.record.finished && !holds_ports,
        };
        cx.shared.broadcasts.send(self.record.id, news);
    }

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
            Phase::DestroyPause(until) if *until <= cx.now.at => {
                self.phase = Phase::Destroying(Pipeline::new(OnError::Collect));
            }
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

    fn time_is_over(&mut self, cx: &mut Cx<'_>) {
        if self.record.finished {
            return;
        }
        // What failed before stays failed: it may be replaced already.
        if !self.record.status.is_terminal() {
            self.edit(cx, |record| {
                record.forced = true;
                record.status = ClientStatus::Complete;
                record.status_description = TIME_IS_OVER.into();
            });
        }
        self.end(cx, Some(TIME_IS_OVER.to_owned()), true);
    }

    /// The job that it belongs to.
    pub fn job_key(&self) -> &JobKey {
        &self.record.job
    }

    /// Whether a task of it runs.
    pub fn is_running(&self) -> bool {
        self.tasks
            .iter()
            .any(|task| task.state().state == TaskLife::Running)
    }
}

/// The watch over an allocation of a roll-out whose health is not known yet.
fn watch(cx: &Cx<'_>, record: &AllocRecord, job: &Job) -> Option<HealthWatch> {
    let watched = record.deployment.is_some() && record.health.is_none();
    job.group(record.group.as_str())
        .and_then(|group| group.update.as_ref())
        .filter(|update| watched && update.health_check != "manual")
        .map(|update| HealthWatch::new(cx.now, update))
}
