//! Counted resources: what is placed fits, and nobody waits for what is free.
//!
//! What a group asks for is added up here from its job file, once more and in the simplest way.

use std::collections::BTreeSet;

use drover_core::agent::{Agent, PREEMPTION_MARGIN};
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::AllocId;
use drover_core::model::group::TaskGroup;
use drover_core::model::placement::PlacementFailure;
use drover_core::model::task::{Stage, Task};
use drover_core::store::record::JobRecord;

use super::preempted::goes_anyway;
use super::{Checker, Property, Verdict};
use crate::world::World;

/// CPU, memory and disk space.
type Three = [u64; 3];

/// What the checks remember.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// Allocations that were looked at when they were placed.
    seen: BTreeSet<AllocId>,
    /// Whether all that a life of the agent began with was seen.
    awake: bool,
}

impl Counted {
    pub(super) fn agent_died(&mut self) {
        self.awake = false;
    }
}

/// What the agent knows that its node has, and the MHz of a core; none if nothing is bounded.
pub(super) fn capacity(agent: &Agent) -> Option<(Three, u64, BTreeSet<u32>)> {
    let found = agent.view().machine().fingerprints().resources();
    let processors = found.processors?;
    let cores = processors.cores.iter().filter(|core| !core.disabled);
    let cores: BTreeSet<u32> = cores.map(|core| core.id).collect();
    let cpu = processors.usable_compute;
    let per_core = cpu / u64::try_from(cores.len()).unwrap_or(1).max(1);
    Some(([cpu, found.memory_mb?, found.disk_mb?], per_core, cores))
}

fn plus(one: Three, other: Three) -> Three {
    [0, 1, 2].map(|at| one[at].saturating_add(other[at]))
}

fn fits(sum: Three, has: Three) -> bool {
    sum.iter().zip(has).all(|(sum, has)| *sum <= has)
}

/// What a group asks for.
fn asks(group: &TaskGroup, per_core: u64) -> Three {
    let number = |value: i64| u64::try_from(value).unwrap_or(0);
    let own = |task: &Task| {
        let wants = &task.resources;
        let cpu = match wants.cores {
            0 => number(wants.cpu),
            cores => number(cores) * per_core,
        };
        [cpu, number(wants.memory_mb), 0]
    };
    let of = |stages: &[Stage]| {
        let tasks = group.tasks.iter();
        let tasks = tasks.filter(|task| stages.contains(&task.stage()));
        tasks.map(own).fold([0; 3], plus)
    };
    let beside = of(&[Stage::PrestartSidecar, Stage::PoststartSidecar]);
    let in_turn = [
        of(&[Stage::Prestart]),
        of(&[Stage::Main, Stage::Poststart]),
        of(&[Stage::Poststop]),
    ];
    let most = [0, 1, 2].map(|at| in_turn.map(|one| one[at]).into_iter().max().unwrap_or(0));
    let mut all = plus(beside, most);
    all[2] = number(group.ephemeral_disk.unwrap_or_default().size_mb);
    all
}

fn of_alloc(alloc: &AllocRunner, per_core: u64) -> Three {
    let group = alloc.job().group(alloc.record().group.as_str());
    group.map_or([0; 3], |group| asks(group, per_core))
}

/// Whether something of it may be alive.
fn holds_on(alloc: &AllocRunner) -> bool {
    !alloc.record().finished || alloc.has_remains()
}

fn cores(alloc: &AllocRunner) -> Vec<u32> {
    let assigned = alloc.record().cores.iter();
    assigned.flat_map(|one| one.ids.clone()).collect()
}

fn wanted_cores(group: &TaskGroup) -> usize {
    let cores = group.tasks.iter().map(|task| task.resources.cores);
    usize::try_from(cores.sum::<i64>()).unwrap_or(0)
}

impl Checker {
    /// What is new fits, beside all that is older and that it does not wait for.
    pub(super) fn counted_resources(&mut self, world: &World, agent: &Agent) -> Verdict {
        if world.machine.has.is_none() {
            return Ok(());
        }
        let bounded = capacity(agent);
        let view = agent.view();
        for alloc in view.allocs() {
            let record = alloc.record();
            let new = self.counted.seen.insert(record.id) && self.counted.awake;
            let Some((has, per_core, all_cores)) = bounded.as_ref().filter(|_| new) else {
                continue;
            };
            let others: Vec<_> = view
                .allocs()
                .filter(|other| other.record().create_index < record.create_index)
                .filter(|other| {
                    let awaited = record.awaited().any(|id| id == other.record().id);
                    holds_on(other) && (!awaited || other.has_remains())
                })
                .collect();
            let held = (others.iter()).map(|other| of_alloc(other, *per_core));
            let sum = held.fold(of_alloc(alloc, *per_core), plus);
            self.holds(
                Property::NothingIsPlacedBeyondCapacity,
                fits(sum, *has),
                || format!("{} makes it {sum:?} of {has:?}", record.name),
            )?;
            let own = cores(alloc);
            let group = alloc.job().group(record.group.as_str());
            let distinct: BTreeSet<u32> = own.iter().copied().collect();
            let taken = others.iter().flat_map(|other| cores(other));
            let one_owner = distinct.len() == group.map_or(0, wanted_cores)
                && distinct.is_subset(all_cores)
                && !taken.into_iter().any(|core| distinct.contains(&core));
            self.holds(Property::CoresHaveOneOwner, one_owner, || {
                format!("{} has {own:?} of {all_cores:?}", record.name)
            })?;
        }
        // What comes from now on is new.
        self.counted.awake = true;
        Ok(())
    }

    /// Who waits for a counted resource waits because too little is free, and too little is held by
    /// jobs of lower priority.
    pub(super) fn nobody_waits_for_counted_resources_in_vain(
        &mut self,
        agent: &Agent,
        job: &JobRecord,
    ) -> Verdict {
        let view = agent.view();
        let Some((has, per_core, all_cores)) = capacity(agent) else {
            return Ok(());
        };
        for (name, why) in view.blocked(&job.job.key()) {
            let group = job
                .job
                .group(name)
                .filter(|_| matches!(why, PlacementFailure::Shortage(_)));
            let Some(group) = group else { continue };
            self.sometimes(Property::SometimesAResourceIsShort, true);
            let holders: Vec<_> = view.allocs().filter(|alloc| holds_on(alloc)).collect();
            let sum = |some: &mut dyn Iterator<Item = &&AllocRunner>| {
                let held = some.map(|alloc| of_alloc(alloc, per_core));
                held.fold(asks(group, per_core), plus)
            };
            let taken = holders.iter().flat_map(|alloc| cores(alloc));
            let taken: BTreeSet<u32> = taken.filter(|core| all_cores.contains(core)).collect();
            let cores_fit = wanted_cores(group) <= all_cores.len() - taken.len();
            let all = sum(&mut holders.iter());
            self.holds(
                Property::NobodyWaitsForWhatIsFree,
                !(fits(all, has) && cores_fit),
                || format!("{} {why}: {all:?} of {has:?}", job.job.id),
            )?;
            let plain = wanted_cores(group) == 0
                && group.networks.iter().all(|it| it.reserved_ports.is_empty())
                && group.tasks.iter().all(|it| it.resources.devices.is_empty());
            if !plain || !view.preemption().is_allowed(job.job.job_type) {
                continue;
            }
            let stays = |alloc: &&&AllocRunner| {
                let theirs = view.job(alloc.job_key()).map(|theirs| theirs.job.priority);
                let lower = theirs.is_some_and(|it| it <= job.job.priority - PREEMPTION_MARGIN);
                !lower || goes_anyway(alloc)
            };
            let rest = sum(&mut holders.iter().filter(stays));
            self.holds(
                Property::NobodyWaitsForWhatLowerPriorityHolds,
                !fits(rest, has),
                || format!("{} {why}: {rest:?} of {has:?}", job.job.id),
            )?;
        }
        Ok(())
    }
}
