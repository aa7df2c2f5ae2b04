//! Disks as earlier versions saved them: in the records of allocations and jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::disk::{Disk, Elsewhere, Lease};
use super::record::{AllocRecord, JobRecord};
use super::{Key, Record, Saved};
use crate::ids::{JobKey, Slot};

impl Saved {
    /// Moves what earlier versions saved of disks into the disks' own records. Returns what is to be written for
    /// that.
    pub fn migrate(&mut self) -> Vec<(Key, Record)> {
        let mut disks: BTreeMap<Slot, (Option<Arc<AllocRecord>>, Disk)> = BTreeMap::new();
        let mut changed = Vec::new();
        for alloc in self.allocs.values_mut() {
            let (last, disk) = disks.entry(alloc.slot()).or_default();
            let is_later = |known: &Arc<AllocRecord>| known.create_index < alloc.create_index;
            if last.as_ref().is_none_or(is_later) {
                *last = Some(alloc.clone());
            }
            let lies_at = || core::iter::once(alloc.id).chain(alloc.inherits.iter().copied());
            if let Some(until) = alloc.promised {
                let allocs = lies_at().collect();
                let alloc = alloc.id;
                disk.lease = Some(Lease {
                    alloc,
                    allocs,
                    until,
                });
            }
            if alloc.promised.is_some() || alloc.remote.is_some() || !alloc.inherits.is_empty() {
                let clean = Arc::make_mut(alloc);
                (clean.inherits, clean.remote, clean.promised) = (Vec::new(), None, None);
                changed.push((Key::Alloc(alloc.id), Record::Alloc(alloc.clone())));
            }
        }
        for (last, disk) in disks.values_mut() {
            let Some(last) = last else { continue };
            disk.holder = Some(last.id);
            disk.sources.clone_from(&last.inherits);
            let migrates = migrates(&self.jobs, last);
            disk.elsewhere = last.remote.clone().map(|previous| Elsewhere {
                previous,
                fetchers: Vec::from_iter(migrates.then_some(last.id)),
                ..Elsewhere::default()
            });
        }
        for (key, job) in &mut self.jobs {
            if job.handed.is_empty() {
                continue;
            }
            let clean: &mut JobRecord = Arc::make_mut(job);
            for handed in core::mem::take(&mut clean.handed) {
                let slot = Slot {
                    job: key.clone(),
                    group: handed.group,
                    index: handed.index,
                    lane: 0,
                    alloc: None,
                };
                let (_, disk) = disks.entry(slot).or_default();
                disk.replace_elsewhere(handed.from);
            }
            changed.push((Key::Job(key.clone()), Record::Job(job.clone())));
        }
        for (slot, (_, disk)) in disks {
            let says_more = disk != Disk::of(disk.holder);
            // One that has a record already was written by this version.
            if says_more && !self.disks.contains_key(&slot) {
                let disk = Arc::new(disk);
                changed.push((Key::Disk(slot.clone()), Record::Disk(disk.clone())));
                self.disks.insert(slot, disk);
            }
        }
        changed
    }
}

/// Whether an allocation was to fetch the disk of the one before it on another node.
fn migrates(jobs: &BTreeMap<JobKey, Arc<JobRecord>>, alloc: &AllocRecord) -> bool {
    let job = jobs.get(&alloc.job);
    let version = job.and_then(|job| job.version(alloc.job_version));
    let group = version.and_then(|job| job.group(alloc.group.as_str()));
    let disk = group.and_then(|group| group.ephemeral_disk);
    disk.is_some_and(|disk| disk.migrate)
}
