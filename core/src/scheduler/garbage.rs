//! What is forgotten with time, though its directories are long gone: dead jobs, and old evaluations,
//! deployments and records. What is asked for by hand (`system gc`) takes the same things, without looking at
//! how old they are.
//!
//! | garbage | when |
//! |---|---|
//! | a job | it is dead, and was stopped or ran to completion; with all that belongs to it |
//! | an evaluation | it is closed, not the latest of a job that is there, and what it placed is over |
//! | a deployment | it is over, not its job's latest, and what it placed is over |
//! | the record of a collected allocation | always by age; by hand unless it is a copy of a batch job |
//!
//! A job stays while something of it is needed: a disk for another node, a replacement to come, the knowledge
//! that a copy may still run on another node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::gc_snapshot::GcSnapshot;
use crate::config::Retention;
use crate::ids::{AllocId, DeploymentId, EvalId, JobKey};
use crate::model::eval::Evaluation;
use crate::model::job::{Job, JobStatus};
use crate::store::record::{AllocRecord, JobRecord};
use crate::time::{Span, Timestamp};

/// The shortest pause between two looks for garbage, as in Nomad.
pub const INTERVAL: Span = Span::secs(300);

/// All that may be forgotten.
#[derive(Clone, Debug)]
pub struct Kept<'a> {
    /// The allocations, and what depends on them.
    pub gc_snapshot: GcSnapshot<'a>,
    /// All jobs.
    pub jobs: &'a BTreeMap<JobKey, Arc<JobRecord>>,
    /// All evaluations.
    pub evals: &'a BTreeMap<EvalId, Arc<Evaluation>>,
    /// The records of allocations whose directories are gone, the oldest first.
    pub records: Vec<&'a AllocRecord>,
}

/// How old what is over may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// As old as that.
    Age(Retention),
    /// Not at all: all goes that is garbage.
    None,
}

/// What is forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Garbage {
    /// Dead jobs.
    pub jobs: Vec<JobKey>,
    /// Evaluations.
    pub evals: Vec<EvalId>,
    /// Deployments.
    pub deployments: Vec<DeploymentId>,
    /// Records of allocations.
    pub records: Vec<AllocId>,
    /// How long until something else is old enough.
    pub next: Option<Span>,
}

/// Decides what is forgotten.
pub fn garbage(kept: &Kept<'_>, limits: Limits) -> Garbage {
    let ages = match limits {
        Limits::Age(retention) => retention,
        Limits::None => Retention::NOTHING,
    };
    let mut pass = Pass { kept, next: None };
    let jobs = pass.dead_jobs(ages.jobs);
    let evals = pass.old_evals(ages.evals);
    let deployments = pass.old_deployments(ages.deployments);
    let records = match limits {
        Limits::Age(_) => pass.old_records(ages.records),
        Limits::None => pass.records_of_no_batch_job(),
    };
    Garbage {
        jobs,
        evals,
        deployments,
        records,
        next: pass.next,
    }
}

struct Pass<'a> {
    kept: &'a Kept<'a>,
    next: Option<Span>,
}

impl<'a> Pass<'a> {
    /// Whether something is as old as it may become, counted from `since`. If not, it is checked
    /// again then. A clock that was set back makes nothing younger than new.
    fn is_expired(&mut self, since: Timestamp, limit: Span) -> bool {
        let age = (self.kept.gc_snapshot.now - since).max(Span::ZERO);
        let left = Span(limit.0.saturating_sub(age.0));
        if left <= Span::ZERO {
            return true;
        }
        self.check_again_in(left);
        false
    }

    fn check_again_in(&mut self, left: Span) {
        self.next = Some(self.next.map_or(left, |next| next.min(left)));
    }

    fn dead_jobs(&mut self, limit: Span) -> Vec<JobKey> {
        let Kept {
            gc_snapshot, jobs, ..
        } = self.kept;
        let awaited = gc_snapshot.awaited_disks(false);
        let needed = |alloc: &AllocRecord| {
            let over = alloc.finished && !gc_snapshot.is_leased(alloc);
            !over || gc_snapshot.is_needed_beside(alloc, &awaited)
        };
        let changes = last_changes(self.kept);
        let elsewhere = gc_snapshot.disks.iter();
        let elsewhere =
            elsewhere.filter(|(slot, disk)| slot.alloc.is_none() && disk.elsewhere.is_some());
        let elsewhere: BTreeSet<&JobKey> = elsewhere.map(|(slot, _)| &slot.job).collect();
        let mut dead = Vec::new();
        for (key, job) in jobs.iter().filter(|(_, job)| is_temporary(&job.job)) {
            if job.purge || gc_snapshot.status_of(job) != JobStatus::Dead {
                continue;
            }
            // What comes next must not run beside what may still run on another node.
            if elsewhere.contains(key) || gc_snapshot.records_of(key).into_iter().any(needed) {
                // Nothing tells when that is over.
                self.check_again_in(INTERVAL);
                continue;
            }
            let changed = changes.get(key).copied().unwrap_or(job.job.submit_time);
            if self.is_expired(changed.max(job.job.submit_time), limit) {
                dead.push(key.clone());
            }
        }
        dead
    }

    /// The allocations that are not over.
    fn alive(&self) -> impl Iterator<Item = &'a AllocRecord> + use<'a> {
        let allocs = self.kept.gc_snapshot.allocs.iter().copied();
        allocs.filter(|alloc| !alloc.finished && !alloc.of_servers)
    }

    fn old_evals(&mut self, limit: Span) -> Vec<EvalId> {
        let evals = self.kept.evals;
        let mut latest: BTreeMap<&JobKey, (u64, EvalId)> = BTreeMap::new();
        let of_job = |eval: &&Arc<Evaluation>| self.kept.jobs.contains_key(&eval.job);
        for eval in evals
            .values()
            .filter(of_job)
            .filter(|eval| !eval.is_waiting())
        {
            let known = latest.entry(&eval.job).or_default();
            *known = (*known).max((eval.create_index, eval.id));
        }
        let latest = latest.into_values().map(|(_, id)| id);
        let used: BTreeSet<EvalId> = latest.chain(self.alive().map(|alloc| alloc.eval)).collect();
        let unused = evals.values();
        let unused = unused.filter(|eval| !used.contains(&eval.id) && !eval.status.is_open());
        let old = unused.filter(|eval| self.is_expired(eval.time, limit));
        old.map(|eval| eval.id).collect()
    }

    fn old_deployments(&mut self, limit: Span) -> Vec<DeploymentId> {
        let Kept {
            gc_snapshot, jobs, ..
        } = self.kept;
        let current = jobs.values().filter_map(|job| job.deployment);
        let alive = self.alive().filter_map(|alloc| alloc.deployment);
        let used: BTreeSet<DeploymentId> = current.chain(alive).collect();
        let mut old = Vec::new();
        for deployment in gc_snapshot.deployments.values() {
            let over = !deployment.is_active();
            let job = jobs.get(&deployment.job);
            let version = job.and_then(|job| job.version(deployment.job_version));
            // When it ended is not remembered; its version was registered before that.
            let since = version.map_or(Timestamp(0), |job| job.submit_time);
            if over && !used.contains(&deployment.id) && self.is_expired(since, limit) {
                old.push(deployment.id);
            }
        }
        old
    }

    fn old_records(&mut self, limit: Span) -> Vec<AllocId> {
        let mut old = Vec::new();
        for alloc in &self.kept.records {
            if !self.is_expired(alloc.modify_time, limit) {
                break;
            }
            old.push(alloc.id);
        }
        old
    }

    /// The records of batch jobs say what they came to as long as these are there.
    fn records_of_no_batch_job(&self) -> Vec<AllocId> {
        let of_batch = |alloc: &AllocRecord| {
            let job = self.kept.jobs.get(&alloc.job);
            job.is_some_and(|job| job.job.job_type.runs_to_completion())
        };
        let records = self.kept.records.iter();
        let records = records.filter(|alloc| !of_batch(alloc));
        records.map(|alloc| alloc.id).collect()
    }
}

/// Whether nobody expects a job to be there when nothing of it runs: it was stopped, or it was to
/// come to an end.
fn is_temporary(job: &Job) -> bool {
    job.stop || job.job_type.runs_to_completion() && !job.is_template()
}

/// When something last happened to jobs, as far as their allocations and evaluations tell.
fn last_changes<'a>(kept: &'a Kept<'_>) -> BTreeMap<&'a JobKey, Timestamp> {
    let Kept {
        gc_snapshot,
        evals,
        records,
        ..
    } = kept;
    let here = gc_snapshot.allocs.iter().copied();
    let here = here.filter(|alloc| !alloc.of_servers);
    let allocs = here.chain(records.iter().copied());
    let allocs = allocs.map(|alloc| (&alloc.job, alloc.modify_time));
    let mut latest = BTreeMap::new();
    for (job, time) in allocs.chain(evals.values().map(|eval| (&eval.job, eval.time))) {
        let known = latest.entry(job).or_insert(time);
        *known = time.max(*known);
    }
    latest
}
