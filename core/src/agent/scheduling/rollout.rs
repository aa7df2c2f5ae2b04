//! Roll-outs (deployments) of new versions, and when they are over.

use std::sync::Arc;

use crate::agent::Agent;
use crate::cx::Cx;
use crate::ids::{DeploymentId, JobKey};
use crate::local::reconcile;
use crate::model::eval::{Deployment, DeploymentStatus};
use crate::model::group::TaskGroup;
use crate::model::job::{Job, JobType};
use crate::store::record::{AllocRecord, JobRecord};
use crate::store::{Key, Record};

impl Agent {
    pub(super) fn save_deployment(&mut self, deployment: Deployment) {
        let deployment = Arc::new(deployment);
        let record = Record::Deployment(deployment.clone());
        self.shared
            .ledger
            .put(Key::Deployment(deployment.id), record);
        self.local.deployments.insert(deployment.id, deployment);
    }

    pub(super) fn end_deployment(
        &mut self,
        id: DeploymentId,
        status: DeploymentStatus,
        words: &str,
    ) {
        let Some(known) = self.local.deployments.get(&id) else {
            return;
        };
        if known.status != DeploymentStatus::Running {
            return;
        }
        let mut deployment = Deployment::clone(known);
        self.shared.index += 1;
        deployment.status = status;
        words.clone_into(&mut deployment.description);
        deployment.modify_index = self.shared.index;
        self.save_deployment(deployment);
        // It counts what ended no longer.
        self.collect_due = true;
    }

    /// Roll-outs go with the versions that they rolled out.
    pub(super) fn forget_old_deployments(&mut self, key: &JobKey, job: &JobRecord) {
        let of_job = (self.local.deployments.values()).filter(|one| one.job == *key);
        let old = of_job.filter(|one| job.version(one.job_version).is_none());
        for id in old.map(|one| one.id).collect::<Vec<_>>() {
            self.local.deployments.remove(&id);
            self.shared.ledger.delete(Key::Deployment(id));
        }
    }

    pub(super) fn rollout_failed(&self, record: &JobRecord) -> bool {
        let rollout = record
            .deployment
            .and_then(|id| self.local.deployments.get(&id));
        rollout.is_some_and(|rollout| rollout.status == DeploymentStatus::Failed)
    }

    /// Whether the roll-out of the latest version is over.
    pub(super) fn look_at_deployment(&mut self, key: &JobKey) {
        let Some(record) = self.local.jobs.get(key).cloned() else {
            return;
        };
        let Some(id) = record.deployment else { return };
        let running = |d: &Arc<Deployment>| d.status == DeploymentStatus::Running;
        if !self.local.deployments.get(&id).is_some_and(running) {
            return;
        }
        let of_job = self.local.allocs.get(key).into_iter().flatten();
        let allocs: Vec<&AllocRecord> = of_job
            .filter_map(|id| self.allocs.get(id))
            .map(|alloc| &**alloc.record())
            .filter(|alloc| alloc.deployment == Some(id))
            .collect();
        let verdict = |alloc: &AllocRecord| alloc.health.map(|health| health.healthy);
        if allocs.iter().any(|alloc| verdict(alloc) == Some(false)) {
            let words = "Failed due to unhealthy allocations";
            return self.end_deployment(id, DeploymentStatus::Failed, words);
        }
        // Each copy counts once, however often it was replaced; only those of watched groups do.
        let proved = |group: &TaskGroup, index| {
            let here = |alloc: &&AllocRecord| {
                alloc.group.as_str() == group.name
                    && alloc.index == index
                    && !alloc.desired.is_terminal()
            };
            let mut here = allocs.iter().copied().filter(here);
            here.any(|alloc| verdict(alloc) == Some(true))
        };
        let mut watched = record
            .job
            .task_groups
            .iter()
            .filter(|group| group.update.is_some());
        let complete = watched.all(|group| {
            (0..reconcile::copies(&record.job, group)).all(|index| proved(group, index))
        });
        if complete {
            let words = "Deployment completed successfully";
            self.end_deployment(id, DeploymentStatus::Successful, words);
            let mut stable = JobRecord::clone(&record);
            Arc::make_mut(&mut stable.job).stable = true;
            self.save_job(key, stable);
        }
    }
}

pub(super) fn new_deployment(cx: &mut Cx<'_>, key: &JobKey, job: &Job) -> Option<Deployment> {
    let rolls = job
        .task_groups
        .iter()
        .any(|g| g.update.as_ref().is_some_and(|u| u.max_parallel > 0));
    if job.job_type != JobType::Service || job.is_parameterized() || !rolls {
        return None;
    }
    let index = cx.next_index();
    Some(Deployment {
        id: cx.deployment_id(),
        job: key.clone(),
        job_version: job.version,
        status: DeploymentStatus::Running,
        description: "Deployment is running".to_owned(),
        create_index: index,
        modify_index: index,
    })
}
