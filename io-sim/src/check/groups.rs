//! What the tasks of a group are to each other at its end.

use drover_core::alloc::runner::AllocRunner;
use drover_core::model::task::Stage;
use drover_core::task::runner::TaskRunner;

use super::lives::saved_alloc;
use super::{Checker, Property, Verdict};
use crate::world::World;
use drover_core::ids::TaskKey;

impl Checker {
    /// Of an allocation whose time is over nothing starts, also not what comes after the end.
    pub(super) fn what_ran_out_of_time_starts_nothing(
        &mut self,
        world: &World,
        key: &TaskKey,
    ) -> Verdict {
        let over = saved_alloc(world, key.alloc).is_some_and(|alloc| alloc.forced);
        self.holds(Property::WhatRanOutOfTimeStartsNothing, !over, || {
            format!("{key:?}")
        })
    }

    /// A task goes by the version of the job that its allocation is of.
    pub(super) fn a_task_is_of_its_allocations_version(
        &mut self,
        alloc: &AllocRunner,
        task: &TaskRunner,
    ) -> Verdict {
        let (own, wanted) = (task.spec().job().version, alloc.record().job_version);
        let property = Property::ATaskIsOfItsAllocationsVersion;
        self.holds(property, own == wanted, || {
            format!("{:?}: {own}, not {wanted}", task.spec().key)
        })
    }

    /// Where the leader is over, its group is.
    pub(super) fn a_group_ends_with_its_leader(&mut self, alloc: &AllocRunner) -> Verdict {
        let mut tasks = alloc.tasks().iter();
        if !tasks.any(|task| task.spec().task().leader && task.is_dead()) {
            return Ok(());
        }
        self.all_dead(Property::AGroupEndsWithItsLeader, alloc)
    }

    /// Where the main tasks are over, sidecars are.
    pub(super) fn sidecars_end_with_the_mains(&mut self, alloc: &AllocRunner) -> Verdict {
        let mains = || {
            let tasks = alloc.tasks().iter();
            tasks.filter(|task| task.spec().stage() == Stage::Main)
        };
        if mains().next().is_none() || !mains().all(TaskRunner::is_dead) {
            return Ok(());
        }
        self.all_dead(Property::SidecarsEndWithTheMains, alloc)
    }

    fn all_dead(&mut self, property: Property, alloc: &AllocRunner) -> Verdict {
        let live = alloc.tasks().iter().find(|task| !task.is_dead());
        self.holds(property, live.is_none(), || {
            format!("{:?}", live.map(|task| &task.spec().key))
        })
    }
}
