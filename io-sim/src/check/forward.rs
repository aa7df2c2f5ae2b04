//! What is reported only goes forward: within a life measured by what was shown, over lives by
//! what the disk held.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::TaskKey;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::{MAX_EVENTS, TaskEvent};
use drover_core::store::record::JobRecord;
use drover_core::task::runner::TaskRunner;

use super::lives::{Reported, TaskReported};
use super::{Checker, Property, Verdict};
use crate::world::World;

/// Whether `next` may follow `before`.
fn may_follow(before: ClientStatus, next: ClientStatus) -> bool {
    match before {
        // A task between two runs makes its allocation pending again.
        ClientStatus::Pending | ClientStatus::Running | ClientStatus::Unknown => true,
        ClientStatus::Complete | ClientStatus::Failed | ClientStatus::Lost => next == before,
    }
}

impl Checker {
    /// An allocation against what was shown and saved of it before.
    pub(super) fn an_allocation_goes_forward(&mut self, alloc: &AllocRunner) -> Verdict {
        let record = alloc.record();
        let next = Reported::from(&**record);
        let Some(memory) = self.lives.allocs.get(&record.id) else {
            return Ok(());
        };
        let before = memory.shown.iter().chain(&memory.saved);
        let (mut status, mut over, mut version) = (true, true, true);
        for before in before {
            status &= may_follow(before.status, next.status);
            over &= next.stops >= before.stops
                && next.finished >= before.finished
                && next.destroying >= before.destroying;
            version &= next.version >= before.version;
        }
        let detail = || format!("{} {next:?} after {memory:?}", record.name);
        let detail = if status && over && version {
            String::new()
        } else {
            detail()
        };
        self.holds(Property::AStatusIsNeverTakenBack, status, || detail.clone())?;
        self.holds(Property::WhatIsOverStaysOver, over, || detail.clone())?;
        self.holds(Property::NoOlderVersionIsApplied, version, || {
            detail.clone()
        })
    }

    /// A dead task stays dead, and a failed one failed, unless all were asked to run again.
    pub(super) fn a_dead_task_stays_dead(&mut self, world: &World, task: &TaskRunner) -> Verdict {
        let key = &task.spec().key;
        let next = TaskReported::from(task.state());
        let asked = self.lives.rerun.contains(&key.alloc);
        let memory = self.lives.task(key);
        let (dead, failed) = (
            memory.shown.dead || memory.saved.dead,
            memory.shown.failed || memory.saved.failed,
        );
        memory.shown = next;
        // Whether it failed stood in the record, too.
        let failed = failed && !world.unread.contains(key);
        let holds = asked || (next.dead >= dead && next.failed >= failed);
        self.holds(Property::ADeadTaskStaysDead, holds, || format!("{key:?}"))
    }

    /// No job goes back to an older version.
    pub(super) fn no_job_goes_back(&mut self, job: &JobRecord) -> Verdict {
        let key = (job.job.key(), job.job.create_index);
        let version = job.job.version;
        let before = self.lives.versions.insert(key, version).unwrap_or(0);
        self.holds(Property::NoOlderVersionIsApplied, before <= version, || {
            format!("{} {version} after {before}", job.job.id)
        })
    }

    /// An event bears the time at which it is told.
    pub(super) fn an_event_bears_its_time(
        &mut self,
        world: &World,
        key: &TaskKey,
        event: &TaskEvent,
    ) -> Verdict {
        let now = world.now().wall;
        self.holds(
            Property::EventsAreBoundedAndInOrder,
            event.time == now,
            || format!("{key:?} {event:?} at {now:?}"),
        )
    }

    /// Events are kept in order, and not too many.
    pub(super) fn events_are_bounded_and_in_order(&mut self, task: &TaskRunner) -> Verdict {
        let events = &task.state().events;
        let in_order = self.lives.clock_went_back || events.is_sorted_by_key(|event| event.time);
        let holds = in_order && events.len() <= MAX_EVENTS;
        self.holds(Property::EventsAreBoundedAndInOrder, holds, || {
            format!("{:?} {events:?}", task.spec().key)
        })
    }

    /// The index that is told only rises.
    pub(super) fn what_is_told_is_never_older(&mut self, index: u64) -> Verdict {
        let before = self.replies.told(index);
        self.holds(Property::WhatIsToldIsNeverOlder, before < index, || {
            format!("index {index} after {before}")
        })
    }

    /// No life of the agent has an index below one that was acknowledged.
    pub(super) fn the_index_never_falls_back(&mut self, agent: &Agent) -> Verdict {
        let (index, acknowledged) = (agent.view().index(), self.replies.acknowledged());
        self.holds(
            Property::TheIndexNeverFallsBack,
            index >= acknowledged,
            || format!("index {index}, acknowledged {acknowledged}"),
        )
    }

    /// Whether the wall clock went back, after which times say nothing of order.
    pub(super) fn look_at_the_clock(&mut self, world: &World) {
        let now = world.now().wall;
        let before = core::mem::replace(&mut self.lives.wall, now);
        self.lives.clock_went_back |= now < before;
        self.sometimes(Property::SometimesTheClockIsSetBack, now < before);
    }
}
