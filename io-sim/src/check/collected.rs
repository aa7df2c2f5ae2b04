//! What stays of allocations whose directories were garbage-collected.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::ids::AllocId;
use drover_core::model::alloc::TaskState;
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::store::collected::CollectedAlloc;
use drover_core::store::record::{AllocRecord, JobRecord, TaskRecord};
use drover_core::store::{Batch, Key, Record};

use super::after::After;
use super::history::{saved_alloc, saved_job};
use super::{Checker, Property, Verdict};
use crate::world::World;

impl Checker {
    /// Looks at a commit that leaves.
    pub(super) fn collected_records(
        &mut self,
        world: &World,
        agent: &Agent,
        batch: &Batch,
    ) -> Verdict {
        let concerned = |key: &Key| matches!(key, Key::Alloc(_) | Key::Collected(_));
        if !batch
            .iter()
            .any(|(key, record)| concerned(key) && record.is_none())
        {
            return Ok(());
        }
        let after = After::of(world, batch).collected();
        let most = self.kept_records;
        self.holds(
            Property::CollectedRecordsAreBounded,
            after.len() <= most,
            || format!("{} records, at most {most} are allowed", after.len()),
        )?;
        for (key, record) in batch {
            match (key, record) {
                (Key::Alloc(id), None) => {
                    if let Some(alloc) = saved_alloc(world, *id) {
                        self.collected_alloc_keeps_its_record(world, agent, batch, &after, alloc)?;
                        self.collected_record_is_true(world, &after, alloc)?;
                    }
                }
                (Key::Collected(id), None) => {
                    if let Some(Record::Collected(old)) =
                        world.disk.records().get(&Key::Collected(*id))
                    {
                        self.collected_alloc_keeps_its_record(
                            world, agent, batch, &after, &old.alloc,
                        )?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A record is kept as long as its job version is, unless there are as many newer ones as are
    /// kept, or all garbage is asked to go.
    fn collected_alloc_keeps_its_record(
        &mut self,
        world: &World,
        agent: &Agent,
        batch: &Batch,
        after: &BTreeMap<AllocId, &CollectedAlloc>,
        alloc: &AllocRecord,
    ) -> Verdict {
        let purged = |job: &JobRecord| job.purge;
        let job_goes =
            self.job_goes(agent, &alloc.job) || saved_job(world, &alloc.job).is_some_and(purged);
        let job = After::of(world, batch).job(&alloc.job);
        let version_goes = job.is_none_or(|job| job.version(alloc.job_version).is_none());
        // Some of those that came after it may have gone in the same commit, with their version, or
        // before their record was ever saved.
        let newer = |other: &&CollectedAlloc| other.alloc.modify_index > alloc.modify_index;
        let saved = world.disk.records().values();
        let saved = saved.filter_map(|record| match record {
            Record::Collected(saved) => Some(&**saved),
            _ => None,
        });
        let newer = (after.values().copied()).chain(saved).filter(newer);
        let going = batch.iter().filter_map(|change| match change {
            (Key::Alloc(id), None) => Some(*id),
            _ => None,
        });
        let newer: BTreeSet<AllocId> = (newer.map(|one| one.alloc.id).chain(going))
            .filter(|id| *id != alloc.id)
            .collect();
        let newer = newer.len();
        let kept = after.contains_key(&alloc.id);
        self.sometimes(
            Property::SometimesCollectedRecordExpires,
            !kept && newer > 0,
        );
        let asked = self.replies.collects();
        let since = alloc.modify_time;
        let old = self.is_old(world, since, |limits| limits.records);
        let holds = kept || asked || job_goes || version_goes || old || newer >= self.kept_records;
        self.holds(Property::CollectedAllocKeepsItsRecord, holds, || {
            let versions = job.map(|job| job.newest_first().map(|one| one.version));
            let versions: Vec<u64> = versions.into_iter().flatten().collect();
            let (name, version) = (&alloc.name, alloc.job_version);
            format!("{name} v{version} is forgotten, {newer} newer ones are kept of {versions:?}")
        })
    }

    /// A record says what became of the allocation, and how its tasks ended.
    fn collected_record_is_true(
        &mut self,
        world: &World,
        after: &BTreeMap<AllocId, &CollectedAlloc>,
        alloc: &AllocRecord,
    ) -> Verdict {
        let Some(record) = after.get(&alloc.id) else {
            return Ok(());
        };
        // What else it says may have changed since that was saved.
        let same = |one: &AllocRecord| {
            let made = (one.name.clone(), one.job_version, one.eval, one.create_time);
            (made, one.previous, one.status)
        };
        let of_disk = world.disk.saved();
        let tasks = of_disk.tasks.iter().filter(|(key, _)| key.0 == alloc.id);
        let differs = |name, task: &TaskRecord| {
            record.tasks.get(name).is_none_or(|kept| {
                let whole = are_the_last(&kept.events, &task.state.events);
                !whole || end_of(kept) != end_of(&task.state)
            })
        };
        let wrong = tasks.filter(|(key, task)| differs(&key.1, task));
        let wrong: Vec<_> = wrong.map(|(key, _)| key.1.clone()).collect();
        let holds = same(&record.alloc) == same(alloc) && wrong.is_empty();
        self.holds(Property::CollectedRecordIsTrue, holds, || {
            format!("{}, tasks {wrong:?}: {record:?} of {alloc:?}", alloc.name)
        })
    }
}

/// Whether these are the last of all events, with the last end before them if it is not among them.
fn are_the_last(kept: &[Arc<TaskEvent>], all: &[Arc<TaskEvent>]) -> bool {
    let is_end = |event: &&Arc<TaskEvent>| event.kind == EventType::Terminated;
    let last_end = all.iter().rev().find(is_end);
    match kept.split_first() {
        None => all.is_empty(),
        Some((first, others)) => {
            all.ends_with(kept) || Some(first) == last_end && all.ends_with(others)
        }
    }
}

/// What people ask of a task that is over.
fn end_of(state: &TaskState) -> impl PartialEq + use<> {
    let mut ends = state.events.iter().rev();
    let end = ends.find(|event| event.kind == EventType::Terminated);
    let code = end.and_then(|event| event.details.get("exit_code").cloned());
    (
        state.state,
        state.failed,
        state.restarts,
        state.finished_at,
        code,
    )
}
