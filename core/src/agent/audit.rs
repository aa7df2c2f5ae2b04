//! What must hold of an agent at any moment, as far as it can tell by itself. The simulator asks
//! after every step; a real agent asks itself when somebody wants its metrics.
//!
//! The metric of broken invariants (`agent/src/http/metrics/`) comes from here.

use core::fmt;
use std::collections::BTreeMap;

use super::View;
use crate::alloc::runner::{AllocRunner, Phase as AllocPhase};
use crate::ids::AllocId;
use crate::input::TaskKey;
use crate::model::device::GroupId;
use crate::task::runner::{Phase, TaskRunner};

/// Something that does not hold: this program is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An allocation is neither over nor waits for anything.
    StuckAlloc(AllocId),
    /// A task is neither over nor waits for anything.
    StuckTask(TaskKey),
    /// A device is promised to two allocations, of which neither waits for the other to end.
    SharedDevice(GroupId, String),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::StuckAlloc(id) => write!(f, "allocation {id} waits for nothing"),
            Violation::StuckTask(key) => {
                write!(
                    f,
                    "task {} of allocation {} waits for nothing",
                    key.task, key.alloc
                )
            }
            Violation::SharedDevice(group, id) => {
                write!(f, "device {id} of {group} is promised to two allocations")
            }
        }
    }
}

impl View<'_> {
    /// All that does not hold now.
    pub fn violations(self) -> Vec<Violation> {
        let stuck = self.allocs().flat_map(|alloc| {
            let all = (!self.waits(alloc)).then(|| Violation::StuckAlloc(alloc.record().id));
            let tasks = alloc.tasks().iter().filter(|task| !has_deadline(task));
            all.into_iter()
                .chain(tasks.map(|task| Violation::StuckTask(task.spec().key.clone())))
        });
        stuck.chain(self.shared_device()).collect()
    }

    /// Whether an allocation is over, or waits for a deadline, a predecessor here or elsewhere, a task
    /// or the machine.
    pub fn waits(self, alloc: &AllocRunner) -> bool {
        let record = alloc.record();
        match alloc.phase() {
            AllocPhase::Prerun(pipeline) if pipeline.awaited().is_some() => true,
            AllocPhase::Prerun(_) => {
                let mut awaited = record.awaited().filter_map(|id| self.alloc(id));
                alloc.asks_again_at().is_some()
                    || awaited.any(|one| !one.record().finished || one.has_remains())
            }
            AllocPhase::Tasks => {
                alloc
                    .tasks()
                    .iter()
                    .any(|task| !matches!(task.phase(), Phase::Waiting | Phase::Dead(_)))
                    || alloc.deadline().is_some()
                    || !self.is_settled()
            }
            AllocPhase::Destroying(_) | AllocPhase::DestroyPause(_) => alloc.deadline().is_some(),
            AllocPhase::Finished => {
                !record.destroying
                    || alloc.tasks().iter().any(TaskRunner::has_remains)
                    || self.awaits_cleaning(record.id)
            }
            AllocPhase::Destroyed => true,
        }
    }

    /// A device that two allocations hold of which neither waits for the other to end.
    pub fn shared_device(self) -> Option<Violation> {
        let mut holders: BTreeMap<(&GroupId, &str), AllocId> = BTreeMap::new();
        let waits = |id: AllocId, of: AllocId| {
            self.alloc(id)
                .is_some_and(|alloc| alloc.record().awaited().any(|id| id == of))
        };
        for alloc in self.allocs().filter(|alloc| !alloc.record().finished) {
            let own = alloc.record().id;
            for held in &alloc.record().devices {
                for id in &held.ids {
                    let other = holders.insert((&held.group, id), own);
                    if other.is_some_and(|other| !waits(other, own) && !waits(own, other)) {
                        return Some(Violation::SharedDevice(held.group.clone(), id.clone()));
                    }
                }
            }
        }
        None
    }
}

/// Whether a task that neither runs nor waits for its turn, or is over and not gone, has a deadline.
pub fn has_deadline(task: &TaskRunner) -> bool {
    match task.phase() {
        Phase::Waiting | Phase::Running => true,
        Phase::Dead(_) => !task.has_remains() || task.deadline().is_some(),
        Phase::Preparing(_)
        | Phase::Starting(_)
        | Phase::Recovering(_)
        | Phase::Delaying(_)
        | Phase::Stopping { .. }
        | Phase::Cleaning(_)
        | Phase::Pausing(_) => task.deadline().is_some(),
    }
}
