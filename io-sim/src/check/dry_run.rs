//! Dry runs: what `job plan` says is what registering the job then does.

use drover_core::agent::requests::{Register, Request};
use drover_core::agent::{Agent, View};
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::JobKey;
use drover_core::model::placement::PlacementFailure;
use drover_core::scheduler::{Action, DryRun, NewAlloc};
use drover_core::store::record::AllocRecord;

use super::{Checker, Property, Verdict};
use crate::world::World;

/// What a job was told of what it does that is registered in this step.
#[derive(Clone, Debug)]
pub(super) struct Foretold {
    job: JobKey,
    index: u64,
    /// Those of its allocations that were to run, with the versions that they had.
    before: Vec<AllocRecord>,
    dry_run: DryRun,
}

impl Checker {
    /// Makes a dry run of a job that is about to be registered, if nothing else is planned before it.
    pub(super) fn foretell(&mut self, world: &World, agent: &Agent, asked: &Request) {
        let view = agent.view();
        let Request::Register(Register {
            job,
            expect_index: None,
            ..
        }) = asked
        else {
            return;
        };
        let key = job.key();
        let known = view.is_fingerprinted() && !view.machine().awaits_first_report();
        let others = view.jobs().filter(|other| other.job.key() != key);
        let mut waiting = others.filter(|other| !view.blocked(&other.job.key()).is_empty());
        if !known
            || view.shutdown().is_some()
            || waiting.any(|one| one.job.priority >= job.priority)
        {
            return;
        }
        self.foretold = Some(Foretold {
            index: view.index(),
            before: records(view, &key).cloned().collect(),
            dry_run: view.dry_run(world.now(), job),
            job: key,
        });
    }

    /// Registering a job does at once what a dry run just before it says; where that ends nothing, it does
    /// nothing else.
    pub(super) fn dry_run_foretells_registration(&mut self, agent: &Agent) -> Verdict {
        let property = Property::DryRunForetellsRegistration;
        let Some(foretold) = self.foretold.take() else {
            return Ok(());
        };
        let view = agent.view();
        let new: Vec<&AllocRecord> = records(view, &foretold.job)
            .filter(|alloc| alloc.create_index > foretold.index)
            .collect();
        let failed = &foretold.dry_run.unplaced.failed;
        let blocked = view.blocked(&foretold.job);
        if blocked.iter().chain(failed).any(is_by_chance) {
            return Ok(());
        }
        let actions = &foretold.dry_run.plan.actions;
        for action in actions {
            let (holds, what) = match action {
                Action::Stop(id, _) => {
                    let alloc = view.alloc(*id).map(|alloc| alloc.record());
                    (alloc.is_none_or(|it| it.desired.is_terminal()), "stopped")
                }
                Action::Update(id, job, _) => {
                    let alloc = view.alloc(*id).map(|alloc| alloc.record());
                    let holds = alloc.is_none_or(|it| it.job_version == job.version);
                    (holds, "updated in place")
                }
                Action::Place(placed) => (new.iter().any(|it| is_copy(it, placed)), "placed"),
                Action::EndRollout(..)
                | Action::Promote(..)
                | Action::Revert(..)
                | Action::ProgressBy(..)
                | Action::ReplaceAt(..)
                | Action::Considered(..)
                | Action::Remove(_)
                | Action::Forget(_)
                | Action::Planned(_) => continue,
            };
            self.holds(property, holds, || format!("not {what}: {action:?}"))?;
        }
        let ends = actions.iter().any(|action| match action {
            Action::Stop(..) => true,
            Action::Place(new) => new.outdates || !new.evicts.is_empty(),
            _ => false,
        });
        if ends {
            return Ok(());
        }
        let placed = actions.iter().filter(|one| matches!(one, Action::Place(_)));
        self.holds(property, new.len() == placed.count(), || {
            format!("{new:?} are made, foretold was {foretold:?}")
        })?;
        let stopped = foretold.before.iter().find(|before| {
            let after = view.alloc(before.id).map(|alloc| alloc.record());
            let terminal = after.is_some_and(|after| after.desired.is_terminal());
            terminal && !before.desired.is_terminal()
        });
        self.holds(property, stopped.is_none(), || {
            format!("{stopped:?} is told to end")
        })?;
        self.holds(property, blocked == failed.as_slice(), || {
            format!("{blocked:?}, foretold was {failed:?}")
        })
    }
}

fn records<'a>(view: View<'a>, job: &JobKey) -> impl Iterator<Item = &'a AllocRecord> + use<'a> {
    view.allocs_of(job).map(AllocRunner::record).map(|it| &**it)
}

/// Whether a copy may lack what another try would have given it: ports are picked by chance, also the one that a
/// copy before it in its slot leaves free.
fn is_by_chance((_, why): &(String, PlacementFailure)) -> bool {
    matches!(why, PlacementFailure::NoPortLeft)
}

fn is_copy(alloc: &AllocRecord, placed: &NewAlloc) -> bool {
    (&alloc.group, alloc.index, alloc.canary)
        == (
            &placed.record.group,
            placed.record.index,
            placed.record.canary,
        )
}
