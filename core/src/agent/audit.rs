//! What must hold of an agent at any moment, as far as it can tell by itself. The simulator asks
//! after every step; a real agent asks itself when somebody wants its metrics.
//!
//! The metric of broken invariants (`agent/src/http/metrics/`) comes from here.

use core::fmt;

use super::View;
use crate::alloc::runner::{AllocRunner, Phase as AllocPhase};
use crate::claims::{self, Claim};
use crate::ids::{AllocId, TaskKey};
use crate::op::Op;
use crate::operations::{Operation, Wait};
use crate::task::hooks::wait_for::WaitFor;
use crate::task::runner::{Phase, TaskRunner};

/// Something that does not hold: this program is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An allocation is neither over nor waits for anything.
    StuckAlloc(AllocId),
    /// A task is neither over nor waits for anything.
    StuckTask(TaskKey),
    /// A task waits for a signal that nobody answers any more.
    StuckSignal(TaskKey),
    /// An allocation that is not being removed has one of the few places for removals.
    IdleRemoval(AllocId),
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
            Violation::StuckSignal(key) => {
                write!(
                    f,
                    "task {} of allocation {} waits for a signal that was answered",
                    key.task, key.alloc
                )
            }
            Violation::IdleRemoval(id) => {
                write!(
                    f,
                    "allocation {id} is not removed, and keeps others from it"
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
            let tasks = alloc.tasks().iter().filter(|task| !self.task_waits(task));
            all.into_iter()
                .chain(tasks.map(|task| Violation::StuckTask(task.spec().key.clone())))
        });
        let doubly = self.doubly_held().into_iter();
        let doubly = doubly.map(|(claim, holders)| Violation::DoublyHeld(claim, holders));
        let tasks = self.allocs().flat_map(|alloc| alloc.tasks().iter());
        let signals = tasks.filter(|task| self.waits_for_stale_signal(task));
        let signals = signals.map(|task| Violation::StuckSignal(task.spec().key.clone()));
        stuck
            .chain(signals)
            .chain(self.idle_removals())
            .chain(doubly)
            .collect()
    }

    fn waits_for_stale_signal(self, task: &TaskRunner) -> bool {
        task.awaited_signals()
            .any(|op| !self.is_in_flight(Some(op)))
    }

    /// Those that have a place for removals and do not use it.
    fn idle_removals(self) -> impl Iterator<Item = Violation> {
        let removed = self.agent.shared.destroys.under_way();
        let is_idle = move |id: &AllocId| match self.alloc(*id).map(|alloc| alloc.phase()) {
            Some(AllocPhase::Finished | AllocPhase::Destroying(_)) => false,
            Some(
                AllocPhase::Prerun(_)
                | AllocPhase::Tasks(_)
                | AllocPhase::DestroyPause(_)
                | AllocPhase::Destroyed,
            )
            | None => true,
        };
        removed.filter(is_idle).map(Violation::IdleRemoval)
    }

    /// Whether an allocation is over, or waits for a deadline, claims that others hold, a task
    /// or the machine.
    pub fn waits(self, alloc: &AllocRunner) -> bool {
        let record = alloc.record();
        match alloc.phase() {
            AllocPhase::Prerun(setup) if setup.awaited().is_some() => {
                self.is_in_flight(setup.awaited())
            }
            AllocPhase::Prerun(setup) => {
                setup.asks_again_at().is_some()
                    || !self.is_fingerprinted()
                    || alloc.awaits_claims() && !self.ungranted(alloc).is_empty()
            }
            AllocPhase::Tasks(_) => {
                alloc
                    .tasks()
                    .iter()
                    .any(|task| !matches!(task.phase(), Phase::Waiting | Phase::Dead(_)))
                    || alloc.deadline().is_some()
                    || self.in_flight(alloc)
                    || !self.is_fingerprinted()
            }
            AllocPhase::Destroying(pipeline) => {
                self.is_in_flight(pipeline.awaited()) || self.is_in_flight(alloc.network_awaited())
            }
            AllocPhase::DestroyPause(_) => alloc.deadline().is_some(),
            AllocPhase::Finished => {
                !record.destroying
                    || alloc.tasks().iter().any(TaskRunner::has_remains)
                    || alloc.deadline().is_some()
                    || self.is_in_flight(alloc.network_awaited())
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

    /// Whether a task runs, waits for its turn, is over and gone, or waits for an answer or a timer.
    pub fn task_waits(self, task: &TaskRunner) -> bool {
        let waits = || task.deadline().is_some() || self.is_in_flight(task.awaited());
        match task.phase() {
            Phase::Waiting | Phase::Running => true,
            Phase::Dead(_) => !task.has_remains() || waits(),
            // For others, for as long as that takes.
            Phase::Preparing(_) if task.prestart_hook() == Some(WaitFor::NAME) => true,
            Phase::Preparing(_)
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_) => waits(),
        }
    }

    fn in_flight(self, alloc: &AllocRunner) -> bool {
        let operations = self.operations().iter();
        let of_it = |one: &Operation| one.owner.alloc() == Some(alloc.record().id);
        let mut of_it = operations.filter(|(_, one)| of_it(one));
        of_it.any(|(op, _)| self.is_in_flight(Some(op)))
    }

    fn is_in_flight(self, op: Option<Op>) -> bool {
        let wait = op.and_then(|op| Some((op, self.operations().get(op)?.wait)));
        wait.is_some_and(|(op, wait)| match wait {
            Wait::Held(_) => self.holds_back(op),
            Wait::Until(_) | Wait::Open => true,
            Wait::Reports | Wait::Over => false,
        })
    }
}
