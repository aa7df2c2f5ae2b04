//! The allocation runner: sets the allocation up, lets its tasks live in their order, ends them in
//! theirs, reports what became of it, and removes it.
//!
//! Tasks do not know each other. After each input the runner checks all of them again
//! ([`AllocRunner::settle`]) until nothing changes any more; so it does not matter in which order
//! things happened.

mod checks;
mod destroying;
mod ending;
mod inputs;
mod life;
mod network;
mod report;
mod setup;
mod timers;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use network::NetworkRemoval;
pub use setup::Setup;
pub use timers::AllocTimer;

use super::coordinator::Coordinator;
use super::health::HealthWatch;
use super::kill_order::KillOrder;
use crate::checks::CheckRunner;
use crate::claims::resources::Amounts;
use crate::cx::Cx;
use crate::hooks::Pipeline;
use crate::ids::{DeploymentId, JobKey, Run, TaskName};
use crate::model::alloc::{ClientStatus, DeploymentHealth, DesiredStatus, TaskLife};
use crate::model::event::{EventType, TaskEvent};
use crate::model::job::Job;
use crate::model::task::Stage;
use crate::store::record::AllocRecord;
use crate::store::{Key, Record, Saved};
use crate::task::runner::TaskRunner;
use crate::task::spec::TaskSpec;
use crate::time::{Instant, Span};

/// Where an allocation is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// It is set up.
    Prerun(Setup),
    /// Its tasks have their turn, stage by stage.
    Tasks(Coordinator),
    /// Nothing of it is alive. What is left are its directory and its records.
    Finished,
    /// It is garbage-collected.
    Destroying(Pipeline),
    /// A part could not be garbage-collected; it is tried again then.
    DestroyPause(Instant),
    /// It is gone.
    Destroyed,
}

/// Why an allocation ends whose node is drained.
const DRAINED: &str = "alloc is being migrated";

/// Why an allocation is not wanted any more that failed and is replaced.
pub const RESCHEDULED: &str = "alloc was rescheduled because it failed";

/// What else is wanted of an allocation from now on.
#[derive(Clone, Debug)]
pub enum Update<'a> {
    /// To take this version of its job as it is: nothing of it needs a new start.
    Version(Arc<Job>, Option<DeploymentId>),
    /// To end, for this reason.
    Stop(&'a str),
    /// To end, because its node is drained.
    Drain,
    /// To end, as the servers say that placed it.
    StopByServers {
        /// What they want of it.
        desired: DesiredStatus,
        /// Why.
        why: &'a str,
        /// Whether it does not wait for its shutdown delays.
        no_shutdown_delay: bool,
    },
}

/// The tasks of an allocation, as this version of its job has them.
fn specs_of(record: &AllocRecord, job: &Arc<Job>) -> Vec<TaskSpec> {
    TaskSpec::of_group(record.id, job, record.group.as_str(), record.authority())
}

/// One allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AllocRunner {
    record: Arc<AllocRecord>,
    job: Arc<Job>,
    tasks: Vec<TaskRunner>,
    phase: Phase,
    kill: Option<KillOrder>,
    #[serde(default)]
    checks: Vec<CheckRunner>,
    health: Option<HealthWatch>,
    max_run_deadline: Option<Instant>,
    /// Whether all that it claims of this node was granted.
    #[serde(default)]
    granted: bool,
    /// Where the removal of its network stands.
    #[serde(default)]
    network_removal: NetworkRemoval,
    /// Why its network could not be removed the last time.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    network_error: String,
    /// What could not be garbage-collected the last time, and why: for each hook that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    destroy_errors: Vec<String>,
    /// Whether it had remains when it last came to rest.
    pub(crate) unclean: bool,
}

impl AllocRunner {
    /// A new allocation. `record` is remembered.
    pub fn new(cx: &mut Cx<'_>, record: AllocRecord, job: Arc<Job>) -> AllocRunner {
        let specs = specs_of(&record, &job);
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
    /// came between the two. One whose record cannot be read is never started again, and its
    /// allocation ends, because nobody knows what it did so far.
    pub fn restore(
        cx: &mut Cx<'_>,
        record: Arc<AllocRecord>,
        job: Arc<Job>,
        saved: &Saved,
    ) -> AllocRunner {
        let specs = specs_of(&record, &job);
        let mut tasks = Vec::with_capacity(specs.len());
        let mut unreadable = false;
        for spec in specs {
            let key = (record.id, spec.key.task.clone());
            let (alloc, task) = key.clone();
            tasks.push(match saved.tasks.get(&key) {
                Some(task) => TaskRunner::restore(cx, spec, task.clone()),
                None if saved.unreadable.contains(&Key::Task(alloc, task)) => {
                    unreadable = true;
                    TaskRunner::unreadable(cx, spec, &record)
                }
                None => TaskRunner::new(cx, spec),
            });
        }
        let mut runner = AllocRunner::build(cx, record, job, tasks);
        if unreadable {
            runner.quarantine(cx);
        }
        runner.broadcast(cx);
        runner
    }

    fn build(
        cx: &mut Cx<'_>,
        record: Arc<AllocRecord>,
        job: Arc<Job>,
        tasks: Vec<TaskRunner>,
    ) -> AllocRunner {
        // One that is being garbage-collected goes on with that when nothing of it can be alive.
        let phase = if record.finished {
            Phase::Finished
        } else {
            Phase::Prerun(Setup::default())
        };
        let health = report::watch(cx, &record, &job);
        let checks = checks::of_group(cx.config, &job, record.group.as_str());
        let group = job.group(record.group.as_str());
        let limit = group.and_then(|group| group.max_run_duration);
        let max_run_deadline = limit
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
            kill: None,
            checks,
            health,
            max_run_deadline,
            granted: false,
            network_removal: NetworkRemoval::Idle,
            network_error: String::new(),
            destroy_errors: Vec::new(),
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

    /// The job that it belongs to.
    pub fn job_key(&self) -> &JobKey {
        &self.record.job
    }

    /// What it holds of counted resources until nothing of it can be alive.
    pub fn amounts(&self, core_mhz: u64) -> Amounts {
        let group = self.job.group(self.record.group.as_str());
        group.map_or(Amounts::default(), |group| Amounts::of(group, core_mhz))
    }

    /// When its health is decided, if its tasks run on as they do; none if it is not watched.
    pub fn health_deadline(&self) -> Option<Instant> {
        let has_tasks = matches!(self.phase, Phase::Tasks(_));
        let watch = self.health.as_ref().filter(|_| has_tasks);
        watch.map(HealthWatch::deadline)
    }

    /// Until when it is left alone before its tasks are asked to end: the group's `shutdown_delay`.
    pub fn shutdown_delay_until(&self) -> Option<Instant> {
        self.kill.as_ref().and_then(KillOrder::deadline)
    }

    /// When its time is over (`max_run_duration`), unless it is ending anyway.
    pub fn max_run_until(&self) -> Option<Instant> {
        self.max_run_deadline.filter(|_| self.kill.is_none())
    }

    /// Whether people are to say if it is healthy (`health_check = "manual"`), and nobody did.
    pub fn awaits_verdict(&self) -> bool {
        let group = self.job.group(self.record.group.as_str());
        let update = group.and_then(|group| group.update.as_ref());
        let manual = update.is_some_and(|update| update.health_check == "manual");
        let watched = self.record.deployment.is_some() && self.record.health.is_none();
        manual && watched && !self.record.desired.is_terminal() && !self.record.finished
    }

    /// Whether it is being ended.
    pub fn is_ending(&self) -> bool {
        self.kill.is_some()
    }

    /// Whether a task of it runs.
    pub fn is_running(&self) -> bool {
        self.tasks
            .iter()
            .any(|task| task.state().state == TaskLife::Running)
    }

    /// Whether no task of it was ever started.
    pub fn never_ran(&self) -> bool {
        self.tasks
            .iter()
            .all(|task| task.record().runs == Run::default())
    }

    /// Whether it ends by itself, or has done what it was to do and only what follows is left: it
    /// is not preempted, or its work would be done again. When it is over its claims are free.
    pub fn is_completing(&self) -> bool {
        let is_main = |task: &&TaskRunner| task.spec().stage() == Stage::Main;
        let is_leader = |task: &&TaskRunner| task.spec().task().leader;
        let tasks = self.tasks.iter();
        self.record.status.is_terminal()
            || self.is_ending()
            || (tasks.clone().filter(is_main)).all(TaskRunner::is_terminal)
            || tasks.filter(is_leader).any(TaskRunner::is_terminal)
    }

    /// Whether it is over and something of it may be alive nevertheless, or its network is there.
    pub fn has_remains(&self) -> bool {
        let mut tasks = self.tasks.iter();
        self.record.finished && (self.record.has_network() || tasks.any(TaskRunner::has_remains))
    }

    /// Whether nothing of it is alive and its network is removed: what it claims is free.
    pub fn is_gone(&self) -> bool {
        self.record.finished && !self.has_remains()
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

    /// Somebody says whether it is healthy, and nobody looks any more.
    pub fn set_health(&mut self, cx: &mut Cx<'_>, healthy: bool) {
        self.health = None;
        let timestamp = cx.now.wall;
        self.edit(cx, |record| {
            record.health = Some(DeploymentHealth { healthy, timestamp });
        });
    }

    fn save(&self, cx: &mut Cx<'_>) {
        cx.remember(
            Key::Alloc(self.record.id),
            Record::Alloc(self.record.clone()),
        );
    }

    /// Something else is wanted of it. Only a new version of the job runs the hooks of updates.
    pub fn update(&mut self, cx: &mut Cx<'_>, update: Update<'_>) {
        match update {
            Update::Version(job, deployment) => self.take_version(cx, job, deployment),
            Update::Stop(why) => self.told_to_end(cx, why, false),
            Update::Drain => self.told_to_end(cx, DRAINED, true),
            Update::StopByServers {
                desired,
                why,
                no_shutdown_delay,
            } => self.end_by_servers(cx, desired, why, no_shutdown_delay),
        }
    }

    /// It failed and was not replaced: it is not wanted any more.
    pub fn give_up_failed(&mut self, cx: &mut Cx<'_>) {
        let record = &self.record;
        let failed = record.status == ClientStatus::Failed && record.next.is_none();
        if failed && record.desired == DesiredStatus::Run {
            self.edit(cx, |record| {
                record.desired = DesiredStatus::Stop;
                record.desired_description = RESCHEDULED.into();
            });
        }
    }

    fn told_to_end(&mut self, cx: &mut Cx<'_>, why: &str, drained: bool) {
        if self.record.desired == DesiredStatus::Run {
            self.edit(cx, |record| {
                record.desired = DesiredStatus::Stop;
                record.desired_description = why.into();
                record.drained = drained;
            });
        }
        self.stop(cx);
    }

    fn end_by_servers(
        &mut self,
        cx: &mut Cx<'_>,
        desired: DesiredStatus,
        why: &str,
        no_shutdown_delay: bool,
    ) {
        if self.record.desired == DesiredStatus::Run {
            self.edit(cx, |record| {
                record.desired = desired;
                record.desired_description = why.into();
                record.skip_shutdown_delay = no_shutdown_delay;
            });
        }
        self.stop(cx);
    }

    /// Its health is considered anew for the roll-out of the new version.
    fn take_version(&mut self, cx: &mut Cx<'_>, job: Arc<Job>, deployment: Option<DeploymentId>) {
        let specs = specs_of(&self.record, &job);
        for spec in specs {
            if let Some(task) = self.task_mut(&spec.key.task.clone()) {
                task.update(cx, spec);
            }
        }
        let version = job.version;
        self.job = job;
        self.renew_checks(cx);
        self.edit(cx, |record| {
            record.job_version = version;
            record.deployment = deployment;
            record.health = None;
        });
        self.health = report::watch(cx, &self.record, &self.job);
    }

    /// Servers want a version of its job that cannot be run here: it goes on as it is, and does not count as healthy for
    /// the roll-out of that version.
    pub(crate) fn cannot_take(
        &mut self,
        cx: &mut Cx<'_>,
        deployment: Option<DeploymentId>,
        why: &str,
    ) {
        let words = format!("The new version of the job cannot be run: {why}");
        for task in self.tasks.iter_mut().filter(|task| !task.is_dead()) {
            let event = TaskEvent::new(EventType::AllocUnhealthy, cx.now.wall, &words);
            task.push(cx, event.detail("message", &words));
        }
        if deployment.is_some() {
            self.edit(cx, |record| record.deployment = deployment);
            self.set_health(cx, false);
        }
    }
}
