//! The scheduling side when there is no cluster: jobs, evaluations and allocations of this one
//! node.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AllocId, DeploymentId, EvalId, GroupName, JobKey};
use crate::model::eval::{Deployment, Evaluation};
use crate::model::placement::PlacementFailure;
use crate::model::submission::Submission;
use crate::model::variable::{Variable, VariableKey};
use crate::store::namespace::NamespaceRecord;
use crate::store::record::{AllocRecord, JobRecord};
use crate::time::{Instant, Timestamp};

/// How many evaluations are kept of each job for people, besides those of which a plan is still to be made.
pub const KEPT_EVALS: usize = 10;

/// How many evaluations are kept of purged jobs, each of another, for those who wait for what they asked.
pub const KEPT_PURGING_EVALS: usize = 100;

/// What this node was asked to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Local {
    /// Jobs.
    #[serde(with = "crate::pairs")]
    pub jobs: BTreeMap<JobKey, Arc<JobRecord>>,
    /// Which allocations belong to which job.
    #[serde(with = "crate::pairs")]
    pub allocs: BTreeMap<JobKey, BTreeSet<AllocId>>,
    /// Evaluations: of each job those that are open, and the latest of the others.
    pub evals: BTreeMap<EvalId, Arc<Evaluation>>,
    /// Those that do not wait for the replacement of a failed allocation, of each job the oldest first.
    #[serde(with = "crate::pairs")]
    pub evals_of: BTreeMap<JobKey, BTreeSet<(u64, EvalId)>>,
    /// Those that are left of purged jobs, the oldest first.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub purging_evals: BTreeSet<(u64, EvalId)>,
    /// Roll-outs.
    pub deployments: BTreeMap<DeploymentId, Arc<Deployment>>,
    /// Jobs that have to be looked at, the most important first: a place that comes free is not
    /// given to one that has to leave it at once for another.
    dirty: BTreeSet<(Reverse<i64>, JobKey)>,
    /// How often jobs were planned in this life of the agent.
    pub plans: u64,
    /// Jobs that could not be placed, and why.
    #[serde(with = "crate::pairs")]
    pub blocked: BTreeMap<JobKey, Vec<(String, PlacementFailure)>>,
    /// Jobs whose placement depends on something that has yet to be heard of this machine.
    pub unknown: BTreeSet<JobKey>,
    /// The evaluations of which the next plan decides.
    #[serde(with = "crate::pairs")]
    pub open_evals: BTreeMap<JobKey, BTreeSet<EvalId>>,
    /// The evaluations that wait until failed allocations are replaced, or plan that now, by allocation.
    #[serde(with = "crate::pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub follow_ups: BTreeMap<JobKey, BTreeMap<AllocId, EvalId>>,
    /// When failed allocations are replaced, by the boot clock: decided when their end was first
    /// seen in this life of the agent.
    #[serde(with = "crate::pairs")]
    pub due: BTreeMap<JobKey, BTreeMap<AllocId, Instant>>,
    /// Until when the roll-outs of groups have to make progress.
    #[serde(with = "crate::pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub progress: BTreeMap<JobKey, BTreeMap<GroupName, Progress>>,
    /// When jobs have to be checked again.
    #[serde(with = "crate::pairs")]
    pub re_evaluate_at: BTreeMap<JobKey, Instant>,
    /// What versions of jobs were made from.
    #[serde(with = "crate::pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub submissions: BTreeMap<(JobKey, u64), Arc<Submission>>,
    /// Variables. Shared, because whoever renders templates looks at all of them at once.
    #[serde(with = "crate::pairs::shared")]
    pub variables: Arc<BTreeMap<VariableKey, Arc<Variable>>>,
    /// Namespaces that somebody made or described.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub namespaces: BTreeMap<Arc<str>, Arc<NamespaceRecord>>,
}

/// Until when the roll-out of a group has to make progress, by the boot clock: decided when its last progress was
/// first seen in this life of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Progress {
    /// The roll-out.
    pub deployment: DeploymentId,
    /// When it last made progress.
    pub since: Timestamp,
    /// When it has failed without more.
    pub at: Instant,
}

impl Local {
    /// An allocation is there no more. Returns whether its job has none now.
    pub fn forget_alloc(&mut self, alloc: &AllocRecord) -> bool {
        remove_from(&mut self.allocs, &alloc.job, &alloc.id);
        !self.allocs.contains_key(&alloc.job)
    }

    /// A job has to be looked at.
    pub fn mark(&mut self, key: &JobKey) {
        let record = self.jobs.get(key);
        let priority = record.map_or(0, |record| record.job.priority);
        self.dirty.insert((Reverse(priority), key.clone()));
    }

    /// All jobs that cannot be placed have to be looked at: there may be one now.
    pub fn mark_blocked(&mut self) {
        let blocked: Vec<JobKey> = self.blocked.keys().cloned().collect();
        blocked.iter().for_each(|key| self.mark(key));
        self.mark_unknown();
    }

    /// All jobs have to be looked at that could not be placed because too little was known.
    pub fn mark_unknown(&mut self) {
        let unknown: Vec<JobKey> = self.unknown.iter().cloned().collect();
        unknown.iter().for_each(|key| self.mark(key));
    }

    /// Whether something of a job waits to be placed.
    pub fn awaits_placement(&self, key: &JobKey) -> bool {
        self.blocked.contains_key(key) || self.unknown.contains(key)
    }

    /// An evaluation is new, or changed.
    pub fn insert_eval(&mut self, eval: Arc<Evaluation>) {
        self.take_off(&eval);
        if !eval.is_waiting() {
            let of_job = self.evals_of.entry(eval.job.clone()).or_default();
            of_job.insert((eval.create_index, eval.id));
        }
        if eval.awaits_plan() {
            let open = self.open_evals.entry(eval.job.clone()).or_default();
            open.insert(eval.id);
        }
        if let Some(follow_up) = eval.follow_up.as_ref().filter(|_| eval.status.is_open()) {
            let of_job = self.follow_ups.entry(eval.job.clone()).or_default();
            of_job.insert(follow_up.alloc, eval.id);
        }
        if !self.jobs.contains_key(&eval.job) {
            self.purging_evals.insert((eval.create_index, eval.id));
        }
        self.evals.insert(eval.id, eval);
    }

    /// An evaluation is forgotten.
    pub fn remove_eval(&mut self, id: EvalId) {
        let Some(eval) = self.evals.remove(&id) else {
            return;
        };
        self.take_off(&eval);
    }

    /// The evaluations of a job that do not wait for a time, the latest first.
    pub fn latest_evals(&self, job: &JobKey) -> impl Iterator<Item = &Arc<Evaluation>> {
        let of_job = self.evals_of.get(job).into_iter().flatten().rev();
        of_job.filter_map(|(_, id)| self.evals.get(id))
    }

    /// The evaluation that follows on the failure of an allocation, while it is open.
    pub fn follow_up(&self, job: &JobKey, alloc: AllocId) -> Option<EvalId> {
        self.follow_ups.get(job)?.get(&alloc).copied()
    }

    /// The job's latest evaluation; not one that follows on a failure, if there are others.
    pub fn latest_eval(&self, job: &JobKey) -> Option<&Arc<Evaluation>> {
        let latest = self.latest_evals(job).find(|it| it.follow_up.is_none());
        latest.or_else(|| self.latest_evals(job).next())
    }

    /// An evaluation is in no list of its job any more.
    fn take_off(&mut self, eval: &Evaluation) {
        let numbered = (eval.create_index, eval.id);
        self.purging_evals.remove(&numbered);
        remove_from(&mut self.evals_of, &eval.job, &numbered);
        remove_from(&mut self.open_evals, &eval.job, &eval.id);
        let Some(alloc) = eval.follow_up.as_ref().map(|it| it.alloc) else {
            return;
        };
        if let Some(of_job) = self.follow_ups.get_mut(&eval.job) {
            if of_job.get(&alloc) == Some(&eval.id) {
                of_job.remove(&alloc);
            }
            if of_job.is_empty() {
                self.follow_ups.remove(&eval.job);
            }
        }
    }

    /// The jobs that have to be looked at, the most important first. They are not marked any more.
    pub fn take_marked(&mut self) -> Vec<JobKey> {
        let marked = core::mem::take(&mut self.dirty);
        // They may have become more or of lower priority since.
        let known = marked.into_iter().filter_map(|(_, key)| {
            let record = self.jobs.get(&key)?;
            Some((Reverse(record.job.priority), key))
        });
        let by_priority: BTreeSet<(Reverse<i64>, JobKey)> = known.collect();
        self.plans += u64::from(!by_priority.is_empty());
        by_priority.into_iter().map(|(_, key)| key).collect()
    }
}

/// Removes one from the set of a job, and the set with the last.
fn remove_from<T: Ord>(sets: &mut BTreeMap<JobKey, BTreeSet<T>>, job: &JobKey, one: &T) {
    if let Some(of_job) = sets.get_mut(job) {
        of_job.remove(one);
        if of_job.is_empty() {
            sets.remove(job);
        }
    }
}
