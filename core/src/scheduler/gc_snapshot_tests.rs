//! Collection and garbage of small snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::collection::{Collection, Goal, collect};
use super::garbage::{Garbage, Kept, Limits, garbage};
use super::gc_snapshot::GcSnapshot;
use crate::config::Retention;
use crate::ids::{AllocId, DeploymentId, EvalId, JobKey, Slot};
use crate::model::eval::{Deployment, EvalStatus, Evaluation, Trigger};
use crate::model::job::{Job, JobType};
use crate::store::disk::{Disk, Lease};
use crate::store::record::{AllocRecord, JobRecord};
use crate::time::{Span, Timestamp};

const NOW: Timestamp = Timestamp(1_000_000_000_000);
const COUNTED: Goal = Goal {
    keep: 1,
    under_pressure: false,
    all: false,
};
const ALL: Goal = Goal {
    all: true,
    ..COUNTED
};

/// The one job.
fn key() -> JobKey {
    Job::default().key()
}

#[derive(Default)]
struct World {
    allocs: Vec<AllocRecord>,
    of: BTreeMap<JobKey, BTreeSet<AllocId>>,
    deployments: BTreeMap<DeploymentId, Arc<Deployment>>,
    disks: BTreeMap<Slot, Arc<Disk>>,
    waiting: Vec<JobKey>,
    jobs: BTreeMap<JobKey, Arc<JobRecord>>,
    evals: BTreeMap<EvalId, Arc<Evaluation>>,
    /// What stayed of allocations whose directories are gone.
    records: Vec<AllocRecord>,
}

impl World {
    /// With ended allocations of these ids, the smallest the oldest, each of a slot of its own. Which ended first was
    /// made last.
    fn of_ended(ids: impl IntoIterator<Item = u128>) -> World {
        let ended = ids.into_iter().map(|id| AllocRecord {
            id: AllocId(id),
            job: key(),
            finished: true,
            index: u32::try_from(id).unwrap_or(0),
            create_index: 1000_u64.saturating_sub(u64::try_from(id).unwrap_or(0)),
            modify_index: u64::try_from(id).unwrap_or(0),
            ..AllocRecord::default()
        });
        let allocs: Vec<AllocRecord> = ended.collect();
        let ids = allocs.iter().map(|alloc| alloc.id).collect();
        World {
            of: [(key(), ids)].into(),
            allocs,
            ..World::default()
        }
    }

    fn disk(mut self, of: usize, disk: Disk) -> World {
        self.disks.insert(self.allocs[of].slot(), Arc::new(disk));
        self
    }

    /// A batch job that was registered long ago, with closed evaluations of these ids.
    fn batch_job(mut self, evals: impl IntoIterator<Item = u128>) -> World {
        let job = Job {
            job_type: JobType::Batch,
            ..Job::default()
        };
        let record = JobRecord {
            job: Arc::new(job),
            versions: Vec::new(),
            purge: false,
            deployment: None,
            done: Default::default(),
            ..JobRecord::default()
        };
        self.jobs.insert(key(), Arc::new(record));
        let closed = evals.into_iter().map(|id| Evaluation {
            id: EvalId(id),
            job: key(),
            trigger: Trigger::JobRegister,
            time: Timestamp(0),
            deployment: None,
            status: EvalStatus::Complete,
            failed_groups: Vec::new(),
            changes: Vec::new(),
            blocked_eval: None,
            previous_eval: None,
            follow_up: None,
            create_index: u64::try_from(id).unwrap_or(0),
            modify_index: 0,
        });
        self.evals = closed.map(|eval| (eval.id, Arc::new(eval))).collect();
        self
    }

    fn gc_snapshot(&self) -> GcSnapshot<'_> {
        let mut allocs: Vec<&AllocRecord> = self.allocs.iter().collect();
        allocs.sort_by_key(|alloc| alloc.id);
        GcSnapshot {
            unreported: BTreeSet::new(),
            now: NOW,
            allocs,
            allocs_of: &self.of,
            deployments: &self.deployments,
            disks: &self.disks,
            waiting: self.waiting.iter().collect(),
        }
    }

    fn removed(&self, goal: Goal) -> Vec<u128> {
        let collection = collect(&self.gc_snapshot(), goal);
        collection.remove.into_iter().map(|id| id.0).collect()
    }

    fn garbage(&self, limits: Limits) -> Garbage {
        let kept = Kept {
            gc_snapshot: self.gc_snapshot(),
            jobs: &self.jobs,
            evals: &self.evals,
            records: self.records.iter().collect(),
        };
        garbage(&kept, limits)
    }
}

#[test]
fn too_many_ended_allocs_collects_oldest() {
    assert_eq!(World::of_ended([3, 1, 2]).removed(COUNTED), [1, 2]);
    assert_eq!(World::of_ended([1]).removed(COUNTED), []);
}

#[test]
fn disk_pressure_collects_one_alloc_and_names_it() {
    let under_pressure = Goal {
        keep: 9,
        under_pressure: true,
        all: false,
    };
    let world = World::of_ended([1, 2]);
    let expected = Collection {
        remove: vec![AllocId(1)],
        for_space: Some(AllocId(1)),
        others: true,
    };
    assert_eq!(collect(&world.gc_snapshot(), under_pressure), expected);
}

#[test]
fn alloc_awaiting_replacement_is_kept() {
    let mut world = World::of_ended([1, 2]);
    world.waiting.push(key());
    assert_eq!(world.removed(ALL), []);
}

#[test]
fn leased_alloc_is_kept_until_lease_expires() {
    let leased = |until| {
        let lease = Lease {
            alloc: AllocId(1),
            allocs: vec![AllocId(1)],
            until,
        };
        let disk = Disk {
            lease: Some(lease),
            ..Disk::default()
        };
        World::of_ended([1, 2]).disk(0, disk)
    };
    assert_eq!(leased(NOW + Span::secs(1)).removed(ALL), [2]);
    assert_eq!(leased(NOW).removed(ALL), [1, 2]);
}

#[test]
fn disk_source_is_kept_while_holder_may_take_it() {
    let disk = Disk {
        holder: Some(AllocId(2)),
        sources: vec![AllocId(1)],
        ..Disk::default()
    };
    let mut world = World::of_ended([1, 2]).disk(1, disk);
    let none = Goal { keep: 0, ..COUNTED };
    assert_eq!(world.removed(none), [2], "the holder ended: it goes first");
    assert_eq!(world.removed(ALL), [1, 2]);
    world.allocs[1].finished = false;
    assert_eq!(world.removed(ALL), [], "the holder waits for the disk");
}

#[test]
fn disk_sources_without_holder_go_latest_first() {
    let disk = Disk {
        holder: None,
        sources: vec![AllocId(2), AllocId(1)],
        ..Disk::default()
    };
    let world = World::of_ended([1, 2]).disk(1, disk);
    let none = Goal { keep: 0, ..COUNTED };
    assert_eq!(world.removed(none), [2], "it may never have got the disk");
    assert_eq!(world.removed(ALL), [1, 2]);
}

#[test]
fn expired_complete_batch_job_is_forgotten() {
    let world = World::of_ended([1]).batch_job([]);
    let limits = |jobs| {
        Limits::Age(Retention {
            jobs,
            ..Retention::default()
        })
    };
    let age = NOW - Timestamp(0);
    assert_eq!(world.garbage(limits(age)).jobs, [key()]);
    let younger = world.garbage(limits(Span(age.0 + 1)));
    assert_eq!((younger.jobs, younger.next), (vec![], Some(Span(1))));
}

#[test]
fn batch_job_is_as_young_as_what_was_collected_of_it() {
    let mut world = World::default().batch_job([]);
    let stopped = Job {
        job_type: JobType::Batch,
        stop: true,
        ..Job::default()
    };
    let stopped = JobRecord {
        job: Arc::new(stopped),
        ..JobRecord::default()
    };
    world.jobs.insert(key(), Arc::new(stopped));
    world.records.push(AllocRecord {
        job: key(),
        finished: true,
        modify_time: Timestamp(NOW.0 - 10),
        ..AllocRecord::default()
    });
    let garbage = |jobs| {
        world.garbage(Limits::Age(Retention {
            jobs: Span(jobs),
            ..Retention::default()
        }))
    };
    assert_eq!(garbage(10).jobs, [key()]);
    let younger = garbage(11);
    assert_eq!((younger.jobs, younger.next), (vec![], Some(Span(1))));
}

#[test]
fn running_batch_job_is_never_garbage() {
    let mut world = World::of_ended([1]).batch_job([]);
    world.allocs[0].finished = false;
    assert_eq!(world.garbage(Limits::None), Garbage::default());
}

#[test]
fn old_evaluations_except_latest_are_forgotten() {
    let mut world = World::of_ended([1]).batch_job([1, 2, 3]);
    world.allocs[0].finished = false;
    world.allocs[0].eval = EvalId(2);
    let expected = Garbage {
        evals: vec![EvalId(1)],
        ..Garbage::default()
    };
    assert_eq!(
        world.garbage(Limits::None),
        expected,
        "what runs keeps the second"
    );
}
