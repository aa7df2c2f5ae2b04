//! Jobs that move from node to node: what is handed over, and what is awaited meanwhile. Where disks
//! lie and until when they are kept is in the slots' records ([`crate::store::disk`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Agent, View};
use crate::alloc::runner::AllocRunner;
use crate::claims;
use crate::ids::{JobKey, Slot};
use crate::model::remote::RemotePrevious;
use crate::store::disk::Disk;
use crate::store::record::AllocRecord;

impl Agent {
    /// The disk of a slot. Without a record it is the latest allocation's own.
    pub(super) fn disk_of(&self, slot: &Slot) -> Disk {
        let known = self.shared.disks.get(slot).map(|disk| Disk::clone(disk));
        known.unwrap_or_else(|| {
            let allocs = self.view().allocs_of(&slot.job).map(AllocRunner::record);
            let of_slot = allocs.filter(|alloc| !alloc.destroying && alloc.slot() == *slot);
            let latest = of_slot.max_by_key(|alloc| alloc.create_index);
            Disk::of(latest.map(|alloc| alloc.id))
        })
    }
}

impl<'a> View<'a> {
    /// What a job still awaits of another node, or is to get from there, for copies that are wanted.
    /// Until it has that, not all that belongs to it is here.
    pub fn awaited_elsewhere(self, key: &JobKey) -> Option<&'a RemotePrevious> {
        let record = self.job(key)?;
        let mut disks = self.disks_of(key);
        disks.find_map(|(slot, disk)| {
            let previous = &disk.elsewhere.as_ref()?.previous;
            let group = record.job.group(slot.group.as_str());
            let gets_disk = group.and_then(|group| group.ephemeral_disk);
            let gets_disk = gets_disk.is_some_and(|disk| disk.migrate);
            let is_wanted = slot.index < crate::scheduler::gc_snapshot::wanted(record, &slot.group);
            (is_wanted && (!previous.ended || gets_disk)).then_some(previous)
        })
    }

    /// Of each copy of a job the allocation that another node would replace: the latest, if it is kept.
    /// One that never had its turn and goes leaves that to the one before it, which may still run.
    pub fn handover(self, key: &JobKey) -> impl Iterator<Item = &'a Arc<AllocRecord>> + use<'a> {
        let goes_unused = |alloc: &&AllocRunner| alloc.record().destroying && alloc.never_ran();
        let mut latest = BTreeMap::<_, &Arc<AllocRecord>>::new();
        for alloc in self.allocs_of(key).filter(|alloc| !goes_unused(alloc)) {
            let record = alloc.record();
            if record.canary {
                continue;
            }
            let copy = latest.entry((&record.group, record.index));
            let newest = copy.or_insert(record);
            if newest.age() < record.age() {
                *newest = record;
            }
        }
        latest.into_values().filter(|alloc| !alloc.destroying)
    }

    /// An allocation of a job that has not ended, where what would be handed over still waits for that:
    /// another node would ask for the end of the latter only.
    pub fn still_ends(self, key: &JobKey) -> Option<&'a Arc<AllocRecord>> {
        let mut latest = self.handover(key);
        latest.find_map(|latest| {
            let before = |alloc: &&AllocRunner| {
                let record = alloc.record();
                let same = record.index == latest.index && record.group == latest.group;
                same && claims::is_older(record, latest) && !alloc.is_gone()
            };
            self.allocs_of(key).find(before).map(AllocRunner::record)
        })
    }
}
