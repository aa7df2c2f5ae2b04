//! The scheduling side of the agent: jobs, evaluations, and the plans that are made of them
//! ([`crate::scheduler`]) and carried out (`apply.rs`).

mod apply;
mod dispatch;
mod evaluations;
mod follow_ups;
mod jobs;
mod rollout;
mod scaling;
mod versions;

use std::collections::BTreeSet;

pub(in crate::agent) use versions::no_version;

use super::Agent;
use crate::alloc::runner::AllocRunner;
use crate::claims::Held;
use crate::claims::resources::{Amounts, Capacity};
use crate::ids::{AllocId, JobKey};
use crate::model::group::TaskGroup;
use crate::model::job::Job;
use crate::model::placement::PlacementFailure;
use crate::scheduler::{self, AllocState, NotPlaced, Snapshot};
use crate::store::record::AllocRecord;
use crate::time::Now;

fn state_of(alloc: &AllocRunner, core_mhz: u64) -> AllocState<'_> {
    AllocState {
        record: alloc.record(),
        amounts: alloc.amounts(core_mhz),
        has_remains: alloc.has_remains(),
        is_completing: alloc.is_completing(),
    }
}

impl Agent {
    /// What plans depend on, as it is now.
    fn snapshot(&self, now: Now, due: Vec<JobKey>) -> Snapshot<'_> {
        let capacity = self.capacity();
        let allocs = self.allocs.values();
        let allocs = allocs.map(|alloc| state_of(alloc, capacity.core_mhz));
        Snapshot {
            now,
            due,
            jobs: &self.local.jobs,
            deployments: &self.local.deployments,
            allocs: allocs.collect(),
            allocs_of: &self.local.allocs,
            disks: &self.shared.disks,
            replaced_at: &self.local.due,
            progress: &self.local.progress,
            node: &self.config.node,
            node_record: &self.node_life.record,
            capacity,
            offers: self.machine.devices().offers(),
            awaits_first_reports: self.machine.awaits_first_report(),
            preemption: self.config.preemption,
            rng: self.shared.rng.clone(),
        }
    }

    /// What this node has of counted resources for allocations.
    pub(in crate::agent) fn capacity(&self) -> Capacity {
        let found = self.machine.fingerprints().counted();
        Capacity::of(&found, self.config.reserved, self.config.overcommit)
    }

    /// Of what too little is left now for all copies of a group that does not run here yet.
    pub(in crate::agent) fn shortage(
        &self,
        job: &Job,
        group: &TaskGroup,
    ) -> Result<(), PlacementFailure> {
        let capacity = self.capacity();
        let others = self
            .allocs
            .values()
            .filter(|alloc| !alloc.is_gone())
            .filter(|alloc| alloc.record().of_servers || alloc.record().job != job.key());
        let held = others.map(|alloc| (&**alloc.record(), alloc.amounts(capacity.core_mhz)));
        let mut held = Held::by(held);
        let copies = scheduler::reconcile::copies(job, group);
        let wanted = Amounts::of(group, capacity.core_mhz).times(copies);
        let cores = group.tasks.iter().map(|task| task.resources.cores.max(0));
        let cores = cores.fold(0, i64::saturating_add);
        let cores = cores.saturating_mul(i64::from(copies));
        let cores = usize::try_from(cores).unwrap_or(0);
        if cores > 0 && capacity.cpu.is_some() {
            capacity
                .cores(cores, &held.cores)
                .map_err(PlacementFailure::Shortage)?;
        }
        if let Some(short) = capacity.shortage(held.amounts, wanted) {
            return Err(PlacementFailure::Shortage(short));
        }
        let offers = self.machine.devices().offers();
        for _ in 0..copies {
            if scheduler::devices_for(group, &offers, &mut held.devices)?.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Makes a plan for the jobs that are due and carries it out. Returns the allocations that changed.
    pub(super) fn schedule(&mut self, now: Now, due: Vec<JobKey>) -> BTreeSet<AllocId> {
        let plan = scheduler::plan(&self.snapshot(now, due));
        self.apply(now, plan)
    }

    /// Whether this node can run the group, in words for whoever asks before placing anything.
    pub(in crate::agent) fn check_admission(
        &self,
        job: &Job,
        group: &TaskGroup,
    ) -> Result<(), String> {
        if let Some(refusal) = self.node_life.record.refusal() {
            return Err(refusal.to_string());
        }
        let awaits_first_reports = self.machine.awaits_first_report();
        let node = &self.config.node;
        // Copies differ in nothing but their own volumes.
        let differ = group.volumes.values().any(|volume| volume.per_alloc);
        let copies = if differ {
            scheduler::reconcile::copies(job, group)
        } else {
            1
        };
        let mut copies = 0..copies.max(1);
        copies.try_for_each(|index| {
            let admitted = scheduler::admits(node, awaits_first_reports, job, group, index);
            admitted.map_err(|why| match why {
                NotPlaced::Unknown => {
                    "the node does not know yet what it has; try again soon".to_owned()
                }
                NotPlaced::Failed(why) => why.to_string(),
            })
        })
    }

    /// An allocation's status or health changed.
    pub(super) fn alloc_changed(&mut self, now: Now, alloc: &AllocRecord) {
        // A place that was missing may be free now.
        self.local.mark_blocked();
        if !alloc.of_servers {
            self.expect_garbage(now);
            self.node_life.alloc_changed();
            self.local.mark(&alloc.job);
        }
    }

    /// It is there no more.
    pub(super) fn alloc_gone(&mut self, now: Now, alloc: &AllocRecord) {
        self.local.forget_alloc(alloc);
        self.alloc_changed(now, alloc);
    }

    /// The directory is removed of one that held nothing else any more. Of very many copies each is removed in its
    /// turn: the job is only planned again if this one was in the place of its copy.
    pub(super) fn directory_removed(&mut self, now: Now, alloc: &AllocRecord) {
        let is_last = self.local.forget_alloc(alloc);
        let record = self.local.jobs.get(&alloc.job);
        let done = record.is_some_and(|record| record.done.contains(&alloc.group, alloc.index));
        let next = alloc.next.and_then(|next| self.allocs.get(&next));
        let was_replaced = next.is_some_and(|next| next.record().canary == alloc.canary);
        if is_last || !(done || was_replaced) || alloc.of_servers {
            return self.alloc_changed(now, alloc);
        }
        self.expect_garbage(now);
        self.node_life.alloc_changed();
    }
}
