//! What may leave the agent, and when.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::DriverEffect;
use drover_core::ids::{AllocId, LaunchId};
use drover_core::input::TaskKey;
use drover_core::model::alloc::TaskLife;
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::model::task::Stage;
use drover_core::store::record::{AllocRecord, TaskRecord};
use drover_core::store::{Key, Record};
use drover_core::task::runner::{Phase, TaskRunner};

use super::{Checker, Place, Verdict, ensure};
use crate::process::Process;
use crate::world::World;

fn saved_task<'a>(world: &'a World, key: &TaskKey) -> Option<&'a TaskRecord> {
    match world
        .disk
        .records()
        .get(&Key::Task(key.alloc, key.task.clone()))
    {
        Some(Record::Task(task)) => Some(task),
        _ => None,
    }
}

fn saved_alloc(world: &World, id: AllocId) -> Option<&AllocRecord> {
    match world.disk.records().get(&Key::Alloc(id)) {
        Some(Record::Alloc(alloc)) => Some(alloc),
        _ => None,
    }
}

/// The processes of the task's siblings and of the task itself.
fn of_task<'a>(world: &'a World, task: &TaskRunner) -> impl Iterator<Item = &'a Process> {
    let key = task.spec().key.clone();
    world
        .processes()
        .map(|(_, process)| process)
        .filter(move |process| process.key == key)
}

fn lives(world: &World, task: &TaskRunner) -> bool {
    of_task(world, task).any(|process| process.alive)
}

impl Checker {
    pub(super) fn driver_effect(
        &mut self,
        world: &World,
        agent: &Agent,
        key: &TaskKey,
        effect: &DriverEffect,
    ) -> Verdict {
        let Some(alloc) = agent.view().alloc(key.alloc) else {
            return ensure(false, "effects_have_an_owner", || {
                format!("{key:?} {effect:?}")
            });
        };
        match effect {
            DriverEffect::Start { launch, .. } => {
                self.a_start_is_remembered_first(world, key, *launch)?;
                self.no_start_after_the_end(world, alloc, key)?;
                self.a_start_finds_its_directories(world, key)?;
                self.stages_begin_in_their_order(world, alloc, key)?;
                self.what_succeeded_is_not_run_again(world, alloc, key)?;
                self.what_is_done_is_not_done_again(alloc)?;
                self.a_port_has_one_holder(world, agent, alloc)?;
                self.no_start_beside_the_predecessor(world, agent, alloc)
            }
            DriverEffect::Stop { .. } => self.kills_follow_their_order(world, alloc, key),
            DriverEffect::Recover { .. }
            | DriverEffect::Signal { .. }
            | DriverEffect::Destroy { .. } => Ok(()),
        }
    }

    /// When a start leaves, the disk holds its launch id: a crash can never forget it.
    fn a_start_is_remembered_first(
        &mut self,
        world: &World,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        self.reach("a_start_is_remembered_first");
        let saved = saved_task(world, key).and_then(|task| task.launch.as_ref());
        ensure(
            saved.is_some_and(|saved| saved.id == launch),
            "a_start_is_remembered_first",
            || format!("{key:?} {launch}, saved {saved:?}"),
        )
    }

    /// What was saved or reported as over does not start.
    fn no_start_after_the_end(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        self.reach("no_start_after_the_end");
        let task_over = saved_task(world, key).is_none_or(|t| t.state.state == TaskLife::Dead);
        let alloc_over =
            saved_alloc(world, key.alloc).is_none_or(|alloc| alloc.finished || alloc.destroying);
        let reported = alloc.task(&key.task).is_none_or(TaskRunner::is_dead);
        ensure(
            !task_over && !alloc_over && !reported,
            "no_start_after_the_end",
            || format!("{key:?}: task {task_over}, alloc {alloc_over}, reported {reported}"),
        )
    }

    /// A task starts in directories that are there.
    fn a_start_finds_its_directories(&mut self, world: &World, key: &TaskKey) -> Verdict {
        self.reach("a_start_finds_its_directories");
        let there = world.dirs.allocs.contains(&key.alloc)
            && world.dirs.tasks.contains(&(key.alloc, key.task.clone()));
        ensure(there, "a_start_finds_its_directories", || {
            format!("{key:?}")
        })
    }

    /// Prestart before main, main before poststart, everything before poststop.
    fn stages_begin_in_their_order(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let Some(own) = alloc.task(&key.task).map(|task| task.spec().stage()) else {
            return Ok(());
        };
        self.reach("stages_begin_in_their_order");
        for other in alloc
            .tasks()
            .iter()
            .filter(|other| other.spec().key != *key)
        {
            let started = of_task(world, other).any(|process| process.starts > 0);
            let succeeded = of_task(world, other)
                .any(|process| process.exit.as_ref().is_some_and(|exit| exit.is_success()));
            let fits = match (own, other.spec().stage()) {
                (Stage::Main, Stage::Prestart) => succeeded,
                (Stage::Main, Stage::PrestartSidecar) => started,
                (Stage::Poststart | Stage::PoststartSidecar, Stage::Main) => started,
                (Stage::Poststop, Stage::Poststop) => true,
                (Stage::Poststop, _) => !lives(world, other) || other.is_dead(),
                _ => true,
            };
            ensure(fits, "stages_begin_in_their_order", || {
                format!(
                    "{key:?} starts while {} is not there yet",
                    other.spec().key.task
                )
            })?;
        }
        Ok(())
    }

    /// A task that is done when it succeeds runs no second time, unless an operator says so.
    fn what_succeeded_is_not_run_again(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let Some(task) = alloc.task(&key.task) else {
            return Ok(());
        };
        if task.spec().restarts_on_success() || self.asked_again.contains(&key.alloc) {
            return Ok(());
        }
        self.reach("what_succeeded_is_not_run_again");
        let done = world.processes().find(|(launch, process)| {
            let succeeded = process.exit.as_ref().is_some_and(|exit| exit.is_success());
            let known = !process.unknowable && !self.start_failed.contains(launch);
            process.key == *key && succeeded && known
        });
        ensure(done.is_none(), "what_succeeded_is_not_run_again", || {
            format!("{key:?}")
        })
    }

    /// A copy of a batch job that completed gets no other allocation for the same version.
    fn what_is_done_is_not_done_again(&mut self, alloc: &AllocRunner) -> Verdict {
        let place = Place::of(alloc);
        self.reach("what_is_done_is_not_done_again");
        let by = self.completed.get(&place).copied();
        let own = alloc.record();
        // An earlier one may still be on its way to its end.
        let again = by.is_some_and(|(by, made)| by != own.id && made < own.create_index);
        ensure(!again, "what_is_done_is_not_done_again", || {
            format!("{} was done by {by:?}, and {} starts", own.name, own.id)
        })
    }

    /// A host port belongs to one allocation as long as anything of it lives.
    fn a_port_has_one_holder(
        &mut self,
        world: &World,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let own = alloc.record();
        for (_, process) in world
            .alive()
            .filter(|(_, process)| process.key.alloc != own.id)
        {
            self.reach("a_port_has_one_holder");
            let Some(other) = agent.view().alloc(process.key.alloc) else {
                continue;
            };
            let other = other.record();
            let shared = own
                .ports
                .iter()
                .find(|port| other.ports.iter().any(|theirs| theirs.value == port.value));
            ensure(shared.is_none(), "a_port_has_one_holder", || {
                format!(
                    "{} starts on {shared:?} that {} holds",
                    own.name, process.name
                )
            })?;
        }
        Ok(())
    }

    /// A replacement starts when nothing of what it replaces lives, unless all patience is over.
    fn no_start_beside_the_predecessor(
        &mut self,
        world: &World,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let own = alloc.record();
        for (_, process) in world
            .alive()
            .filter(|(_, process)| process.key.alloc != own.id)
        {
            let Some(other) = agent.view().alloc(process.key.alloc) else {
                continue;
            };
            let theirs = other.record();
            let same =
                (&own.job, &own.group, own.index) == (&theirs.job, &theirs.group, theirs.index);
            let given_up = other
                .task(&process.key.task)
                .is_some_and(TaskRunner::is_dead);
            self.reach("no_start_beside_the_predecessor");
            ensure(!same || given_up, "no_start_beside_the_predecessor", || {
                format!(
                    "{} {} starts while {} lives",
                    own.name,
                    own.id.short(),
                    process.name
                )
            })?;
        }
        Ok(())
    }

    /// The leader ends first, sidecars last, and what comes after the end is left alone.
    fn kills_follow_their_order(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let Some(task) = alloc.task(&key.task) else {
            return Ok(());
        };
        let stopping = matches!(task.phase(), Phase::Stopping { .. });
        if !stopping || task.record().restarting {
            return Ok(());
        }
        self.reach("kills_follow_their_order");
        let (leader, stage) = (task.spec().task().leader, task.spec().stage());
        if stage == Stage::Poststop {
            let setup_failed = |task: &TaskRunner| {
                task.state()
                    .events
                    .iter()
                    .any(|event| event.kind == EventType::SetupFailure)
            };
            let limit = alloc
                .job()
                .group(alloc.record().group.as_str())
                .and_then(|g| g.max_run_duration);
            let allowed = limit.is_some()
                || alloc.record().destroying
                || alloc.tasks().iter().any(setup_failed);
            return ensure(allowed, "kills_follow_their_order", || {
                format!("{key:?} comes after the end and is killed")
            });
        }
        for other in alloc
            .tasks()
            .iter()
            .filter(|other| other.spec().key != *key)
        {
            let theirs = other.spec().stage();
            let goes_first = theirs != Stage::Poststop
                && ((other.spec().task().leader && !leader)
                    || (stage.is_sidecar() && !theirs.is_sidecar() && !leader));
            let fits = !goes_first || !lives(world, other) || other.is_dead();
            ensure(fits, "kills_follow_their_order", || {
                format!(
                    "{key:?} is asked to end while {} lives",
                    other.spec().key.task
                )
            })?;
        }
        Ok(())
    }

    pub(super) fn told_event(
        &mut self,
        world: &World,
        agent: &Agent,
        key: &TaskKey,
        event: &TaskEvent,
    ) -> Verdict {
        if event.kind != EventType::Terminated {
            return Ok(());
        }
        let Some(launch) = world.latest.get(key) else {
            return Ok(());
        };
        let Some(process) = world.processes.get(launch) else {
            return Ok(());
        };
        let task = agent
            .view()
            .alloc(key.alloc)
            .and_then(|alloc| alloc.task(&key.task));
        let current = task.and_then(|task| task.record().launch.as_ref());
        if current.is_some_and(|current| current.id != *launch) {
            return Ok(());
        }
        self.exits_are_told_as_they_were(*launch, process, event)
    }

    /// What is told of an end is true, is "unknown" only where nobody can know, and is told once.
    fn exits_are_told_as_they_were(
        &mut self,
        launch: LaunchId,
        process: &Process,
        event: &TaskEvent,
    ) -> Verdict {
        self.reach("exits_are_told_as_they_were");
        let told = event.details.get("exit_code").map(String::as_str);
        let truth = process
            .exit
            .as_ref()
            .and_then(|exit| exit.code)
            .map(|code| code.to_string());
        let holds = match told {
            Some("unknown") => process.unknowable || process.starts == 0,
            told => told.is_some() && told == truth.as_deref(),
        };
        ensure(holds, "exits_are_told_as_they_were", || {
            format!("{}: told {told:?}, true {truth:?}", process.name)
        })?;
        let times = self.terminated.entry(launch).or_default();
        *times += 1;
        let times = *times;
        ensure(times == 1, "an_end_is_told_once", || {
            process.name.to_string()
        })
    }
}
