//! The records of roll-outs (deployments) of new versions.

use std::sync::Arc;

use crate::agent::Agent;
use crate::cx::Cx;
use crate::ids::{DeploymentId, JobKey};
use crate::model::eval::{Deployment, DeploymentStatus};
use crate::model::job::{Job, JobType};
use crate::store::record::JobRecord;
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
}

/// Whether a version of a job is rolled out in steps that are watched.
pub(super) fn rolls_out(job: &Job) -> bool {
    let mut groups = job.task_groups.iter();
    let rolls = groups.any(|g| g.update.as_ref().is_some_and(|u| u.max_parallel > 0));
    job.job_type == JobType::Service && !job.is_template() && rolls
}

pub(super) fn new_deployment(cx: &mut Cx<'_>, key: &JobKey, job: &Job) -> Option<Deployment> {
    if !rolls_out(job) {
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
