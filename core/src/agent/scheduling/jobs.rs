//! Jobs and their versions: registering, stopping, purging.

use crate::model::job::JobStatus;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::rollout::begun;
use super::versions::next_version;
use crate::agent::{Agent, cx};
use crate::alloc::runner::AllocRunner;
use crate::cx::Cx;
use crate::effect::Reply;
use crate::ids::{AllocId, DeploymentId, JobKey, Slot};
use crate::model::eval::{DeploymentStatus, Evaluation, Trigger};
use crate::model::job::Job;
use crate::model::submission::Submission;
use crate::scheduler::rollout::rolls_out;
use crate::scheduler::{DryRun, Snapshot};
use crate::store::record::JobRecord;
use crate::store::{Key, Record};
use crate::time::Now;

impl Agent {
    /// Takes a job in, as a new version if it differs from what is known; that was made from `submission`.
    pub(in crate::agent) fn register(
        &mut self,
        now: Now,
        job: &Arc<Job>,
        submission: Option<&Arc<Submission>>,
    ) -> Reply {
        self.register_by(now, job, submission, Trigger::JobRegister)
    }

    /// The same, for another reason than that somebody submitted it.
    pub(in crate::agent) fn register_by(
        &mut self,
        now: Now,
        job: &Arc<Job>,
        submission: Option<&Arc<Submission>>,
        trigger: Trigger,
    ) -> Reply {
        let key = job.key();
        let known = self.local.jobs.get(&key).cloned();
        let unchanged = known
            .as_ref()
            .is_some_and(|known| known.is_same(job) && !self.is_collected(known));
        let record = match known {
            Some(known) if unchanged => known,
            known => {
                let record = self.new_version(now, job, known.as_deref());
                self.keep_submission(&record.job, submission);
                record
            }
        };
        let (job_index, deployment) = (record.job.job_modify_index, record.deployment);
        self.local.jobs.insert(key.clone(), record);
        self.schedule_launches(now, &key, !unchanged);
        self.follow_images(now, &key);
        // It may have become of lower priority than others that cannot be placed.
        self.local.mark_blocked();
        let eval = if job.is_template() {
            // It runs nothing; what ran of it before it was one is ended.
            self.local.mark(&key);
            None
        } else {
            Some(self.evaluate(now, &key, trigger))
        };
        Reply::Registered {
            eval: eval.as_ref().map(|eval| eval.id),
            index: eval.map_or(self.shared.index, |eval| eval.create_index),
            job_index,
            deployment,
        }
    }

    /// Whether a job ran to completion and not even records of its allocations are left. Nomad forgets such
    /// a job with them, so that whoever registers it again runs it again. While they are kept, the same
    /// version does not run again what is complete.
    fn is_collected(&self, record: &JobRecord) -> bool {
        let key = record.job.key();
        let left = self.view().shown_allocs_of(&key).next().is_some();
        let complete = record.job.job_type.runs_to_completion() && !record.done.is_empty();
        complete && !left && self.view().job_status(&key) == JobStatus::Dead
    }

    fn new_version(
        &mut self,
        now: Now,
        job: &Arc<Job>,
        known: Option<&JobRecord>,
    ) -> Arc<JobRecord> {
        let index = cx(&self.config, &mut self.shared, now).next_index();
        let next = next_version(job, known);
        let mut job = next.job;
        job.submit_time = now.wall;
        (job.modify_index, job.job_modify_index) = (index, index);
        if known.is_none() {
            job.create_index = index;
        }
        let key = job.key();
        if let Some(old) = known.and_then(|known| known.deployment) {
            let words = "Cancelled due to newer version of job";
            self.end_deployment(now, old, DeploymentStatus::Cancelled, words);
        }
        let mut record = JobRecord {
            job: Arc::new(job),
            versions: next.earlier,
            tags: known.map(|known| known.tags.clone()).unwrap_or_default(),
            scaling_events: known.map_or_else(BTreeMap::new, |known| known.scaling_events.clone()),
            images: known.map_or_else(BTreeMap::new, |known| known.images.clone()),
            ..JobRecord::default()
        };
        record.deployment = self.new_deployment(now, &record);
        self.drop_versions(&key, &mut record);
        let record = Arc::new(record);
        self.shared
            .ledger
            .put(Key::Job(key.clone()), Record::Job(record.clone()));
        record
    }

    /// What registering a job would do. It changes nothing.
    pub(in crate::agent) fn dry_run(&self, now: Now, job: &Job) -> DryRun {
        let job = &*self.with_known_digests(&Arc::new(job.clone()));
        let key = job.key();
        let known = self.local.jobs.get(&key);
        let unchanged = known.filter(|known| known.is_same(job) && !self.is_collected(known));
        let record = unchanged.cloned().unwrap_or_else(|| {
            let next = next_version(job, known.map(|known| &**known));
            Arc::new(JobRecord {
                deployment: rolls_out(&next.job).then(DeploymentId::default),
                job: Arc::new(next.job),
                versions: next.earlier,
                ..JobRecord::default()
            })
        });
        let mut deployments = self.local.deployments.clone();
        if let Some(id) = record.deployment
            && !deployments.contains_key(&id)
        {
            let groups = self.groups_with_canaries(&record);
            let rollout = begun(&record.job, groups, now);
            deployments.insert(id, Arc::new(rollout));
        }
        let mut jobs = self.local.jobs.clone();
        jobs.insert(key.clone(), record);
        let snapshot = Snapshot {
            jobs: &jobs,
            deployments: &deployments,
            ..self.snapshot(now, Vec::new())
        };
        DryRun::of(&snapshot, &key)
    }

    /// Nothing of a job is to run any more, nor to be known if it is to be purged. None if there is no such
    /// job, or if it ran nothing itself.
    pub(in crate::agent) fn deregister(
        &mut self,
        now: Now,
        key: &JobKey,
        purge: bool,
    ) -> Option<Arc<Evaluation>> {
        if !self.stop_job(now, key, purge) {
            return None;
        }
        if self
            .local
            .jobs
            .get(key)
            .is_some_and(|job| job.job.is_periodic())
        {
            // It runs nothing, and its launches are jobs of their own.
            self.local.mark(key);
            return None;
        }
        Some(self.evaluate(now, key, Trigger::JobDeregister))
    }

    /// The allocations of a job wait for no shutdown delays, if they end.
    pub(in crate::agent) fn skip_shutdown_delays(&mut self, now: Now, key: &JobKey) {
        self.each_of(now, key, AllocRunner::skip_shutdown_delay);
    }

    /// The allocations of a job that failed and were not replaced are given up, so that the next plan
    /// replaces them: by new ones that may fail as often as the first.
    pub(in crate::agent) fn give_up_failed(&mut self, now: Now, key: &JobKey) {
        self.each_of(now, key, AllocRunner::give_up_failed);
    }

    /// Does something with each allocation of a job of this node, and what follows from it.
    fn each_of(&mut self, now: Now, key: &JobKey, change: fn(&mut AllocRunner, &mut Cx<'_>)) {
        let of_job = self.allocs.iter().filter(|(_, alloc)| {
            let record = alloc.record();
            record.job == *key && !record.of_servers && !record.destroying
        });
        let ids: Vec<AllocId> = of_job.map(|(id, _)| *id).collect();
        for id in ids {
            if let Some(alloc) = self.allocs.get_mut(&id) {
                change(alloc, &mut cx(&self.config, &mut self.shared, now));
                self.settle_alloc(now, id);
            }
        }
    }

    /// A dead job is garbage: it goes as one that is purged does, and nobody is told of an evaluation.
    pub(in crate::agent) fn forget_dead_job(&mut self, now: Now, key: &JobKey) {
        if self.stop_job(now, key, true) {
            self.forget_evals_of(key, None);
            self.local.mark(key);
        }
    }

    /// Nothing of a job is to run any more, nor to be known if it is to be purged. Returns whether there
    /// is such a job.
    fn stop_job(&mut self, now: Now, key: &JobKey, purge: bool) -> bool {
        let Some(known) = self.local.jobs.get(key) else {
            return false;
        };
        let mut record = JobRecord::clone(known);
        let index = cx(&self.config, &mut self.shared, now).next_index();
        let mut job = Job::clone(&record.job);
        job.stop = true;
        job.modify_index = index;
        record.job = Arc::new(job);
        record.purge |= purge;
        if let Some(deployment) = record.deployment {
            let words = "Cancelled because job is stopped";
            self.end_deployment(now, deployment, DeploymentStatus::Cancelled, words);
        }
        self.save_job(key, record);
        self.schedule_launches(now, key, false);
        self.follow_images(now, key);
        true
    }

    pub(in crate::agent) fn save_job(&mut self, key: &JobKey, record: JobRecord) {
        let record = Arc::new(record);
        self.shared
            .ledger
            .put(Key::Job(key.clone()), Record::Job(record.clone()));
        self.local.jobs.insert(key.clone(), record);
    }

    pub(super) fn forget_job(&mut self, now: Now, key: &JobKey) {
        self.local.jobs.remove(key);
        self.forget_launches(key);
        self.forget_images(key);
        self.local.blocked.remove(key);
        self.local.unknown.remove(key);
        self.local.re_evaluate_at.remove(key);
        self.local.due.remove(key);
        self.local.progress.remove(key);
        self.shared.ledger.delete(Key::Job(key.clone()));
        let slots: Vec<Slot> = self
            .view()
            .disks_of(key)
            .map(|(slot, _)| slot.clone())
            .collect();
        for slot in slots {
            cx(&self.config, &mut self.shared, now).save_disk(slot, None);
        }
        self.forget_evals_of_purged(now, key);
        let deployments = self.local.deployments.iter().filter(|(_, d)| d.job == *key);
        for id in deployments.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.forget_deployment(id);
        }
        self.forget_records_of(key, None);
        self.forget_submissions_of(key, None);
        cx(&self.config, &mut self.shared, now).next_index_without_a_record();
    }
}
