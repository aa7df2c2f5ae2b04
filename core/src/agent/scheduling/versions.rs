//! The versions of a job: which are kept, what they were made from, what they are called, and how an earlier
//! one becomes the latest again.
//!
//! Kept are the last [`KEPT_VERSIONS`], the last stable one (a failed roll-out may bring it back), those with a
//! tag, and those that allocations still run. What belongs to a version goes with it: its roll-out, the records
//! of its collected allocations, and the text that it was made from.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agent::{Agent, cx};
use crate::effect::{Refusal, Reply};
use crate::ids::JobKey;
use crate::model::job::Job;
use crate::model::submission::Submission;
use crate::model::version::VersionTag;
use crate::store::record::{JobRecord, KEPT_VERSIONS};
use crate::store::{Key, Record};
use crate::time::Now;

/// A job as the version that follows what is known of it, and the versions before it.
pub(super) struct NextVersion {
    pub(super) job: Job,
    pub(super) earlier: Vec<Arc<Job>>,
}

pub(super) fn next_version(job: &Job, known: Option<&JobRecord>) -> NextVersion {
    let mut job = job.clone();
    (job.stop, job.stable) = (false, false);
    let mut earlier = Vec::new();
    if let Some(known) = known {
        job.version = known.job.version + 1;
        job.create_index = known.job.create_index;
        earlier.clone_from(&known.versions);
        earlier.push(known.job.clone());
    }
    NextVersion { job, earlier }
}

/// Of the earlier versions of a job, those that are kept. `used` are those that allocations still run.
fn kept(record: &JobRecord, used: &BTreeSet<u64>) -> Vec<Arc<Job>> {
    let untagged = |job: &&Arc<Job>| !record.tags.contains_key(&job.version);
    let last = record.newest_first().filter(untagged).take(KEPT_VERSIONS);
    let mut kept: BTreeSet<u64> = last.map(|job| job.version).collect();
    let mut earlier = record.versions.iter().rev();
    kept.extend(earlier.find(|job| job.stable).map(|job| job.version));
    kept.extend(record.tags.keys());
    kept.extend(used);
    let kept = |job: &&Arc<Job>| kept.contains(&job.version);
    record.versions.iter().filter(kept).cloned().collect()
}

impl Agent {
    /// Drops the versions of a job that are of no use any more, with all that belongs to them.
    pub(super) fn drop_versions(&mut self, key: &JobKey, record: &mut JobRecord) {
        let of_job = self.local.allocs.get(key).into_iter().flatten();
        let used: BTreeSet<u64> = of_job
            .filter_map(|id| self.allocs.get(id))
            .map(|alloc| alloc.record().job_version)
            .collect();
        record.versions = kept(record, &used);
        self.forget_old_deployments(key, record);
        self.forget_records_of(key, Some(record));
        self.forget_submissions_of(key, Some(record));
    }

    /// Remembers what a version was made from.
    pub(super) fn keep_submission(&mut self, job: &Job, submission: Option<&Arc<Submission>>) {
        let Some(submission) = submission else { return };
        let (key, version) = (job.key(), job.version);
        let record = Record::Submission(submission.clone());
        self.shared
            .ledger
            .put(Key::Submission(key.clone(), version), record);
        let submissions = &mut self.local.submissions;
        submissions.insert((key, version), submission.clone());
    }

    /// The texts of versions that are not there any more are forgotten; all if the job is not.
    pub(super) fn forget_submissions_of(&mut self, key: &JobKey, job: Option<&JobRecord>) {
        let all = (key.clone(), 0)..=(key.clone(), u64::MAX);
        let known = self.local.submissions.range(all);
        let kept = |version| job.is_some_and(|job| job.version(version).is_some());
        let old = known.filter(|((_, version), _)| !kept(*version));
        for (job, version) in old.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.local.submissions.remove(&(job.clone(), version));
            self.shared.ledger.delete(Key::Submission(job, version));
        }
    }

    /// An earlier version of a job becomes its latest one, as a new version.
    pub(in crate::agent) fn revert(&mut self, now: Now, key: &JobKey, version: u64) -> Reply {
        let found = self.local.jobs.get(key);
        let job = found.and_then(|record| Some(record.as_it_ran(record.version(version)?)));
        let Some(job) = job else {
            return Reply::Refused(no_version(key, version));
        };
        let submission = self.local.submissions.get(&(key.clone(), version)).cloned();
        self.register(now, &job, submission.as_ref())
    }

    /// A version gets a tag, or loses it. The job's record is what changed.
    pub(in crate::agent) fn set_tag(
        &mut self,
        now: Now,
        key: &JobKey,
        version: u64,
        tag: Option<VersionTag>,
    ) {
        self.edit_job(now, key, |record| {
            match tag {
                Some(tag) => record.tags.insert(version, Arc::new(tag)),
                None => record.tags.remove(&version),
            };
        });
    }

    /// Somebody says whether a version is stable.
    pub(in crate::agent) fn set_stable(
        &mut self,
        now: Now,
        key: &JobKey,
        version: u64,
        stable: bool,
    ) {
        self.edit_job(now, key, |record| {
            let versions = record.versions.iter_mut();
            let mut all = versions.chain(core::iter::once(&mut record.job));
            if let Some(job) = all.find(|job| job.version == version) {
                Arc::make_mut(job).stable = stable;
            }
        });
    }

    /// Changes what is known of a job, at a new index, and drops the versions that are of no use then.
    pub(super) fn edit_job(
        &mut self,
        now: Now,
        key: &JobKey,
        change: impl FnOnce(&mut JobRecord),
    ) -> u64 {
        let index = cx(&self.config, &mut self.shared, now).next_index();
        if let Some(known) = self.local.jobs.get(key) {
            let mut record = JobRecord::clone(known);
            change(&mut record);
            Arc::make_mut(&mut record.job).modify_index = index;
            self.drop_versions(key, &mut record);
            self.save_job(key, record);
        }
        index
    }
}

/// There is no such version of the job.
pub(in crate::agent) fn no_version(key: &JobKey, version: u64) -> Refusal {
    let (id, namespace) = (&key.id, &key.namespace);
    Refusal::Conflict(format!(
        "job \"{id}\" in namespace \"{namespace}\" at version {version} not found"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(earlier: u64) -> JobRecord {
        let job = |version| {
            Arc::new(Job {
                version,
                ..Job::default()
            })
        };
        JobRecord {
            job: job(earlier),
            versions: (0..earlier).map(job).collect(),
            ..JobRecord::default()
        }
    }

    fn numbers(record: &JobRecord, used: &[u64]) -> Vec<u64> {
        let used = used.iter().copied().collect();
        kept(record, &used).iter().map(|job| job.version).collect()
    }

    #[test]
    fn last_stable_tagged_and_used_versions_are_kept() {
        let mut record = record(9);
        assert_eq!(numbers(&record, &[]), [4, 5, 6, 7, 8]);
        assert_eq!(numbers(&record, &[0]), [0, 4, 5, 6, 7, 8]);
        for stable in [1, 2] {
            Arc::make_mut(&mut record.versions[stable]).stable = true;
        }
        assert_eq!(numbers(&record, &[]), [2, 4, 5, 6, 7, 8]);
        record.tags.insert(1, Arc::default());
        // What has a tag does not count.
        record.tags.insert(6, Arc::default());
        assert_eq!(numbers(&record, &[]), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
