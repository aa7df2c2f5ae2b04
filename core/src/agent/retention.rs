//! What is forgotten with time, though its directories are long gone: dead jobs, and old evaluations,
//! deployments and records. What is asked for by hand ([`Agent::forget_garbage`], forced) takes the
//! same things, without looking at how old they are.
//!
//! | garbage | when |
//! |---|---|
//! | a job | it is dead, and was stopped or ran to completion; with all that belongs to it |
//! | an evaluation | it is closed, not its job's latest, and what it placed is over |
//! | a deployment | it is over, not its job's latest, and what it placed is over |
//! | the record of a collected allocation | always by age; by hand unless it is a copy of a batch job |
//!
//! A job stays while something of it is needed: a disk for another node, a replacement to come, the knowledge
//! that a copy may still run on another node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Agent, cx};
use crate::alloc::runner::AllocRunner;
use crate::config::Retention;
use crate::ids::{DeploymentId, EvalId, JobKey};
use crate::model::eval::DeploymentStatus;
use crate::model::job::Job;
use crate::store::record::{AllocRecord, JobRecord};
use crate::time::{Instant, Now, Span, Timestamp};

/// The shortest pause between two looks for garbage, as in Nomad.
const INTERVAL: Span = Span::secs(300);

/// The times after which something is garbage that could be: all of the past, if it is forced.
#[derive(Clone, Copy, Debug)]
struct Ages {
    now: Timestamp,
    limits: Retention,
    /// How long until the next thing is old enough.
    next: Option<Span>,
}

impl Ages {
    /// Whether something is as old as it may become, counted from `since`. If not, it is looked at
    /// again then. A clock that was set back makes nothing younger than new.
    fn is_over(&mut self, since: Timestamp, limit: Span) -> bool {
        let age = (self.now - since).max(Span::ZERO);
        let left = Span(limit.0.saturating_sub(age.0));
        if left <= Span::ZERO {
            return true;
        }
        self.look_again(left);
        false
    }

    fn look_again(&mut self, left: Span) {
        self.next = Some(self.next.map_or(left, |next| next.min(left)));
    }
}

impl Agent {
    /// Something may have become garbage: it is looked for in a while.
    pub(super) fn expect_garbage(&mut self, now: Now) {
        if self.config.retention.is_some() {
            let soon = now.at + INTERVAL;
            self.garbage_at = Some(self.garbage_at.map_or(soon, |at| at.min(soon)));
        }
    }

    /// When garbage is looked for: not before jobs were looked at, since what they still need is known then.
    pub(super) fn garbage_due(&self) -> Option<Instant> {
        self.garbage_at.filter(|_| !self.shared.unsettled)
    }

    /// Forgets what is old enough, if it is time to look; all that is garbage, however young, if that is `forced`.
    pub(super) fn forget_garbage(&mut self, now: Now, forced: bool) {
        if forced {
            self.forget(now, Retention::NOTHING, true);
        }
        if self.garbage_due().is_none_or(|at| at > now.at) {
            return;
        }
        self.garbage_at = None;
        if let Some(limits) = self.config.retention {
            let next = self.forget(now, limits, false);
            self.garbage_at = next.map(|left| now.at + left.max(INTERVAL));
        }
    }

    /// Forgets what is older than it may become. Returns when the next thing is.
    fn forget(&mut self, now: Now, limits: Retention, forced: bool) -> Option<Span> {
        let mut ages = Ages {
            now: now.wall,
            limits,
            next: None,
        };
        self.forget_dead_jobs(now, &mut ages);
        let before = self.records_of_the_past();
        self.forget_evals(&mut ages);
        self.forget_deployments(&mut ages);
        self.forget_records(&mut ages, forced);
        if self.records_of_the_past() < before {
            // What goes may be what the index was last used for.
            cx(&self.config, &mut self.shared, now).next_index_without_a_record();
        }
        ages.next
    }

    /// How many records there are of what is over.
    fn records_of_the_past(&self) -> usize {
        self.local.evals.len() + self.local.deployments.len() + self.collected.iter().count()
    }

    fn forget_dead_jobs(&mut self, now: Now, ages: &mut Ages) {
        let awaited = self.awaited_disks();
        let needed = |alloc: &AllocRunner| {
            let record = alloc.record();
            !record.finished || self.is_leased(record, now) || self.is_needed(record, &awaited)
        };
        let mut evaluated: BTreeMap<&JobKey, Timestamp> = BTreeMap::new();
        for eval in self.local.evals.values() {
            let latest = evaluated.entry(&eval.job).or_insert(eval.time);
            *latest = eval.time.max(*latest);
        }
        let mut dead = Vec::new();
        let jobs = self
            .local
            .jobs
            .iter()
            .filter(|(_, job)| is_temporary(&job.job));
        for (key, job) in jobs {
            let view = self.view();
            if job.purge || view.job_status(key) != "dead" {
                continue;
            }
            // Whoever comes next must not run beside what may still run on another node.
            let mut disks = view.disks_of(key);
            let waits = disks.any(|(_, disk)| disk.elsewhere.is_some());
            if waits || view.allocs_of(key).any(needed) {
                // Nothing tells when that is over.
                ages.look_again(INTERVAL);
            } else if ages.is_over(
                self.last_change_of(key, job, evaluated.get(key)),
                ages.limits.jobs,
            ) {
                dead.push(key.clone());
            }
        }
        for key in dead {
            self.forget_dead_job(now, &key);
        }
    }

    /// When something last happened to a job.
    fn last_change_of(
        &self,
        key: &JobKey,
        job: &JobRecord,
        evaluated: Option<&Timestamp>,
    ) -> Timestamp {
        let allocs = self.view().shown_allocs_of(key);
        let allocs = allocs.map(|alloc| alloc.record().modify_time);
        let all = allocs.chain(evaluated.copied());
        all.fold(job.job.submit_time, Timestamp::max)
    }

    /// The allocations that are not over.
    fn alive(&self) -> impl Iterator<Item = &AllocRecord> {
        let alive = self
            .allocs
            .values()
            .filter(|alloc| !alloc.record().finished);
        alive.map(|alloc| &**alloc.record())
    }

    fn forget_evals(&mut self, ages: &mut Ages) {
        let mut latest: BTreeMap<&JobKey, (u64, EvalId)> = BTreeMap::new();
        for eval in self.local.evals.values() {
            let known = latest.entry(&eval.job).or_default();
            *known = (*known).max((eval.create_index, eval.id));
        }
        let latest = latest.into_values().map(|(_, id)| id);
        let used: BTreeSet<EvalId> = latest.chain(self.alive().map(|alloc| alloc.eval)).collect();
        let unused = self
            .local
            .evals
            .values()
            .filter(|eval| !used.contains(&eval.id) && !eval.status.is_open());
        let limit = ages.limits.evals;
        let old = unused.filter(|eval| ages.is_over(eval.time, limit));
        for id in old.map(|eval| eval.id).collect::<Vec<_>>() {
            self.forget_eval(id);
        }
    }

    fn forget_deployments(&mut self, ages: &mut Ages) {
        let current = self.local.jobs.values().filter_map(|job| job.deployment);
        let alive = self.alive().filter_map(|alloc| alloc.deployment);
        let used: BTreeSet<DeploymentId> = current.chain(alive).collect();
        let mut old = Vec::new();
        for deployment in self.local.deployments.values() {
            let over = deployment.status != DeploymentStatus::Running;
            let job = self.local.jobs.get(&deployment.job);
            let version = job.and_then(|job| job.version(deployment.job_version));
            // When it ended is not remembered; its version was handed in before that.
            let since = version.map_or(Timestamp(0), |job| job.submit_time);
            if over
                && !used.contains(&deployment.id)
                && ages.is_over(since, ages.limits.deployments)
            {
                old.push(deployment.id);
            }
        }
        for id in old {
            self.forget_deployment(id);
        }
    }

    fn forget_records(&mut self, ages: &mut Ages, forced: bool) {
        if forced {
            let of_batch = |alloc: &AllocRecord| {
                let job = self.local.jobs.get(&alloc.job);
                job.is_some_and(|job| job.job.job_type.runs_to_completion())
            };
            let records = self.collected.iter().map(|record| &record.alloc);
            let old = records
                .filter(|alloc| !of_batch(alloc))
                .map(|alloc| alloc.id);
            for id in old.collect::<Vec<_>>() {
                self.forget_record(id);
            }
            return;
        }
        let limit = ages.limits.records;
        self.forget_expired_records(ages.now + Span(-limit.0));
        if let Some(oldest) = self.collected.oldest() {
            ages.is_over(oldest.alloc.modify_time, limit);
        }
    }
}

/// Whether nobody expects a job to be there when nothing of it runs: it was stopped, or it was to
/// come to an end.
fn is_temporary(job: &Arc<Job>) -> bool {
    let waits = job.is_parameterized() || job.periodic.is_some();
    job.stop || job.job_type.runs_to_completion() && !waits
}
