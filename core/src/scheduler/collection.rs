//! Which ended allocations are removed now.
//!
//! Two things ask for it: there are more ended allocations than the configured number, or the disk is too
//! full. Then one allocation is removed at a time, since nobody knows how much it frees before it is gone.
//! `system gc` removes all that it can. The oldest go first.
//!
//! Kept nevertheless are:
//!
//! - what still decides about a replacement, or is counted by a roll-out that is under way;
//! - disks that another allocation is to take over;
//! - disks that another node is to fetch: for a day, or for ten minutes after it has read them to the end.

use std::collections::BTreeSet;

use super::gc_snapshot::GcSnapshot;
use crate::ids::AllocId;
use crate::store::record::AllocRecord;

/// What a collection is to achieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// How many ended allocations stay.
    pub keep: usize,
    /// Whether the disk is too full, so that one of them has to go.
    pub under_pressure: bool,
    /// Whether all are to go.
    pub all: bool,
}

/// Which allocations are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// These, the oldest first.
    pub remove: Vec<AllocId>,
    /// The one of them that goes for want of disk space.
    pub for_space: Option<AllocId>,
    /// Whether others ended that may go some day, those included that are kept for another node.
    pub others: bool,
}

/// Decides which allocations are removed.
pub fn collect(gc_snapshot: &GcSnapshot<'_>, goal: Goal) -> Collection {
    // What never got a disk goes before the disk's source: it holds less, and may be replaced yet.
    let awaited = gc_snapshot.awaited_disks(!goal.all);
    let ended = gc_snapshot.allocs.iter().copied();
    // What is being removed counts as gone: one too many costs one.
    let ended = ended.filter(|alloc| alloc.finished && !alloc.destroying);
    let mut ended = ended.filter(|alloc| !gc_snapshot.is_needed_beside(alloc, &awaited));
    let removable = ended.clone().filter(|alloc| !gc_snapshot.is_leased(alloc));
    let keep = if goal.all { 0 } else { goal.keep };
    // How much the oldest frees is known only when it is gone: one at a time.
    let count = removable.clone().count();
    let keep = keep.min(count.saturating_sub(usize::from(goal.under_pressure)));
    let remove = oldest_beyond(removable, count, keep);
    Collection {
        for_space: remove.first().copied().filter(|_| goal.under_pressure),
        others: ended.nth(remove.len()).is_some(),
        remove,
    }
}

/// The oldest of so many, so that `keep` are left.
fn oldest_beyond<'a>(
    ended: impl Iterator<Item = &'a AllocRecord>,
    count: usize,
    keep: usize,
) -> Vec<AllocId> {
    if count <= keep {
        return Vec::new();
    }
    let ended: BTreeSet<(u64, AllocId)> =
        ended.map(|alloc| (alloc.modify_index, alloc.id)).collect();
    let too_many = ended.len().saturating_sub(keep);
    ended.into_iter().take(too_many).map(|(_, id)| id).collect()
}
