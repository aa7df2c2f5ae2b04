//! What must hold of an agent at any moment, as far as it can tell by itself. The simulator asks
//! after every step; a real agent asks itself when somebody wants its metrics.
//!
//! The metric of broken invariants (`agent/src/http/metrics/`) comes from here.

use core::fmt;

use super::View;
use crate::alloc::runner::{AllocRunner, Phase as AllocPhase};
use crate::claims::{self, Claim};
use crate::ids::{AllocId, TaskKey};
use crate::task::runner::{Phase, TaskRunner};

/// Something that does not hold: this program is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An allocation is neither over nor waits for anything.
    StuckAlloc(AllocId),
    /// A task is neither over nor waits for anything.
    StuckTask(TaskKey),
    /// Two allocations were granted the same.
    DoublyHeld(Claim, [AllocId; 2]),
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
            Violation::DoublyHeld(claim, [one, other]) => {
                write!(f, "allocations {one} and {other} both hold {claim}")
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
        let doubly = self.doubly_held().into_iter();
        let doubly = doubly.map(|(claim, holders)| Violation::DoublyHeld(claim, holders));
        stuck.chain(doubly).collect()
    }

    /// Whether an allocation is over, or waits for a deadline, claims that others hold, a task
    /// or the machine.
    pub fn waits(self, alloc: &AllocRunner) -> bool {
        let record = alloc.record();
        match alloc.phase() {
            AllocPhase::Prerun(pipeline) if pipeline.awaited().is_some() => true,
            AllocPhase::Prerun(_) => {
                alloc.asks_again_at().is_some()
                    || !self.is_settled()
                    || alloc.awaits_claims() && !self.ungranted(alloc).is_empty()
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

    /// Something of which there is one that was granted to two allocations of which neither is gone.
    pub fn doubly_held(self) -> Option<(Claim, [AllocId; 2])> {
        let holders = self
            .allocs()
            .filter(|alloc| alloc.has_claims() && !alloc.is_gone());
        claims::doubly_held(holders.map(|alloc| &**alloc.record()))
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
