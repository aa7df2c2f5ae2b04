//! What a job, an allocation or a task is doing, for people: since when, what it waits for and who holds that,
//! until when, what happens then, what is left of its restarts, and what changed last.
//!
//! It says what [`super::pending`] knows, so the two cannot differ, and what a roll-out needs to go on, which
//! may be a person. No part of it is ever empty: what waits for nothing says what would change it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pending::{JobWait, TaskWait, of_task};
use super::{Agent, View};
use crate::alloc::runner::{AllocRunner, Phase as AllocPhase};
use crate::ids::{AllocId, JobKey, TaskName};
use crate::model::alloc::TaskLife;
use crate::model::eval::{Deployment, DeploymentStatus};
use crate::model::event::{EventType, TaskEvent};
use crate::model::job::JobType;
use crate::model::policy::RestartMode;
use crate::scheduler::rollout::healthy_canaries;
use crate::store::record::{AllocRecord, JobRecord, RestartBudget};
use crate::task::runner::TaskRunner;
use crate::time::{Instant, Now, Span, Timestamp};

/// Something that is awaited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What, and who holds it.
    pub what: String,
    /// Until when, by the wall clock; for as long as it takes if none.
    pub until: Option<Timestamp>,
    /// What happens then, or if it does not come until then.
    pub then: String,
}

/// What is left of a task's restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartsLeft {
    /// How often it may be started again in one interval.
    pub attempts: u32,
    /// The length of one interval.
    pub interval: Span,
    /// How often it may be started again until the interval ends.
    pub left: u32,
    /// When all attempts are there again; none if they are.
    pub renewed_at: Option<Timestamp>,
    /// What happens when none is left.
    pub mode: RestartMode,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskExplanation {
    /// Its name.
    pub name: TaskName,
    /// `pending`, `running` or `dead`.
    pub state: TaskLife,
    /// Whether it failed.
    pub failed: bool,
    /// Since when that is so.
    pub since: Option<Timestamp>,
    /// What it waits for; nothing if it runs or ended.
    pub waiting: Option<Waiting>,
    /// What becomes of it where it waits for nothing.
    pub next: &'static str,
    /// What is left of its restarts; none once it ended for good.
    pub restarts: Option<RestartsLeft>,
    /// What happened last.
    pub last: Option<TaskEvent>,
    /// Why its last run ended, where `last` only says what follows from that.
    pub cause: Option<TaskEvent>,
}

/// An allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocExplanation {
    /// Its id.
    pub id: AllocId,
    /// `job.group[index]`.
    pub name: String,
    /// The version of its job.
    pub version: u64,
    /// `pending`, `running` and so on.
    pub status: &'static str,
    /// Why it is that.
    pub description: String,
    /// `run`, `stop` or `evict`.
    pub desired: &'static str,
    /// Why that is wanted.
    pub desired_description: String,
    /// When it last changed.
    pub since: Timestamp,
    /// The allocation that replaced it.
    pub replaced_by: Option<AllocId>,
    /// What it waits for before its tasks, for its health, or to be removed.
    pub waiting: Vec<Waiting>,
    /// Its tasks, in the order of the job file.
    pub tasks: Vec<TaskExplanation>,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobExplanation {
    /// Its name.
    pub key: JobKey,
    /// `pending`, `running` or `dead`.
    pub status: &'static str,
    /// Its latest version, and when that was submitted.
    pub version: u64,
    /// When that was.
    pub submitted: Timestamp,
    /// Whether somebody asked it to stop.
    pub stopped: bool,
    /// The roll-out of the latest version, in words.
    pub deployment: Option<String>,
    /// What it waits for.
    pub waiting: Vec<Waiting>,
    /// What becomes of it where it waits for nothing.
    pub next: &'static str,
    /// Its allocations that are not over, and the newest one of each copy that has none.
    pub allocs: Vec<AllocExplanation>,
}

impl View<'_> {
    /// What a job is doing; none if there is no such job.
    pub fn explain_job(self, now: Now, key: &JobKey) -> Option<JobExplanation> {
        let record = self.job(key)?;
        let deployment = record.deployment.and_then(|id| self.deployment(id));
        let mut waiting = self.job_waits(now, key);
        let active = deployment.filter(|one| one.is_active() && !record.job.stop);
        waiting.extend(active.map(|one| self.rollout_waits(now, one)));
        Some(JobExplanation {
            key: key.clone(),
            status: self.job_status(key),
            version: record.job.version,
            submitted: record.job.submit_time,
            stopped: record.job.stop,
            deployment: deployment
                .map(|one| format!("{}: {}", one.status.as_str(), one.description)),
            next: job_next(record, self.job_status(key)),
            waiting,
            allocs: self.explain_allocs_of(now, key),
        })
    }

    /// What an allocation is doing; none if there is none, or only a record of it.
    pub fn explain_alloc(self, now: Now, id: AllocId) -> Option<AllocExplanation> {
        self.alloc(id).map(|alloc| self.explain(now, alloc))
    }

    fn explain_allocs_of(self, now: Now, key: &JobKey) -> Vec<AllocExplanation> {
        let mut newest = BTreeMap::new();
        for alloc in self.allocs_of(key) {
            let index = newest.entry(alloc.record().slot()).or_insert(0);
            *index = alloc.record().create_index.max(*index);
        }
        let is_newest = |alloc: &AllocRunner| {
            newest.get(&alloc.record().slot()) == Some(&alloc.record().create_index)
        };
        let allocs = self
            .allocs_of(key)
            .filter(|alloc| !alloc.record().finished || is_newest(alloc));
        allocs.map(|alloc| self.explain(now, alloc)).collect()
    }

    fn explain(self, now: Now, alloc: &AllocRunner) -> AllocExplanation {
        let record = alloc.record();
        AllocExplanation {
            id: record.id,
            name: record.name.to_string(),
            version: record.job_version,
            status: record.status.as_str(),
            description: record.status_description.to_string(),
            desired: record.desired.as_str(),
            desired_description: record.desired_description.to_string(),
            since: record.modify_time,
            replaced_by: record.next,
            waiting: self.alloc_waits(now, alloc),
            tasks: alloc
                .tasks()
                .iter()
                .map(|task| self.agent.explain_task(now, task))
                .collect(),
        }
    }

    fn job_waits(self, now: Now, key: &JobKey) -> Vec<Waiting> {
        let mut waits = Vec::new();
        for wait in self.agent.waits_of_job(key) {
            let (what, then) = match wait.0 {
                JobWait::Reschedule => (
                    "the reschedule delay of a failed allocation".to_owned(),
                    "a replacement is placed",
                ),
                JobWait::TimeZone => (
                    "the local time of its zone, which is looked up".to_owned(),
                    "it is launched at its times; of those that were missed, once",
                ),
                JobWait::Fingerprint => (
                    "the first fingerprints of this node".to_owned(),
                    "it is placed",
                ),
                JobWait::Placement => {
                    let groups = self.blocked(key).iter();
                    let groups = groups.map(|(group, why)| format!("group \"{group}\": {}", why));
                    let why: Vec<String> = groups.collect();
                    (
                        format!("a placement on this node ({})", why.join("; ")),
                        "it is placed as soon as that changes",
                    )
                }
            };
            waits.push(Waiting {
                what,
                until: wait.1.map(|at| wall(now, at)),
                then: then.to_owned(),
            });
        }
        waits
    }

    /// What a roll-out needs to go on.
    fn rollout_waits(self, now: Now, rollout: &Deployment) -> Waiting {
        let id = rollout.id;
        let allocs: Vec<&AllocRecord> = (self.agent.allocs_of_rollout(rollout))
            .map(|alloc| &**alloc.record())
            .collect();
        let mut unpromoted = rollout.unpromoted().peekable();
        let has_canaries = unpromoted.peek().is_some();
        let healthy = unpromoted.all(|(name, it)| healthy_canaries(name, &allocs) >= it.canaries);
        let (what, then) = if rollout.status == DeploymentStatus::Paused {
            (
                "somebody to resume its deployment, which is paused",
                format!("\"deployment resume {id}\" lets more of it start and be replaced"),
            )
        } else if has_canaries && healthy {
            (
                "somebody to promote its canaries, which are healthy",
                format!("\"deployment promote {id}\" replaces the old version by the new one"),
            )
        } else if has_canaries {
            (
                "its canaries to be healthy",
                "they may be promoted; without progress in time the deployment fails".to_owned(),
            )
        } else {
            (
                "all copies of its new version to be healthy",
                "its version is stable; without progress in time the deployment fails".to_owned(),
            )
        };
        let progress = self.agent.local.progress.get(&rollout.job);
        let until = progress.and_then(|groups| groups.values().map(|one| one.at).min());
        Waiting {
            what: what.to_owned(),
            until: until.map(|at| wall(now, at)),
            then,
        }
    }

    fn alloc_waits(self, now: Now, alloc: &AllocRunner) -> Vec<Waiting> {
        let until = self.next_timer(alloc).map(|at| wall(now, at));
        let setup = match alloc.phase() {
            AllocPhase::Prerun(_) => Some(Waiting {
                what: match self.waits_for(alloc) {
                    Some(words) => words,
                    None => "its setup".to_owned(),
                },
                until,
                then:
                    "its tasks start when that is done; without an answer in time the setup fails"
                        .to_owned(),
            }),
            AllocPhase::Destroying(_) | AllocPhase::DestroyPause(_) => Some(Waiting {
                what: "the removal of its directory".to_owned(),
                until,
                then: "what cannot be removed is tried again".to_owned(),
            }),
            AllocPhase::Tasks(_) | AllocPhase::Finished | AllocPhase::Destroyed => None,
        };
        let health = alloc.health_deadline().map(|at| Waiting {
            what: "its tasks to be healthy, as its deployment demands".to_owned(),
            until: Some(wall(now, at)),
            then: "it is healthy if its tasks run until then, else unhealthy, and the deployment fails"
                .to_owned(),
        });
        let others = self.awaits_cleaning(alloc.record().id).then(|| Waiting {
            what: "the removal of other allocations".to_owned(),
            until: None,
            then: "its directory is removed".to_owned(),
        });
        let drain = self.drain_wait(alloc);
        (setup.into_iter())
            .chain(health)
            .chain(others)
            .chain(drain)
            .collect()
    }
}

impl View<'_> {
    /// What an allocation that goes on waits for while its node is drained.
    fn drain_wait(self, alloc: &AllocRunner) -> Option<Waiting> {
        let drain = self.node_record().drain?;
        let (record, job_type) = (alloc.record(), alloc.job().job_type);
        let ignored = drain.spec.ignore_system_jobs && job_type.one_per_node();
        if ignored || record.finished || record.desired.is_terminal() {
            return None;
        }
        let (what, then) = match job_type {
            JobType::Service => (
                "its turn in the drain of this node",
                "it is asked to end; its job is placed again when the node is eligible",
            ),
            JobType::Batch => (
                "its own end, for which the drain of this node waits",
                "it is asked to end when the drain's deadline comes",
            ),
            JobType::System | JobType::Sysbatch => (
                "the end of all others, after which the drain of this node stops it",
                "it is asked to end; its job is placed again when the node is eligible",
            ),
        };
        Some(Waiting {
            what: what.to_owned(),
            until: drain.force_at,
            then: then.to_owned(),
        })
    }
}

/// Of a task's events the one that led to the last, which says that it will be started again or not: the first
/// after its last run began, or after the last pause; if it never ran, the first that says more than what was done for
/// it. That its allocation is unhealthy follows from all that.
fn cause(events: &[Arc<TaskEvent>]) -> Option<&Arc<TaskEvent>> {
    let follows_from_it = |event: &Arc<TaskEvent>| event.kind == EventType::AllocUnhealthy;
    let own = events.iter().rposition(|event| !follows_from_it(event))?;
    let (last, before) = events.get(..=own)?.split_last()?;
    let follows = matches!(
        last.kind,
        EventType::Restarting | EventType::NotRestarting | EventType::Killed
    );
    let begins =
        |event: &Arc<TaskEvent>| matches!(event.kind, EventType::Started | EventType::Restarting);
    let first = match before.iter().rposition(begins) {
        Some(begun) => before.get(begun.checked_add(1)?)?,
        None => before.iter().find(|event| says_what_happened(event.kind))?,
    };
    follows.then_some(first)
}

/// Whether an event before a task's first run is more than a step on the way to it.
fn says_what_happened(kind: EventType) -> bool {
    match kind {
        EventType::Received
        | EventType::TaskSetup
        | EventType::DownloadingArtifacts
        | EventType::Driver
        | EventType::HookMessage
        | EventType::Template => false,
        EventType::SetupFailure
        | EventType::DriverFailure
        | EventType::FailedValidation
        | EventType::Started
        | EventType::Terminated
        | EventType::Killing
        | EventType::Killed
        | EventType::Restarting
        | EventType::NotRestarting
        | EventType::RestartSignaled
        | EventType::Signaling
        | EventType::FailedArtifactDownload
        | EventType::SiblingFailed
        | EventType::LeaderDead
        | EventType::MainDead
        | EventType::HookFailed
        | EventType::FailedRestoring
        | EventType::WaitingShutdownDelay
        | EventType::AllocUnhealthy => true,
    }
}

impl Agent {
    fn explain_task(&self, now: Now, task: &TaskRunner) -> TaskExplanation {
        let state = task.state();
        let dead = state.state == TaskLife::Dead;
        let since = match state.state {
            TaskLife::Running => state.started_at,
            TaskLife::Dead => state.finished_at,
            TaskLife::Pending => None,
        };
        let last = state.events.last().map(|event| (**event).clone());
        TaskExplanation {
            name: task.spec().key.task.clone(),
            state: state.state,
            failed: state.failed,
            since: since.or(last.as_ref().map(|event| event.time)),
            waiting: of_task(task).map(|wait| self.task_waits(now, task, wait)),
            next: task_next(task),
            restarts: (!dead).then(|| restarts_left(task, now.wall)),
            last,
            cause: cause(&state.events).map(|event| (**event).clone()),
        }
    }

    fn task_waits(&self, now: Now, task: &TaskRunner, wait: TaskWait) -> Waiting {
        let what = match (wait, task.prestart_hook()) {
            (TaskWait::Services, _) => self.awaited_services(&task.spec().key),
            (TaskWait::Prestart, Some(hook)) => Some(format!("its prestart hook \"{hook}\"")),
            _ => None,
        };
        let what = what.unwrap_or_else(|| wait.to_string());
        Waiting {
            what,
            until: self.task_until(task).map(|at| wall(now, at)),
            then: then(wait).to_owned(),
        }
    }
}

/// What follows when a task's wait is over.
fn then(wait: TaskWait) -> &'static str {
    match wait {
        TaskWait::Stage => "it is set up when the stages before its own are done",
        TaskWait::Services => "it starts; it waits as long as that takes",
        TaskWait::Prestart => {
            "the next hook runs, and after the last one it starts; a hook that takes longer fails"
        }
        TaskWait::Start => "it runs; without an answer in time the start failed",
        TaskWait::Recovery => "it runs on if it is found, else its restart policy decides",
        TaskWait::ShutdownDelay => "it is asked to end",
        TaskWait::Deregistration => "it is asked to end, also if servers do not answer in time",
        TaskWait::Exit => "it is killed",
        TaskWait::Destroy => {
            "what follows its end is decided; a driver that is silent is asked again"
        }
        TaskWait::RestartDelay => "it starts again",
    }
}

/// What becomes of a task that waits for nothing.
fn task_next(task: &TaskRunner) -> &'static str {
    match task.state().state {
        TaskLife::Pending => "it starts after the other tasks ended",
        TaskLife::Running => "it runs until its process exits or it is asked to end",
        TaskLife::Dead if task.state().failed => {
            "it is not started again; the reschedule policy of its group decides what follows"
        }
        TaskLife::Dead => "it is done and not started again",
    }
}

/// What becomes of a job that waits for nothing.
fn job_next(record: &JobRecord, status: &str) -> &'static str {
    match (record.job.stop, record.job.is_parameterized()) {
        (true, _) => "it is stopped; \"job run\" starts it again",
        (false, true) => "\"job dispatch\" makes jobs of it",
        (false, false) if record.job.is_periodic() => {
            "the clock makes jobs of it; \"job status\" shows when"
        }
        (false, false) if status == "dead" => "it is over, and nothing more of it is started",
        (false, false) => "it goes on until it ends or somebody stops it",
    }
}

fn restarts_left(task: &TaskRunner, now: Timestamp) -> RestartsLeft {
    let rules = task.spec().restart_rules();
    let RestartBudget { used, since, .. } = task.record().budget;
    let ends = since.map(|since| since + rules.interval);
    let renewed_at = ends.filter(|ends| now <= *ends && used > 0);
    let used = renewed_at.map_or(0, |_| used);
    RestartsLeft {
        attempts: rules.attempts,
        interval: rules.interval,
        left: rules.attempts.saturating_sub(used),
        renewed_at,
        mode: rules.mode,
    }
}

/// A point on the boot clock, by the wall clock of now.
fn wall(now: Now, at: Instant) -> Timestamp {
    now.wall + (at - now.at)
}
