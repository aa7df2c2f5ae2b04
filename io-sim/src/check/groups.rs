//! What the tasks of a group are to each other at its end.

use drover_core::alloc::runner::AllocRunner;
use drover_core::model::task::Stage;
use drover_core::task::runner::TaskRunner;

use super::history::saved_alloc;
use super::{Checker, Property, Verdict};
use crate::world::World;
use drover_core::ids::TaskKey;

impl Checker {
    /// An allocation past its max_run_duration starts nothing, not even poststop tasks.
    pub(super) fn timed_out_alloc_starts_nothing(
        &mut self,
        world: &World,
        key: &TaskKey,
    ) -> Verdict {
        let over = saved_alloc(world, key.alloc).is_some_and(|alloc| alloc.forced);
        self.holds(Property::TimedOutAllocStartsNothing, !over, || {
            format!("{key:?}")
        })
    }

    /// A task has the job version of its allocation.
    pub(super) fn task_has_job_version_of_alloc(
        &mut self,
        alloc: &AllocRunner,
        task: &TaskRunner,
    ) -> Verdict {
        let (own, wanted) = (task.spec().job().version, alloc.record().job_version);
        let property = Property::TaskHasJobVersionOfAlloc;
        self.holds(property, own == wanted, || {
            format!("{:?}: {own}, not {wanted}", task.spec().key)
        })
    }

    /// A group whose leader is dead is stopped.
    pub(super) fn group_stops_with_its_leader(&mut self, alloc: &AllocRunner) -> Verdict {
        let mut tasks = alloc.tasks().iter();
        if !tasks.any(|task| task.spec().task().leader && task.is_dead()) {
            return Ok(());
        }
        self.all_dead(Property::GroupStopsWithItsLeader, alloc)
    }

    /// Sidecars are dead when all main tasks are.
    pub(super) fn sidecars_stop_after_main_tasks(&mut self, alloc: &AllocRunner) -> Verdict {
        let mains = || {
            let tasks = alloc.tasks().iter();
            tasks.filter(|task| task.spec().stage() == Stage::Main)
        };
        if mains().next().is_none() || !mains().all(TaskRunner::is_dead) {
            return Ok(());
        }
        self.all_dead(Property::SidecarsStopAfterMainTasks, alloc)
    }

    fn all_dead(&mut self, property: Property, alloc: &AllocRunner) -> Verdict {
        let live = alloc.tasks().iter().find(|task| !task.is_dead());
        self.holds(property, live.is_none(), || {
            format!("{:?}", live.map(|task| &task.spec().key))
        })
    }
}
