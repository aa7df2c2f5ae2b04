//! What a job, an allocation or a task is doing, for people: since when, what it waits for and who holds that,
//! until when, what happens then, what is left of its restarts, and what changed last.
//!
//! It says what [`super::pending`] knows, so the two cannot differ, and what a roll-out needs to go on, which
//! may be a person. No part of it is ever empty: what waits for nothing says what would change it.

mod alloc;
mod checks;
mod holders;
mod job;
mod reschedules;
mod servers;
mod task;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::View;
use crate::alloc::runner::AllocRunner;
use crate::ids::{AllocId, JobKey, TaskName};
use crate::model::alloc::TaskLife;
use crate::model::event::TaskEvent;
use crate::model::policy::RestartMode;
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
    /// What it waits for; nothing if it runs or ended, unless a check that fails is to restart it.
    pub waiting: Option<Waiting>,
    /// What becomes of it where it waits for nothing.
    pub next: &'static str,
    /// What is left of its restarts; none once it ended for good.
    pub restarts: Option<RestartsLeft>,
    /// What happened last.
    pub last: Option<Arc<TaskEvent>>,
    /// Why its last run ended, where `last` only says what follows from that.
    pub cause: Option<Arc<TaskEvent>>,
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
    /// Why it is that, and how much of its reschedule policy is used up, if it failed or replaces one that did.
    pub description: String,
    /// `run`, `stop` or `evict`.
    pub desired: &'static str,
    /// Why that is wanted.
    pub desired_description: String,
    /// Who placed it, where the node has servers; empty where it is on its own.
    pub placed_by: &'static str,
    /// When it last changed.
    pub since: Timestamp,
    /// The allocation that replaced it.
    pub replaced_by: Option<AllocId>,
    /// What it waits for before its tasks, for its health, of its checks, to be replaced or removed; and when its time
    /// is over.
    pub waiting: Vec<Waiting>,
    /// What becomes of it where it waits for nothing.
    pub next: &'static str,
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
        Some(JobExplanation {
            key: key.clone(),
            status: self.job_status(key).as_str(),
            version: record.job.version,
            submitted: record.job.submit_time,
            stopped: record.job.stop,
            deployment: deployment
                .map(|one| format!("{}: {}", one.status.as_str(), one.description)),
            next: job::next(record, self.job_status(key)),
            waiting: self.job_waits(now, record),
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
        let task = |task| self.agent.explain_task(now, alloc, task);
        AllocExplanation {
            id: record.id,
            name: record.name.to_string(),
            version: record.job_version,
            status: record.status.as_str(),
            description: reschedules::described(now, alloc),
            desired: record.desired.as_str(),
            desired_description: record.desired_description.to_string(),
            placed_by: servers::placed_by(self, record),
            since: record.modify_time,
            replaced_by: record.next,
            waiting: self.alloc_waits(now, alloc),
            next: alloc::next(alloc, self.is_given_up(now, alloc)),
            tasks: alloc.tasks().iter().map(task).collect(),
        }
    }
}

/// A point on the boot clock, by the wall clock of now.
fn wall(now: Now, at: Instant) -> Timestamp {
    now.wall + (at - now.at)
}
