//! What waits for what, and that nothing waits for nothing.

use std::collections::BTreeSet;

use drover_core::agent::Agent;
use drover_core::agent::audit::has_deadline;
use drover_core::alloc::runner::{AllocRunner, Phase as AllocPhase};
use drover_core::claims::{Claim, Ungranted};
use drover_core::ids::LaunchId;
use drover_core::input::{DriverInput, Input};
use drover_core::model::alloc::ExitResult;
use drover_core::model::task::Stage;
use drover_core::store::record::AllocRecord;
use drover_core::task::runner::{Phase, TaskRunner};

use super::{Checker, Property, Verdict};
use crate::world::World;

impl Checker {
    /// The agent wants to be called when the first of its machines does.
    pub(super) fn deadlines_are_kept(&mut self, agent: &Agent, alloc: &AllocRunner) -> Verdict {
        let Some((first, _)) = alloc.deadline() else {
            return Ok(());
        };
        let called = agent.poll_timeout().map(|(at, _)| at);
        self.holds(
            Property::DeadlinesAreKept,
            called.is_some_and(|at| at <= first),
            || format!("first {first:?}, called {called:?}"),
        )
    }

    /// No allocation is stuck: a deadline, a predecessor, or a task that is not over.
    pub(super) fn an_allocation_waits_for_something(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let record = alloc.record();
        let holds = agent.view().waits(alloc);
        self.holds(Property::AnAllocationWaitsForSomething, holds, || {
            let phases: Vec<_> = alloc.tasks().iter().map(|task| task.phase()).collect();
            format!("{} {:?} {phases:?}", record.name, alloc.phase())
        })
    }

    /// An allocation that waits for others names what it claims and they hold: they were there before it, and
    /// something of them may be alive.
    pub(super) fn who_waits_names_its_claims(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let view = agent.view();
        let AllocPhase::Prerun(pipeline) = alloc.phase() else {
            return Ok(());
        };
        let is_busy = pipeline.awaited().is_some() || alloc.asks_again_at().is_some();
        if is_busy || alloc.is_ending() || view.shutdown().is_some() {
            return Ok(());
        }
        let own = alloc.record();
        let claims = view.ungranted(alloc);
        let holds = |claim: &Claim, holder: &AllocRecord| match claim {
            Claim::Slot(job, group, index) => {
                (&holder.job, &holder.group, holder.index) == (job, group, *index)
            }
            Claim::Port(port) => holder.ports.iter().any(|held| held.value == *port),
            Claim::Device(group, id) => {
                let mut devices = holder.devices.iter();
                devices.any(|held| held.group == *group && held.ids.contains(id))
            }
            Claim::Core(id) => {
                let mut cores = holder.cores.iter();
                cores.any(|held| held.ids.contains(id))
            }
            // What is counted is awaited of those alone that end for this one.
            Claim::Cpu | Claim::Memory | Claim::Disk => {
                holder.id == own.id || own.preempts.contains(&holder.id)
            }
        };
        let is_held = |one: &Ungranted| {
            view.alloc(one.holder).is_some_and(|holder| {
                let theirs = holder.record();
                let earlier = theirs.create_index < own.create_index;
                let may_live = !theirs.finished || holder.has_remains();
                earlier && may_live && holds(&one.claim, theirs) && holds(&one.claim, own)
            })
        };
        let named = !claims.is_empty() && claims.iter().all(is_held);
        self.holds(Property::WhoWaitsNamesItsClaims, named, || {
            format!("{} {claims:?}", own.name)
        })
    }

    /// Every phase of a task that neither runs nor waits for its turn has a deadline.
    pub(super) fn a_task_waits_for_something(&mut self, task: &TaskRunner) -> Verdict {
        let holds = has_deadline(task);
        self.holds(Property::ATaskWaitsForSomething, holds, || {
            format!("{:?} {:?}", task.spec().key, task.phase())
        })
    }

    /// Whoever is neither over nor running is named with what it waits for, and nobody else is.
    pub(super) fn who_waits_is_named(&mut self, agent: &Agent) -> Verdict {
        let pending = agent.pending();
        let unknown = !agent.view().is_settled();
        let named_so = pending.awaiting.iter().any(|one| one.who == "machine");
        self.holds(Property::WhoWaitsIsNamed, !unknown || named_so, || {
            format!("{pending:?}")
        })?;
        let named: BTreeSet<&str> = pending
            .awaiting
            .iter()
            .map(|one| one.who.as_str())
            .collect();
        for alloc in agent.view().allocs() {
            let who = format!("alloc {}", alloc.record().id.short());
            for task in alloc.tasks() {
                let who = format!("{who} task {}", task.spec().key.task);
                let holds = named.contains(who.as_str()) == waits(task);
                self.holds(Property::WhoWaitsIsNamed, holds, || {
                    format!("{who} {:?}: {pending:?}", task.phase())
                })?;
            }
            let busy = match alloc.phase() {
                AllocPhase::Prerun(_) | AllocPhase::Destroying(_) | AllocPhase::DestroyPause(_) => {
                    true
                }
                // Nothing of it is left but its directory: others go first.
                AllocPhase::Finished => alloc.record().destroying && !alloc.has_remains(),
                AllocPhase::Tasks | AllocPhase::Destroyed => false,
            };
            let awaits_place = matches!(alloc.phase(), AllocPhase::Finished) && busy;
            self.sometimes(Property::SometimesCleaningAwayWaits, awaits_place);
            let holds = named.contains(who.as_str()) == busy;
            self.holds(Property::WhoWaitsIsNamed, holds, || {
                format!("{who} {:?}: {pending:?}", alloc.phase())
            })?;
        }
        Ok(())
    }

    /// A task that can go on without the outside has gone on. An answer that nobody awaits makes
    /// the agent look at the allocation again: nothing may come of it. So what hangs elsewhere
    /// cannot be what an allocation waits for.
    pub(super) fn nothing_waits_for_a_nudge(&mut self, world: &World, agent: &Agent) -> Verdict {
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
            Property::NothingWaitsForANudge,
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
        | Phase::Stopping { .. }
        | Phase::Cleaning(_)
        | Phase::Pausing(_) => true,
    }
}
