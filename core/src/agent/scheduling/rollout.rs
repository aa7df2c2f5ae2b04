//! The records of roll-outs (deployments) of new versions, and what becomes of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::{Agent, cx};
use crate::alloc::runner::AllocRunner;
use crate::effect::Reply;
use crate::ids::{AllocId, DeploymentId, GroupName, JobKey};
use crate::local::Progress;
use crate::model::eval::{Deployment, DeploymentStatus, GroupRollout, Trigger};
use crate::model::job::Job;
use crate::scheduler::rollout::{Rollback, canaries, rolls_out, running_words};
use crate::store::record::JobRecord;
use crate::store::{Key, Record};
use crate::time::Now;

impl Agent {
    /// The roll-out of the latest version of a job, if it has one.
    pub(super) fn new_deployment(&mut self, now: Now, record: &JobRecord) -> Option<DeploymentId> {
        let job = &record.job;
        if !rolls_out(job) {
            return None;
        }
        let groups = self.groups_with_canaries(record);
        let mut cx = cx(&self.config, &mut self.shared, now);
        let index = cx.next_index();
        let id = cx.deployment_id();
        let rollout = Deployment {
            id,
            create_index: index,
            ..begun(job, groups, now)
        };
        self.save_deployment(now, rollout);
        Some(id)
    }

    /// The groups of a version that have canaries.
    pub(super) fn groups_with_canaries(
        &self,
        record: &JobRecord,
    ) -> BTreeMap<GroupName, GroupRollout> {
        let allocs = self.view().allocs_of(&record.job.key());
        let allocs: Vec<_> = allocs.map(|alloc| &**alloc.record()).collect();
        canaries(record, &allocs)
    }

    /// Remembers what became of a roll-out, with the index of now.
    pub(super) fn save_deployment(&mut self, now: Now, mut deployment: Deployment) {
        deployment.modify_index = self.shared.index;
        deployment.modify_time = now.wall;
        let deployment = Arc::new(deployment);
        let record = Record::Deployment(deployment.clone());
        self.shared
            .ledger
            .put(Key::Deployment(deployment.id), record);
        self.local.deployments.insert(deployment.id, deployment);
    }

    /// Changes a roll-out, at a new index.
    fn edit_deployment(
        &mut self,
        now: Now,
        id: DeploymentId,
        change: impl FnOnce(&mut Deployment),
    ) {
        let Some(known) = self.local.deployments.get(&id) else {
            return;
        };
        let mut deployment = Deployment::clone(known);
        self.shared.index += 1;
        change(&mut deployment);
        if deployment.is_active()
            && let Some(record) = self.local.jobs.get(&deployment.job)
        {
            let words = running_words(&record.job, &deployment);
            words.clone_into(&mut deployment.description);
        }
        self.save_deployment(now, deployment);
    }

    /// What runs is of a roll-out from now on, which may have begun long ago: it has waited until this node fulfils the
    /// new version's constraints. Its time to make progress begins anew.
    pub(in crate::agent) fn goes_on_in_place(&mut self, now: Now, id: DeploymentId) {
        let known = self.local.deployments.get(&id);
        let Some(known) = known.filter(|it| it.is_active() && it.resumed != Some(now.wall)) else {
            return;
        };
        let record = self.local.jobs.get(&known.job);
        if record.is_some_and(|record| record.job.submit_time < now.wall) {
            self.edit_deployment(now, id, |deployment| deployment.resumed = Some(now.wall));
        }
    }

    pub(in crate::agent) fn end_deployment(
        &mut self,
        now: Now,
        id: DeploymentId,
        status: DeploymentStatus,
        words: &str,
    ) {
        let known = self.local.deployments.get(&id);
        let Some(key) = known.filter(|it| it.is_active()).map(|it| it.job.clone()) else {
            return;
        };
        self.local.progress.remove(&key);
        self.edit_deployment(now, id, |deployment| {
            deployment.status = status;
            words.clone_into(&mut deployment.description);
        });
    }

    /// The canaries of these groups are copies as all others from now on, and the rest follows. Returns what
    /// changed.
    pub(in crate::agent) fn promote(
        &mut self,
        now: Now,
        id: DeploymentId,
        groups: &[GroupName],
    ) -> Vec<AllocId> {
        let Some(key) = self.local.deployments.get(&id).map(|it| it.job.clone()) else {
            return Vec::new();
        };
        let of_job = self.local.allocs.get(&key).into_iter().flatten();
        let mut promoted = Vec::new();
        for alloc_id in of_job.copied().collect::<Vec<_>>() {
            let Some(alloc) = self.allocs.get_mut(&alloc_id) else {
                continue;
            };
            let record = alloc.record();
            let is_canary = record.canary && record.deployment == Some(id);
            if is_canary && groups.contains(&record.group) {
                let cx = &mut cx(&self.config, &mut self.shared, now);
                alloc.edit(cx, |record| record.canary = false);
                promoted.push((alloc.record().group.clone(), alloc_id));
            }
        }
        self.edit_deployment(now, id, |deployment| {
            for name in groups {
                if let Some(group) = deployment.groups.get_mut(name) {
                    group.promoted = Some(now.wall);
                    let own = promoted.iter().filter(|(of, _)| of == name);
                    group.promoted_canaries = own.map(|(_, id)| *id).collect();
                }
            }
        });
        self.evaluate(now, &key, Trigger::DeploymentWatcher);
        promoted.into_iter().map(|(_, id)| id).collect()
    }

    /// A roll-out goes no further until it is told to, or goes on.
    pub(in crate::agent) fn pause(&mut self, now: Now, id: DeploymentId, pause: bool) {
        self.edit_deployment(now, id, |deployment| {
            let was_paused = deployment.status == DeploymentStatus::Paused;
            if !pause && was_paused {
                deployment.resumed = Some(now.wall);
            }
            deployment.status = match pause {
                true => DeploymentStatus::Paused,
                false => DeploymentStatus::Running,
            };
        });
    }

    /// A roll-out has failed because somebody says so. Returns the version that comes back, if one does.
    pub(in crate::agent) fn fail(&mut self, now: Now, id: DeploymentId) -> Option<u64> {
        let key = self.local.deployments.get(&id)?.job.clone();
        let record = self.local.jobs.get(&key).cloned()?;
        let rollback = Rollback::of(&record);
        let words = rollback.words("Deployment marked as failed");
        self.end_deployment(now, id, DeploymentStatus::Failed, &words);
        let Rollback::To(stable) = rollback else {
            return None;
        };
        self.roll_back(now, &key, stable.version);
        Some(stable.version)
    }

    /// The last stable version comes back, because the latest one could not be rolled out.
    pub(super) fn roll_back(&mut self, now: Now, key: &JobKey, version: u64) {
        let reverted = self.revert(now, key, version);
        debug_assert!(matches!(reverted, Reply::Registered { .. }), "{reverted:?}");
        self.local.mark(key);
    }

    /// Somebody says of allocations of a roll-out whether they are healthy. Returns those that changed.
    pub(in crate::agent) fn set_health(
        &mut self,
        now: Now,
        ids: &[AllocId],
        healthy: bool,
    ) -> Vec<AllocId> {
        let mut changed = Vec::new();
        for id in ids {
            let Some(alloc) = self.allocs.get_mut(id) else {
                continue;
            };
            let known = alloc.record().health.map(|health| health.healthy);
            if known != Some(healthy) {
                alloc.set_health(&mut cx(&self.config, &mut self.shared, now), healthy);
                changed.push(*id);
            }
        }
        changed
    }

    /// Remembers until when a job's roll-out has to make progress.
    pub(super) fn note_progress(&mut self, key: JobKey, groups: BTreeMap<GroupName, Progress>) {
        match groups.is_empty() {
            true => self.local.progress.remove(&key),
            false => self.local.progress.insert(key, groups),
        };
    }

    /// Jobs whose roll-outs made no progress in time are planned again, which ends these.
    pub(in crate::agent) fn rollouts_are_overdue(&mut self, now: Now) {
        let due = self.local.progress.iter().filter(|(_, groups)| {
            let mut times = groups.values().map(|one| one.at);
            times.any(|at| at <= now.at)
        });
        for key in due.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.local.progress.remove(&key);
            self.local.mark(&key);
        }
    }

    /// Roll-outs go with the versions that they rolled out.
    pub(super) fn forget_old_deployments(&mut self, key: &JobKey, job: &JobRecord) {
        let of_job = (self.local.deployments.values()).filter(|one| one.job == *key);
        let old = of_job.filter(|one| job.version(one.job_version).is_none());
        for id in old.map(|one| one.id).collect::<Vec<_>>() {
            self.forget_deployment(id);
        }
    }

    pub(in crate::agent) fn forget_deployment(&mut self, id: DeploymentId) {
        self.local.deployments.remove(&id);
        self.shared.ledger.delete(Key::Deployment(id));
    }

    /// The latest version of a job proved itself.
    pub(super) fn mark_stable(&mut self, id: DeploymentId) {
        let key = self.local.deployments.get(&id).map(|one| one.job.clone());
        let known = key.and_then(|key| self.local.jobs.get_key_value(&key));
        let Some((key, known)) = known else { return };
        let (key, mut stable) = (key.clone(), JobRecord::clone(known));
        Arc::make_mut(&mut stable.job).stable = true;
        self.save_job(&key, stable);
    }

    /// The allocations of a roll-out.
    pub(in crate::agent) fn allocs_of_rollout(
        &self,
        rollout: &Deployment,
    ) -> impl Iterator<Item = &AllocRunner> {
        let id = rollout.id;
        let of_job = self.view().allocs_of(&rollout.job);
        of_job.filter(move |alloc| alloc.record().deployment == Some(id))
    }
}

/// A roll-out that begins.
pub(super) fn begun(job: &Job, groups: BTreeMap<GroupName, GroupRollout>, now: Now) -> Deployment {
    let mut rollout = Deployment {
        id: DeploymentId::default(),
        job: job.key(),
        job_version: job.version,
        status: DeploymentStatus::Running,
        description: String::new(),
        groups,
        resumed: None,
        modify_time: now.wall,
        create_index: 0,
        modify_index: 0,
    };
    running_words(job, &rollout).clone_into(&mut rollout.description);
    rollout
}
