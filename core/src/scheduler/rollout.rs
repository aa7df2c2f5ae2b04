//! Whether the roll-out of a job's latest version is over.

use std::sync::Arc;

use super::{Snapshot, reconcile};
use crate::ids::DeploymentId;
use crate::model::eval::{Deployment, DeploymentStatus};
use crate::model::group::TaskGroup;
use crate::store::record::{AllocRecord, JobRecord};

/// Whether the roll-out of the latest version went wrong before.
pub(super) fn failed_before(snapshot: &Snapshot<'_>, record: &JobRecord) -> bool {
    let rollout = record
        .deployment
        .and_then(|id| snapshot.deployments.get(&id));
    rollout.is_some_and(|rollout| rollout.status == DeploymentStatus::Failed)
}

/// How the roll-out of the latest version ends, and why, if it is over now. `allocs` are the job's.
pub(super) fn verdict(
    snapshot: &Snapshot<'_>,
    record: &JobRecord,
    allocs: &[&AllocRecord],
) -> Option<(DeploymentId, DeploymentStatus, &'static str)> {
    let id = record.deployment?;
    let running = |d: &Arc<Deployment>| d.status == DeploymentStatus::Running;
    if !snapshot.deployments.get(&id).is_some_and(running) {
        return None;
    }
    let allocs: Vec<&AllocRecord> = (allocs.iter().copied())
        .filter(|alloc| alloc.deployment == Some(id))
        .collect();
    let verdict = |alloc: &AllocRecord| alloc.health.map(|health| health.healthy);
    if allocs.iter().any(|alloc| verdict(alloc) == Some(false)) {
        let words = "Failed due to unhealthy allocations";
        return Some((id, DeploymentStatus::Failed, words));
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
    let complete = watched
        .all(|group| (0..reconcile::copies(&record.job, group)).all(|index| proved(group, index)));
    let words = "Deployment completed successfully";
    complete.then_some((id, DeploymentStatus::Successful, words))
}
