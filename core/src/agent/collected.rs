//! What stays of allocations whose directories were garbage-collected: a record of each, as long as its
//! job's version is kept, bounded by number and age.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Agent;
use super::view::behind;
use crate::alloc::runner::AllocRunner;
use crate::ids::{AllocId, JobKey};
use crate::store::collected::CollectedAlloc;
use crate::store::record::{AllocRecord, JobRecord};
use crate::store::{Key, Record};

/// The records, by allocation, by job and by age.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Collected {
    records: BTreeMap<AllocId, Arc<CollectedAlloc>>,
    #[serde(with = "crate::pairs")]
    of_jobs: BTreeMap<JobKey, BTreeSet<AllocId>>,
    /// By the index of their last change: the oldest goes first.
    by_age: BTreeSet<(u64, AllocId)>,
}

impl Collected {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn get(&self, id: AllocId) -> Option<&Arc<CollectedAlloc>> {
        self.records.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<CollectedAlloc>> + Clone {
        self.records.values()
    }

    /// Those behind one of them.
    pub(super) fn after(&self, id: Option<AllocId>) -> impl Iterator<Item = &Arc<CollectedAlloc>> {
        let records = self.records.range((behind(id), Bound::Unbounded));
        records.map(|(_, record)| record)
    }

    pub(super) fn of_job(
        &self,
        job: &JobKey,
    ) -> impl Iterator<Item = &Arc<CollectedAlloc>> + Clone + use<'_> {
        let ids = self.of_jobs.get(job).into_iter().flatten();
        ids.filter_map(|id| self.records.get(id))
    }

    pub(super) fn insert(&mut self, record: Arc<CollectedAlloc>) {
        let AllocRecord {
            id,
            job,
            modify_index,
            ..
        } = &record.alloc;
        self.by_age.insert((*modify_index, *id));
        self.of_jobs.entry(job.clone()).or_default().insert(*id);
        self.records.insert(*id, record);
    }

    fn remove(&mut self, id: AllocId) {
        let Some(record) = self.records.remove(&id) else {
            return;
        };
        self.by_age.remove(&(record.alloc.modify_index, id));
        if let Some(of_job) = self.of_jobs.get_mut(&record.alloc.job) {
            of_job.remove(&id);
            if of_job.is_empty() {
                self.of_jobs.remove(&record.alloc.job);
            }
        }
    }

    /// The oldest first.
    pub(super) fn by_age(&self) -> impl Iterator<Item = &Arc<CollectedAlloc>> {
        let ids = self.by_age.iter();
        ids.filter_map(|(_, id)| self.records.get(id))
    }

    /// The oldest, if there are more than `most`.
    fn oldest_over_limit(&self, most: usize) -> Option<AllocId> {
        let (_, oldest) = self.by_age.first()?;
        (self.records.len() > most).then_some(*oldest)
    }
}

impl Agent {
    /// The directory of an allocation is gone: its record stays, unless its job goes too.
    pub(super) fn keep_record(&mut self, alloc: &AllocRunner) {
        let record = alloc.record();
        if record.of_servers {
            return;
        }
        let job = self.local.jobs.get(&record.job).filter(|job| !job.purge);
        if job.is_none_or(|job| job.version(record.job_version).is_none()) {
            return;
        }
        let tasks = alloc.tasks().iter();
        let tasks = tasks.map(|task| (&task.spec().key.task, task.state()));
        let record = Arc::new(CollectedAlloc::of(record, tasks));
        let key = Key::Collected(record.alloc.id);
        self.shared
            .ledger
            .put(key, Record::Collected(record.clone()));
        self.collected.insert(record);
        self.forget_records_over_limit();
    }

    /// Forgets the oldest records beyond the number that is kept.
    pub(super) fn forget_records_over_limit(&mut self) {
        while let Some(oldest) = self.collected.oldest_over_limit(self.config.kept_records) {
            self.forget_record(oldest);
        }
    }

    /// Records go with the versions of their job, and with the job.
    pub(super) fn forget_records_of(&mut self, key: &JobKey, job: Option<&JobRecord>) {
        let kept = |version| job.is_some_and(|job| job.version(version).is_some());
        let of_job = self.collected.of_job(key).map(|record| &record.alloc);
        let old = of_job.filter(|alloc| !kept(alloc.job_version));
        for id in old.map(|alloc| alloc.id).collect::<Vec<_>>() {
            self.forget_record(id);
        }
    }

    pub(super) fn forget_record(&mut self, id: AllocId) {
        self.collected.remove(id);
        self.shared.ledger.delete(Key::Collected(id));
    }
}
