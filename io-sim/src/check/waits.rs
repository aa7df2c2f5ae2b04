//! What waits for what, and that nothing waits for nothing.

use std::collections::BTreeSet;

use drover_core::agent::{Agent, Input, Wait};
use drover_core::alloc::runner::{AllocRunner, Phase as AllocPhase};
use drover_core::ids::LaunchId;
use drover_core::input::DriverInput;
use drover_core::model::alloc::ExitResult;
use drover_core::model::task::Stage;
use drover_core::task::runner::{Phase, TaskRunner};

use super::{Checker, Property, Verdict};
use crate::world::World;

/// Whether nothing of a finished allocation is left but its network.
fn has_only_network(alloc: &AllocRunner) -> bool {
    let network = alloc.record().network.as_ref();
    let there = network.is_some_and(|network| !network.removed);
    there && !alloc.tasks().iter().any(TaskRunner::has_remains)
}

/// Whether nothing of a finished allocation is left but its directory, which is to go.
fn has_only_directory(alloc: &AllocRunner) -> bool {
    alloc.record().destroying && !alloc.has_remains()
}

impl Checker {
    /// `poll_timeout` is the earliest deadline of all components.
    pub(super) fn poll_timeout_matches_earliest_deadline(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let Some(first) = agent.view().next_timer(alloc) else {
            return Ok(());
        };
        let called = agent.poll_timeout().map(|(at, _)| at);
        self.holds(
            Property::PollTimeoutMatchesEarliestDeadline,
            called.is_some_and(|at| at <= first),
            || format!("first {first:?}, called {called:?}"),
        )
    }

    /// No allocation is stuck: a deadline, claims that others hold, or a task that is not over.
    pub(super) fn nonterminal_alloc_has_deadline_or_awaited_event(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let record = alloc.record();
        let holds = agent.view().waits(alloc);
        self.holds(
            Property::NonterminalAllocHasDeadlineOrAwaitedEvent,
            holds,
            || {
                let phases: Vec<_> = alloc.tasks().iter().map(|task| task.phase()).collect();
                format!("{} {:?} {phases:?}", record.name, alloc.phase())
            },
        )
    }

    /// Every phase of a task that neither runs nor waits for its turn has a timer or awaits an answer.
    pub(super) fn nonterminal_task_has_deadline_or_awaited_event(
        &mut self,
        agent: &Agent,
        task: &TaskRunner,
    ) -> Verdict {
        let holds = agent.view().task_waits(task);
        self.holds(
            Property::NonterminalTaskHasDeadlineOrAwaitedEvent,
            holds,
            || format!("{:?} {:?}", task.spec().key, task.phase()),
        )
    }

    /// `pending()` names exactly the allocations and tasks that wait, and what for.
    pub(super) fn waiting_alloc_is_in_pending(&mut self, agent: &Agent) -> Verdict {
        let pending = agent.pending();
        let (mut node, mut allocs, mut tasks) = (false, BTreeSet::new(), BTreeSet::new());
        for one in &pending.awaiting {
            match &one.wait {
                Wait::Store | Wait::Drain | Wait::Servers(_) | Wait::Job(..) => {}
                Wait::Node => node = true,
                Wait::Alloc(id, _) => drop(allocs.insert(*id)),
                Wait::Task(key, _) => drop(tasks.insert(key)),
            }
        }
        let settled = agent.view().is_fingerprinted();
        self.holds(Property::WaitingAllocIsInPending, settled || node, || {
            format!("{pending:?}")
        })?;
        for alloc in agent.view().allocs() {
            for task in alloc.tasks() {
                let key = &task.spec().key;
                let holds = tasks.contains(key) == waits(task);
                self.holds(Property::WaitingAllocIsInPending, holds, || {
                    format!("{key:?} {:?}: {pending:?}", task.phase())
                })?;
            }
            let busy = match alloc.phase() {
                AllocPhase::Prerun(_) | AllocPhase::Destroying(_) | AllocPhase::DestroyPause(_) => {
                    true
                }
                // Nothing of it is left but its network; or but its directory: others go first.
                AllocPhase::Finished => has_only_network(alloc) || has_only_directory(alloc),
                AllocPhase::Tasks(_) | AllocPhase::Destroyed => false,
            };
            let finished = matches!(alloc.phase(), AllocPhase::Finished);
            let awaits_place = finished && has_only_directory(alloc);
            self.sometimes(Property::SometimesGcWaitsForPermit, awaits_place);
            let id = alloc.record().id;
            let holds = allocs.contains(&id) == busy;
            self.holds(Property::WaitingAllocIsInPending, holds, || {
                format!("{id} {:?}: {pending:?}", alloc.phase())
            })?;
        }
        Ok(())
    }

    /// A task that can go on without the outside has gone on. An answer that nobody awaits makes
    /// the agent look at the allocation again: nothing may come of it. So what hangs elsewhere
    /// cannot be what an allocation waits for.
    pub(super) fn no_progress_needs_another_input(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        let now = world.now();
        let due = agent.poll_timeout().is_some_and(|(at, _)| at <= now.at);
        if due || self.leaving || agent.view().stopped() {
            return Ok(());
        }
        let mut nudged = agent.clone();
        for alloc in agent.view().allocs() {
            let Some(task) = alloc.tasks().first() else {
                continue;
            };
            let stale = DriverInput::Exited {
                launch: LaunchId::default(),
                result: ExitResult::default(),
            };
            nudged.handle(now, Input::Driver(task.spec().key.clone(), stale));
        }
        let effect = nudged.poll_effect();
        let same = nudged.view().allocs().eq(agent.view().allocs());
        self.holds(
            Property::NoProgressNeedsAnotherInput,
            effect.is_none() && same,
            || format!("{effect:?}, same state {same}"),
        )
    }
}

/// Whether a task waits for anything: not what runs, what is over, and what comes after the end.
fn waits(task: &TaskRunner) -> bool {
    match task.phase() {
        Phase::Waiting => task.spec().stage() != Stage::Poststop,
        Phase::Running => false,
        Phase::Dead(_) => task.has_remains(),
        Phase::Preparing(_)
        | Phase::Starting(_)
        | Phase::Recovering(_)
        | Phase::Delaying(_)
        | Phase::Deregistering(_)
        | Phase::Stopping(_)
        | Phase::Cleaning(_)
        | Phase::Pausing(_) => true,
    }
}
