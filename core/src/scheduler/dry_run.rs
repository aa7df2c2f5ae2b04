//! What a plan would do for one job: `job plan`.

use super::{Action, Changes, Plan, Snapshot, Unplaced, changes, plan};
use crate::ids::{AllocId, JobKey};

/// What a plan would do for one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DryRun {
    /// What becomes of the copies of each group.
    pub groups: Changes,
    /// Allocations that would be preempted.
    pub preempts: Vec<AllocId>,
    /// What could not be placed, and why.
    pub unplaced: Unplaced,
    /// The plan itself.
    pub plan: Plan,
}

impl DryRun {
    /// Makes a plan for this job alone.
    pub fn of(snapshot: &Snapshot<'_>, job: &JobKey) -> DryRun {
        let snapshot = &Snapshot {
            due: vec![job.clone()],
            ..snapshot.clone()
        };
        let plan = plan(snapshot);
        let mut dry_run = DryRun::default();
        if let Some(record) = snapshot.jobs.get(job) {
            // A plan that only promotes or reverts says nothing of copies.
            dry_run.groups = changes::changes(snapshot, record, &[], &Unplaced::default());
        }
        for action in &plan.actions {
            if let Action::Place(new) = action {
                dry_run.preempts.extend(&new.evicts);
            }
            if let Action::Considered(_, unplaced, groups) = action {
                dry_run.unplaced = unplaced.clone();
                dry_run.groups = groups.clone();
            }
        }
        DryRun { plan, ..dry_run }
    }
}
