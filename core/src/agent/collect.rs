//! Garbage collection of ended allocations: which are removed now.
//!
//! Two things ask for it: there are more ended allocations than the configured number, or the disk
//! is too full ([`super::room`]). Then one allocation is removed at a time, since nobody knows how
//! much it frees before it is gone. `system gc` and `alloc gc` ask for more.
//!
//! Kept nevertheless are:
//!
//! - what still decides about a replacement, or is counted by a roll-out that is under way;
//! - disks that another allocation is to take over;
//! - disks that another node is to fetch: for a day, or for ten minutes after it has read them to
//!   the end.
//!
//! Whatever ends such a need asks for another collection. [`crate::gc`] chooses among what may go,
//! and bounds how many are removed at once.

use std::collections::BTreeSet;

use super::{Agent, cx};
use crate::gc;
use crate::ids::AllocId;
use crate::model::alloc::DesiredStatus;
use crate::model::eval::DeploymentStatus;
use crate::store::record::{AllocRecord, JobRecord};
use crate::time::Now;

impl Agent {
    /// Cleans away what is too much. Returns what it touched.
    pub(super) fn collect(&mut self, now: Now) -> BTreeSet<AllocId> {
        let all = core::mem::take(&mut self.collect_all);
        self.forget_garbage(now, all);
        let keep = if all { 0 } else { self.config.keep_terminal };
        let crowded = self.machine.room.take_crowded();
        let records = self.allocs.values().map(|alloc| &**alloc.record());
        // Who never got a disk goes before that: it holds less, and may be replaced yet.
        let awaited = self.sources(|holder| self.may_get_disk(holder) || !all);
        // Who is being cleaned away counts as gone: one too many costs one.
        let ended = records.filter(|alloc| alloc.finished && !alloc.destroying);
        let ended = ended.filter(|alloc| !self.is_needed(alloc, &awaited));
        let collectable = ended.clone().filter(|alloc| !self.is_leased(alloc, now));
        let kept = collectable.clone().count();
        // How much the oldest frees is known only when it is gone: one at a time.
        let keep = keep.min(kept.saturating_sub(usize::from(crowded)));
        let chosen = gc::surplus(collectable, keep);
        // What is promised may go some day.
        let left = ended.count() > chosen.len() && self.shutdown.is_none();
        let goes = chosen.first().copied().filter(|_| crowded);
        let room = &mut self.machine.room;
        room.look(&mut cx(&self.config, &mut self.shared, now), goes, left);
        for id in &chosen {
            self.clean_away(now, *id);
        }
        chosen.into_iter().collect()
    }

    /// Cleans away an allocation that ended. Asking again changes nothing.
    pub(super) fn clean_away(&mut self, now: Now, id: AllocId) {
        self.leave_to_the_job(id);
        if let Some(alloc) = self.allocs.get_mut(&id) {
            alloc.destroy(&mut cx(&self.config, &mut self.shared, now));
        }
    }

    /// Whether something still depends on an allocation that ended; `awaited` are those whose
    /// disks somebody may take over.
    pub(super) fn is_needed(&self, alloc: &AllocRecord, awaited: &BTreeSet<AllocId>) -> bool {
        self.awaits_replacement(alloc) || self.counts(alloc) || awaited.contains(&alloc.id)
    }

    /// Whether the allocation's end still decides about a replacement.
    fn awaits_replacement(&self, alloc: &AllocRecord) -> bool {
        let local = &self.local;
        let waits = local.look_again.contains_key(&alloc.job) || local.awaits_placement(&alloc.job);
        alloc.next.is_none() && waits
    }

    /// The allocations whose disks somebody may still take over.
    pub(super) fn awaited_disks(&self) -> BTreeSet<AllocId> {
        self.sources(|holder| self.may_get_disk(holder))
    }

    /// Whether an allocation, or what replaces it, may take over a disk yet.
    fn may_get_disk(&self, holder: &AllocRecord) -> bool {
        !holder.finished || self.awaits_replacement(holder)
    }

    /// Whether an allocation is kept for another node.
    pub(super) fn is_leased(&self, alloc: &AllocRecord, now: Now) -> bool {
        let disk = self.shared.disks.get(&alloc.slot());
        disk.is_some_and(|disk| disk.is_leased(alloc.id, now.wall))
    }

    /// From where disks have yet to move to these holders.
    fn sources(&self, is_one: impl Fn(&AllocRecord) -> bool) -> BTreeSet<AllocId> {
        let disks = self.shared.disks.values();
        let disks = disks.filter(|disk| {
            let holder = disk.holder.and_then(|id| self.allocs.get(&id));
            holder.is_some_and(|holder| is_one(holder.record()))
        });
        disks
            .flat_map(|disk| disk.sources.iter().copied())
            .collect()
    }

    /// Whether a roll-out that is under way still counts the allocation: what it proved would be
    /// forgotten, and the roll-out never be over.
    fn counts(&self, alloc: &AllocRecord) -> bool {
        let rollout = alloc
            .deployment
            .and_then(|id| self.local.deployments.get(&id));
        rollout.is_some_and(|rollout| rollout.status == DeploymentStatus::Running)
    }

    /// What the job has to know of an ended allocation when that is cleaned away: that it filled its
    /// place.
    fn leave_to_the_job(&mut self, id: AllocId) {
        let Some(alloc) = self.allocs.get(&id).map(|alloc| alloc.record().clone()) else {
            return;
        };
        let Some(job) = self.local.jobs.get(&alloc.job) else {
            return;
        };
        if alloc.next.is_some() || alloc.destroying {
            return;
        }
        let mut left = JobRecord::clone(job);
        if alloc.desired == DesiredStatus::Run && alloc.job_version == job.job.version {
            left.done.insert((alloc.group.clone(), alloc.index));
        }
        if left != **job {
            self.save_job(&alloc.job, left);
        }
    }
}
