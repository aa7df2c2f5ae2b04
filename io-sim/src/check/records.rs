//! Commits as they leave, and what they take away.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, JobKey};
use drover_core::input::{NodeInput, StoreInput};
use drover_core::store::{Batch, CommitId, Key};
use drover_core::time::{Instant, Span};

use super::history::{alive_in, saved_alloc};
use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of commits.
#[derive(Clone, Debug, Default)]
pub(super) struct Commits {
    in_flight: Option<(CommitId, Batch)>,
    /// Whether the store said that it could not write it.
    failed: bool,
    /// Whether that is what it said last.
    last_failed: bool,
    last: CommitId,
}

impl Commits {
    pub(super) fn agent_died(&mut self) {
        *self = Commits::default();
    }

    pub(super) fn in_flight(&self) -> Option<&Batch> {
        self.in_flight.as_ref().map(|(_, batch)| batch)
    }
}

impl Checker {
    pub(super) fn store_reported(&mut self, now: Span, reported: &StoreInput) {
        if matches!(reported, StoreInput::Saved(_)) {
            self.lives.saved_at = now;
        }
        let commits = &mut self.commits;
        let current = commits.in_flight.as_ref().map(|(id, _)| *id);
        match reported {
            StoreInput::Saved(id) if current == Some(*id) => {
                commits.in_flight = None;
                commits.last_failed = false;
            }
            StoreInput::Failed(id, _) if current == Some(*id) => {
                commits.failed = true;
                commits.last_failed = true;
                self.sometimes(Property::SometimesCommitFails, true);
            }
            StoreInput::Saved(_) | StoreInput::Failed(..) => {}
        }
    }

    /// Operators are told of a store that cannot write until it wrote again, and no longer.
    pub(super) fn store_error_is_current(&mut self, agent: &Agent) -> Verdict {
        let told = agent.view().store_error();
        // Who is done hears nothing any more.
        let holds = agent.view().stopped() || told.is_some() == self.commits.last_failed;
        self.holds(Property::StoreErrorIsCurrent, holds, || {
            format!("{told:?} is told")
        })
    }

    pub(super) fn commit_effect(
        &mut self,
        world: &World,
        agent: &Agent,
        id: CommitId,
        batch: &Batch,
    ) -> Verdict {
        self.one_commit_in_flight(id, batch)?;
        self.collected_records(world, agent, batch)?;
        self.only_garbage_is_collected(world, batch)?;
        self.notices_of_commit(agent, batch)?;
        self.collected_alloc_is_known_to_servers(world, batch)?;
        for (key, record) in batch {
            if let (Key::Alloc(alloc), None) = (key, record) {
                self.records_are_removed_after_directory(world, *alloc)?;
                self.sometimes(Property::SometimesAllocIsCollected, true);
            }
        }
        Ok(())
    }

    /// One commit is in flight at a time, numbered in order; a failed one is retried unchanged.
    fn one_commit_in_flight(&mut self, id: CommitId, batch: &Batch) -> Verdict {
        let failed = core::mem::take(&mut self.commits.failed);
        let before = self.commits.in_flight.replace((id, batch.clone()));
        let last = core::mem::replace(&mut self.commits.last, id);
        let holds = match &before {
            Some((other, same)) => failed && *other == id && same == batch,
            None => id.0 == last.0 + 1 && !batch.is_empty(),
        };
        self.holds(Property::OneCommitInFlight, holds, || {
            format!("{id:?} after {before:?}")
        })
    }

    /// The records of an allocation are removed last: it is terminal, cleaned up, and its directory is removed.
    fn records_are_removed_after_directory(&mut self, world: &World, alloc: AllocId) -> Verdict {
        let saved = saved_alloc(world, alloc);
        let over = saved.is_some_and(|alloc| alloc.finished && alloc.destroying);
        let clean = !world.dirs.allocs.contains(&alloc) && alive_in(world, alloc).is_none();
        self.holds(
            Property::RecordsAreRemovedAfterDirectory,
            over && clean,
            || format!("{alloc}: terminal {over}, cleaned up {clean}"),
        )
    }

    /// What the agent hears of its disk. One allocation may go for it.
    pub(super) fn disk_usage_reported(&mut self, now: Instant, reported: &NodeInput) {
        if let NodeInput::DiskUsage { result, .. } = reported {
            let limits = self.disk_limits.zip(result.as_ref().ok());
            self.disk_under_pressure =
                limits.is_some_and(|(limits, disk_limits)| limits.is_exceeded(*disk_limits));
            let fine = result.is_ok() && !self.disk_under_pressure;
            self.disk_was_fine_at = fine.then_some(now);
        }
    }

    /// Ended allocations are garbage-collected because somebody asked, their job goes, there are too many,
    /// or the disk is too full.
    pub(super) fn gc_collects_no_more_than_needed(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let record = alloc.record();
        let memory = self.lives.allocs.get(&record.id);
        let before = memory
            .into_iter()
            .flat_map(|m| m.shown.iter().chain(&m.saved));
        if !record.destroying || before.into_iter().any(|before| before.destroying) {
            return Ok(());
        }
        let ended = agent.view().allocs().map(AllocRunner::record);
        let kept = ended.filter(|one| one.finished && !one.destroying).count();
        // What else goes in the same step may have counted before.
        let others_go = agent.view().jobs().any(|job| job.purge);
        let asked = self.replies.collects()
            || self.replies.collects_one(record.id)
            || self.job_goes(agent, &record.job)
            || others_go
            || kept >= self.keep_terminal;
        let disk_under_pressure = !asked && core::mem::take(&mut self.disk_under_pressure);
        self.sometimes(Property::SometimesDiskIsUnderPressure, disk_under_pressure);
        let holds = asked || disk_under_pressure;
        self.holds(Property::GcCollectsNoMoreThanNeeded, holds, || {
            format!("{} goes, {kept} stay", record.name)
        })
    }

    /// Whether somebody wants the job to be forgotten. It may be wanted again by the time that its
    /// allocations are looked at.
    pub(super) fn job_goes(&self, agent: &Agent, job: &JobKey) -> bool {
        let known = agent.view().job(job);
        self.replies.purges(job) || known.is_none_or(|known| known.purge)
    }
}
