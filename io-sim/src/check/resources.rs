//! CPU, memory, disk space and cores, counted once more: what groups ask for, and what their node has.

use std::collections::BTreeSet;

use drover_core::agent::View;
use drover_core::alloc::runner::AllocRunner;
use drover_core::claims::resources::{Overcommit, Reserved};
use drover_core::config::Config;
use drover_core::model::group::TaskGroup;
use drover_core::model::processors::Processors;
use drover_core::model::task::{Stage, Task};

/// CPU, memory and disk space.
pub(super) type Three = [u64; 3];

pub(super) fn processors(view: View<'_>) -> Option<Processors> {
    view.machine().fingerprints().resources().processors
}

pub(super) fn cores_of(found: &Processors) -> BTreeSet<u32> {
    let usable = found.cores.iter().filter(|core| !core.disabled);
    usable.map(|core| core.id).collect()
}

/// What the node keeps for itself, and how much more than there is may be promised.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shares {
    reserved: Reserved,
    overcommit: Overcommit,
}

impl Shares {
    pub(super) fn of(config: &Config) -> Shares {
        Shares {
            reserved: config.reserved,
            overcommit: config.overcommit,
        }
    }
}

/// What jobs may have of what the agent knows that its node has.
pub(super) fn capacity(view: View<'_>, shares: Shares) -> [Option<u64>; 3] {
    let found = view.machine().fingerprints().resources();
    let cpu = found.processors.map(|it| it.usable_compute);
    let Shares {
        reserved,
        overcommit,
    } = shares;
    let share = |has: Option<u64>, kept: u64, percent: u64| {
        has.map(|has| has.saturating_sub(kept) * percent / 100)
    };
    [
        share(cpu, 0, overcommit.cpu),
        share(found.memory_mb, reserved.memory, overcommit.memory),
        share(found.disk_mb, reserved.disk, overcommit.disk),
    ]
}

pub(super) fn plus(one: Three, other: Three) -> Three {
    [0, 1, 2].map(|at| one[at].saturating_add(other[at]))
}

/// Of which resources there is not so much.
pub(super) fn short(has: [Option<u64>; 3], sum: Three) -> impl Iterator<Item = usize> {
    (0..3).filter(move |at| has[*at].is_some_and(|has| sum[*at] > has))
}

/// What a group asks for: of its tasks those count that may run at one time.
pub(super) fn asks(view: View<'_>, group: &TaskGroup) -> Three {
    let number = |value: i64| u64::try_from(value).unwrap_or(0);
    let found = processors(view);
    let count = found.as_ref().map_or(0, |it| cores_of(it).len());
    let per_core = found.map_or(0, |it| it.usable_compute) / number(count as i64).max(1);
    let own = |task: &Task| {
        let wants = &task.resources;
        let cpu = match number(wants.cores) {
            0 => number(wants.cpu),
            cores => cores * per_core,
        };
        [cpu, number(wants.memory_mb), 0]
    };
    let of = |stages: &[Stage]| {
        let tasks = group.tasks.iter();
        let tasks = tasks.filter(|task| stages.contains(&task.stage()));
        tasks.map(own).fold([0; 3], plus)
    };
    let in_turn = [
        of(&[Stage::Prestart]),
        of(&[Stage::Main, Stage::Poststart]),
        of(&[Stage::Poststop]),
    ];
    let most = [0, 1, 2].map(|at| in_turn.map(|one| one[at]).into_iter().max().unwrap_or(0));
    let mut all = plus(of(&[Stage::PrestartSidecar, Stage::PoststartSidecar]), most);
    all[2] = number(group.ephemeral_disk.unwrap_or_default().size_mb);
    all
}

pub(super) fn asks_of(view: View<'_>, alloc: &AllocRunner) -> Three {
    let group = alloc.job().group(alloc.record().group.as_str());
    group.map_or([0; 3], |group| asks(view, group))
}
