//! The disk as a commit leaves it.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::ids::{AllocId, JobKey};
use drover_core::store::collected::CollectedAlloc;
use drover_core::store::record::{AllocRecord, JobRecord};
use drover_core::store::{Batch, Key, Record};

use crate::world::World;

/// What the disk holds, with the changes of a commit laid over it.
#[derive(Clone, Copy)]
pub(super) struct After<'a> {
    disk: &'a BTreeMap<Key, Record>,
    batch: &'a Batch,
}

impl<'a> After<'a> {
    pub(super) fn of(world: &'a World, batch: &'a Batch) -> After<'a> {
        let disk = world.disk.records();
        After { disk, batch }
    }

    fn record(self, key: &Key) -> Option<&'a Record> {
        match self.batch.get(key) {
            Some(changed) => changed.as_ref(),
            None => self.disk.get(key),
        }
    }

    fn records(self) -> impl Iterator<Item = &'a Record> {
        let kept = self.disk.iter();
        let kept = kept.filter(move |(key, _)| !self.batch.contains_key(key));
        let written = self.batch.values().flatten();
        kept.map(|(_, record)| record).chain(written)
    }

    pub(super) fn job(self, key: &JobKey) -> Option<&'a JobRecord> {
        match self.record(&Key::Job(key.clone())) {
            Some(Record::Job(job)) => Some(job),
            _ => None,
        }
    }

    pub(super) fn allocs_of(self, job: &JobKey) -> impl Iterator<Item = &'a Arc<AllocRecord>> {
        let allocs = self.records().filter_map(|record| match record {
            Record::Alloc(alloc) => Some(alloc),
            _ => None,
        });
        allocs.filter(move |alloc| alloc.job == *job)
    }

    /// What stays of allocations whose directories are gone.
    pub(super) fn collected(self) -> BTreeMap<AllocId, &'a CollectedAlloc> {
        let collected = self.records().filter_map(|record| match record {
            Record::Collected(one) => Some((one.alloc.id, &**one)),
            _ => None,
        });
        collected.collect()
    }
}
