//! Tasks of a group begin as soon as those have come as far that come before them.

use drover_core::agent::Agent;
use drover_core::alloc::runner::{AllocRunner, Phase as AllocPhase};
use drover_core::ids::TaskKey;
use drover_core::model::alloc::TaskLife;
use drover_core::model::task::Stage;
use drover_core::task::runner::{Phase, TaskRunner};

use super::{Checker, Property, Verdict};
use crate::world::World;

impl Checker {
    /// No task waits for its turn when nothing has to come before it any more.
    pub(super) fn task_starts_when_it_is_its_turn(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let view = agent.view();
        let rests = self.leaving || view.shutdown().is_some() || !view.is_fingerprinted();
        // When all of it is to run again, what runs ends first.
        let again = self.lives.rerun.contains(&alloc.record().id);
        if rests || again || !matches!(alloc.phase(), AllocPhase::Tasks(_)) {
            return Ok(());
        }
        let waits = |task: &&TaskRunner| {
            let is_last = task.spec().stage() == Stage::Poststop;
            matches!(task.phase(), Phase::Waiting) && (is_last || !alloc.is_ending())
        };
        let tasks = alloc.tasks();
        let late = tasks.iter().filter(waits);
        let late = late.filter(|task| is_its_turn(task.spec().stage(), tasks));
        let late = late.map(|task| &task.spec().key.task).next();
        self.holds(Property::TaskStartsWhenItIsItsTurn, late.is_none(), || {
            let seen = tasks.iter();
            let seen = seen.map(|task| (&task.spec().key.task, task.phase()));
            format!(
                "{}: {late:?} waits beside {:?}",
                alloc.record().name,
                seen.collect::<Vec<_>>()
            )
        })
    }
}

impl Checker {
    /// What has to be done before the main tasks is done while none of them runs, also when all of it runs once more.
    pub(super) fn prestart_task_runs_before_main_tasks(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let stage = |name| alloc.task(name).map(|task| task.spec().stage());
        if stage(&key.task) != Some(Stage::Prestart) {
            return Ok(());
        }
        let mut alive = world.alive().map(|(_, process)| process);
        let beside = alive.find(|process| {
            let own = process.key.alloc == key.alloc;
            own && stage(&process.key.task) == Some(Stage::Main)
        });
        let beside = beside.map(|process| process.name.clone());
        self.holds(
            Property::PrestartTaskRunsBeforeMainTasks,
            beside.is_none(),
            || format!("{key:?} starts beside {beside:?}"),
        )
    }
}

/// Whether all others let tasks of this stage begin.
fn is_its_turn(stage: Stage, tasks: &[TaskRunner]) -> bool {
    let all = |holds: &dyn Fn(Stage, &TaskRunner) -> bool| {
        tasks.iter().all(|task| holds(task.spec().stage(), task))
    };
    match stage {
        Stage::Prestart | Stage::PrestartSidecar => true,
        Stage::Main => all(&|other, task| match other {
            Stage::Prestart => task.state().is_successful(),
            Stage::PrestartSidecar => task.state().state == TaskLife::Running,
            _ => true,
        }),
        // An agent that begins anew looks from the beginning how far the group is.
        Stage::Poststart | Stage::PoststartSidecar => {
            is_its_turn(Stage::Main, tasks)
                && all(&|other, task| {
                    other != Stage::Main || task.state().state != TaskLife::Pending
                })
        }
        Stage::Poststop => all(&|other, task| other == Stage::Poststop || task.is_dead()),
    }
}
