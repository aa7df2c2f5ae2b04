//! What a plan would do for one job, in numbers: `job plan`.
//!
//! Each copy that a group shall have is placed, replaced, updated in place, replaced later or left alone,
//! and is counted as exactly one of these.

use std::collections::BTreeMap;

use super::reconcile::copies;
use super::{Action, Plan, Snapshot, Unplaced, plan};
use crate::ids::{AllocId, JobKey};
use crate::time::Instant;

/// What a plan would do for one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DryRun {
    /// By group, those included that the job has no more.
    pub groups: BTreeMap<String, GroupChanges>,
    /// Allocations that would be preempted.
    pub preempts: Vec<AllocId>,
    /// What could not be placed, and why.
    pub unplaced: Unplaced,
    /// The plan itself.
    pub plan: Plan,
}

/// What would become of the copies of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupChanges {
    /// Left alone.
    pub ignore: u32,
    /// Made where none runs, those included for which there is no place now.
    pub place: u32,
    /// Ended, and not replaced.
    pub stop: u32,
    /// Canaries that are made beside what they are to replace.
    pub canary: u32,
    /// Updated as they run.
    pub in_place: u32,
    /// Ended and replaced, those included for which there is no place now.
    pub destructive: u32,
    /// Allocations that are preempted for the group.
    pub preemptions: u32,
    /// Of those that are made, how many replace a failed one.
    pub reschedule_now: u32,
    /// Failed, and replaced when their pause is over.
    pub reschedule_later: u32,
}

impl DryRun {
    /// Makes a plan for this job alone, and counts what it says.
    pub fn of(snapshot: &Snapshot<'_>, job: &JobKey) -> DryRun {
        let snapshot = &Snapshot {
            due: vec![job.clone()],
            ..snapshot.clone()
        };
        let mut dry_run = DryRun {
            plan: plan(snapshot),
            ..DryRun::default()
        };
        for action in &dry_run.plan.actions.clone() {
            dry_run.count(snapshot, action);
        }
        let missing = dry_run.unplaced.copies.clone();
        for (group, missing) in missing {
            let changes = dry_run.group(group.as_str());
            changes.place += missing.place;
            changes.destructive += missing.destructive;
        }
        dry_run.ignore_the_rest(snapshot, job);
        dry_run
    }

    fn group(&mut self, name: &str) -> &mut GroupChanges {
        self.groups.entry(name.to_owned()).or_default()
    }

    fn count(&mut self, snapshot: &Snapshot<'_>, action: &Action) {
        let group_of = |id: &AllocId| snapshot.alloc(*id).map(|alloc| alloc.record.group.clone());
        match action {
            Action::Stop(id, _) => {
                if let Some(group) = group_of(id) {
                    self.group(group.as_str()).stop += 1;
                }
            }
            Action::Update(id, ..) => {
                if let Some(group) = group_of(id) {
                    self.group(group.as_str()).in_place += 1;
                }
            }
            Action::ReplaceAt(_, due) => self.count_due(snapshot, due),
            Action::Place(new) => {
                let preempts = u32::try_from(new.evicts.len()).unwrap_or(u32::MAX);
                let changes = self.group(new.record.group.as_str());
                changes.preemptions += preempts;
                if new.record.canary {
                    changes.canary += 1;
                } else if new.outdates {
                    changes.destructive += 1;
                } else {
                    changes.place += 1;
                }
                self.preempts.extend(&new.evicts);
            }
            Action::Considered(_, unplaced) => self.unplaced = unplaced.clone(),
            Action::EndRollout(..)
            | Action::Promote(..)
            | Action::Revert(..)
            | Action::ProgressBy(..)
            | Action::Remove(_)
            | Action::Forget(_)
            | Action::Planned(_) => {}
        }
    }

    fn count_due(&mut self, snapshot: &Snapshot<'_>, due: &BTreeMap<AllocId, Instant>) {
        for (id, at) in due {
            let Some(alloc) = snapshot.alloc(*id) else {
                continue;
            };
            let changes = self.group(alloc.record.group.as_str());
            if *at > snapshot.now.at {
                changes.reschedule_later += 1;
            } else {
                changes.reschedule_now += 1;
            }
        }
    }

    fn ignore_the_rest(&mut self, snapshot: &Snapshot<'_>, job: &JobKey) {
        let Some(record) = snapshot.jobs.get(job) else {
            return;
        };
        for group in &record.job.task_groups {
            let wanted = match record.job.stop {
                true => 0,
                false => copies(&record.job, group),
            };
            let changes = self.group(&group.name);
            let changed =
                changes.place + changes.destructive + changes.in_place + changes.reschedule_later;
            changes.ignore = wanted.saturating_sub(changed);
        }
    }
}
