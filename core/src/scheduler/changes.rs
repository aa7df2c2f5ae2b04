//! What a plan does for one job, in numbers: what `job plan` shows, and an evaluation keeps.
//!
//! Each copy that a group shall have is placed, replaced, updated in place, replaced later or left alone,
//! and is counted as exactly one of these. Canaries stand beside copies, and are counted besides.

use std::collections::BTreeMap;

use super::reconcile::copies;
use super::{Action, Snapshot, Unplaced};
use crate::ids::AllocId;
use crate::model::eval::GroupChanges;
use crate::store::record::{AllocRecord, JobRecord};
use crate::time::Instant;

/// What becomes of the copies of groups, those included that the job has no more.
pub type Changes = BTreeMap<String, GroupChanges>;

/// Counts what these actions do for a job, and what could not be placed.
pub(super) fn changes(
    snapshot: &Snapshot<'_>,
    record: &JobRecord,
    actions: &[Action],
    unplaced: &Unplaced,
) -> Changes {
    let mut counts = Counts {
        snapshot,
        groups: BTreeMap::new(),
    };
    for action in actions {
        counts.count(action);
    }
    for (group, missing) in &unplaced.copies {
        let group = counts.group(group.as_str());
        group.changes.place += missing.place;
        group.changes.destructive += missing.destructive;
        group.changes.canary += missing.canary;
        group.touched += missing.place + missing.destructive;
    }
    counts.ignore_the_rest(record);
    let groups = counts.groups.into_iter();
    groups.map(|(name, group)| (name, group.changes)).collect()
}

struct Counts<'a> {
    snapshot: &'a Snapshot<'a>,
    groups: BTreeMap<String, Counted>,
}

/// What is counted of a group.
#[derive(Default)]
struct Counted {
    changes: GroupChanges,
    /// How many of the copies that it shall have are not left alone.
    touched: u32,
}

impl<'a> Counts<'a> {
    fn group(&mut self, name: &str) -> &mut Counted {
        self.groups.entry(name.to_owned()).or_default()
    }

    fn record(&self, id: AllocId) -> Option<&'a AllocRecord> {
        self.snapshot.alloc(id).map(|alloc| alloc.record)
    }

    fn count(&mut self, action: &Action) {
        match action {
            Action::Stop(id, _) => {
                if let Some(alloc) = self.record(*id) {
                    self.group(alloc.group.as_str()).changes.stop += 1;
                }
            }
            Action::Update(id, ..) => {
                if let Some(alloc) = self.record(*id) {
                    let group = self.group(alloc.group.as_str());
                    group.changes.in_place += 1;
                    group.touched += u32::from(!alloc.canary);
                }
            }
            Action::ReplaceAt(_, due) => self.count_due(due),
            Action::Place(new) => {
                let group = self.group(new.record.group.as_str());
                let changes = &mut group.changes;
                changes.preemptions += u32::try_from(new.evicts.len()).unwrap_or(u32::MAX);
                if new.record.canary {
                    changes.canary += 1;
                } else if new.outdates {
                    changes.destructive += 1;
                } else {
                    changes.place += 1;
                }
                group.touched += u32::from(!new.record.canary);
            }
            Action::Considered(..)
            | Action::EndRollout(..)
            | Action::Promote(..)
            | Action::Revert(..)
            | Action::ProgressBy(..)
            | Action::Remove(_)
            | Action::Forget(_)
            | Action::Planned(_) => {}
        }
    }

    fn count_due(&mut self, due: &BTreeMap<AllocId, Instant>) {
        let now = self.snapshot.now.at;
        for (id, at) in due {
            let Some(alloc) = self.record(*id) else {
                continue;
            };
            let group = self.group(alloc.group.as_str());
            if *at > now {
                group.changes.reschedule_later += 1;
                group.touched += u32::from(!alloc.canary);
            } else {
                group.changes.reschedule_now += 1;
            }
        }
    }

    fn ignore_the_rest(&mut self, record: &JobRecord) {
        for group in &record.job.task_groups {
            let wanted = match record.job.stop {
                true => 0,
                false => copies(&record.job, group),
            };
            let group = self.group(&group.name);
            group.changes.ignore = wanted.saturating_sub(group.touched);
        }
    }
}
