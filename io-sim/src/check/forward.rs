//! What is reported only goes forward: within a life measured by what was shown, over lives by
//! what the disk held.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::TaskKey;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::TaskEvent;
use drover_core::store::record::JobRecord;
use drover_core::task::runner::TaskRunner;

use super::history::{Reported, TaskReported};
use super::limits::EVENTS_OF_TASK;
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
    pub(super) fn alloc_status_goes_forward(&mut self, alloc: &AllocRunner) -> Verdict {
        let record = alloc.record();
        let next = Reported::from(&**record);
        let Some(memory) = self.lives.allocs.get(&record.id) else {
            return Ok(());
        };
        // Servers that are restored from a snapshot go back.
        let by_servers = self.cluster.went_back_to(record);
        let before = memory.shown.iter().chain(&memory.saved);
        let (mut status, mut over, mut version) = (true, true, true);
        for before in before {
            status &= may_follow(before.status, next.status);
            over &= next.stops >= before.stops
                && next.finished >= before.finished
                && next.destroying >= before.destroying;
            version &= next.version >= before.version || by_servers;
        }
        let detail = || format!("{} {next:?} after {memory:?}", record.name);
        let detail = if status && over && version {
            String::new()
        } else {
            detail()
        };
        self.holds(Property::ClientStatusNeverGoesBack, status, || {
            detail.clone()
        })?;
        self.holds(Property::TerminalAllocStaysTerminal, over, || {
            detail.clone()
        })?;
        self.holds(Property::NoOlderJobVersionIsApplied, version, || {
            detail.clone()
        })
    }

    /// A dead task stays dead, and a failed one failed, unless all were asked to run again.
    pub(super) fn dead_task_stays_dead(&mut self, world: &World, task: &TaskRunner) -> Verdict {
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
        let failed = failed && !world.disk.unread.contains(key);
        let holds = asked || (next.dead >= dead && next.failed >= failed);
        self.holds(Property::DeadTaskStaysDead, holds, || format!("{key:?}"))
    }

    /// No job goes back to an older version.
    pub(super) fn job_version_never_goes_back(&mut self, job: &JobRecord) -> Verdict {
        let key = (job.job.key(), job.job.create_index);
        let version = job.job.version;
        let before = self.lives.versions.insert(key, version).unwrap_or(0);
        self.holds(
            Property::NoOlderJobVersionIsApplied,
            before <= version,
            || format!("{} {version} after {before}", job.job.id),
        )
    }

    /// An event bears the time at which it is told.
    pub(super) fn event_has_current_time(
        &mut self,
        world: &World,
        key: &TaskKey,
        event: &TaskEvent,
    ) -> Verdict {
        let now = world.now().wall;
        self.holds(
            Property::TaskEventsAreBoundedAndInOrder,
            event.time == now,
            || format!("{key:?} {event:?} at {now:?}"),
        )
    }

    /// Events are kept in order, and not too many.
    pub(super) fn task_events_are_bounded_and_in_order(&mut self, task: &TaskRunner) -> Verdict {
        let events = &task.state().events;
        let in_order = self.lives.clock_went_back || events.is_sorted_by_key(|event| event.time);
        let holds = in_order && events.len() <= EVENTS_OF_TASK;
        self.holds(Property::TaskEventsAreBoundedAndInOrder, holds, || {
            format!("{:?} {events:?}", task.spec().key)
        })
    }

    /// A notified index never goes back.
    pub(super) fn broadcast_never_goes_back(&mut self, index: u64) -> Verdict {
        let before = self.replies.reported(index);
        self.holds(Property::BroadcastNeverGoesBack, before < index, || {
            format!("index {index} after {before}")
        })
    }

    /// The index is never below one that was acknowledged, also after a restart of the agent.
    pub(super) fn index_never_goes_back(&mut self, agent: &Agent) -> Verdict {
        let (index, acknowledged) = (agent.view().index(), self.replies.acknowledged());
        self.holds(Property::IndexNeverGoesBack, index >= acknowledged, || {
            format!("index {index}, acknowledged {acknowledged}")
        })
    }

    /// Whether the wall clock went back, after which times say nothing of order.
    pub(super) fn check_clock(&mut self, world: &World) {
        let now = world.now().wall;
        let before = core::mem::replace(&mut self.lives.wall, now);
        self.lives.clock_went_back |= now < before;
        self.lives.latest_wall = self.lives.latest_wall.max(now);
        self.sometimes(Property::SometimesClockIsSetBack, now < before);
    }
}
