//! Starts and stops as they leave: their order, and who must not live beside them.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::TaskConfig;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::alloc::TaskLife;
use drover_core::model::event::EventType;
use drover_core::model::task::Stage;
use drover_core::task::runner::{Phase, TaskRunner};

use super::lives::{Place, lives, saved_alloc, saved_task};
use super::{Checker, Property, Verdict};
use crate::world::World;

impl Checker {
    pub(super) fn start_effect(
        &mut self,
        world: &World,
        agent: &Agent,
        alloc: &AllocRunner,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        self.what_cannot_be_read_is_not_started(world, key)?;
        self.what_ran_out_of_time_starts_nothing(world, key)?;
        self.a_start_is_remembered_first(world, key, launch)?;
        self.no_start_after_the_end(world, alloc, key)?;
        self.no_later_life_starts_what_is_over(key)?;
        self.a_start_finds_its_directories(world, key)?;
        self.a_start_finds_its_artifacts(world, alloc, key)?;
        self.a_start_finds_its_payload(world, alloc, key)?;
        self.no_mould_runs(alloc)?;
        self.a_start_has_its_disk(world, alloc)?;
        self.stages_begin_in_their_order(world, alloc, key)?;
        self.what_succeeded_is_not_run_again(world, alloc, key)?;
        self.what_is_done_is_not_done_again(alloc)?;
        self.no_start_beside_a_holder(world, agent, alloc)?;
        self.one_per_node_means_one(alloc)?;
        self.a_finished_allocation_is_quiet(alloc, key)?;
        self.a_restart_has_its_price(world, alloc, key, launch)
    }

    /// A task finds each port of its allocation in its environment.
    pub(super) fn a_start_is_told_its_ports(
        &mut self,
        alloc: &AllocRunner,
        key: &TaskKey,
        config: &TaskConfig,
    ) -> Verdict {
        for port in &alloc.record().ports {
            let told = config.env.get(&format!("NOMAD_HOST_PORT_{}", port.label));
            let so = told.is_some_and(|told| *told == port.value.to_string());
            self.holds(Property::AStartIsToldItsPorts, so, || {
                format!(
                    "{key:?} is told {told:?} of port {} {}",
                    port.label, port.value
                )
            })?;
        }
        Ok(())
    }

    /// A task whose record could not be read is not started again: nobody knows what it did.
    fn what_cannot_be_read_is_not_started(&mut self, world: &World, key: &TaskKey) -> Verdict {
        let unread = world.unread.contains(key);
        self.holds(Property::WhatCannotBeReadIsNotStarted, !unread, || {
            format!("{key:?}")
        })
    }

    /// What was saved or reported as over does not start.
    fn no_start_after_the_end(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let task_over = saved_task(world, key).is_none_or(|t| t.state.state == TaskLife::Dead);
        let alloc_over =
            saved_alloc(world, key.alloc).is_none_or(|alloc| alloc.finished || alloc.destroying);
        let reported = alloc.task(&key.task).is_none_or(TaskRunner::is_dead);
        self.holds(
            Property::NoStartAfterTheEnd,
            !task_over && !alloc_over && !reported,
            || format!("{key:?}: task {task_over}, alloc {alloc_over}, reported {reported}"),
        )
    }

    /// What was saved as over starts in no later life, unless somebody asked.
    fn no_later_life_starts_what_is_over(&mut self, key: &TaskKey) -> Verdict {
        let over = self.lives.tasks.get(key).is_some_and(|task| task.over);
        self.holds(Property::NoLaterLifeStartsWhatIsOver, !over, || {
            format!("{key:?}")
        })
    }

    /// Of a job that every node has once, only the first copy starts.
    fn one_per_node_means_one(&mut self, alloc: &AllocRunner) -> Verdict {
        if !alloc.job().job_type.one_per_node() {
            return Ok(());
        }
        let record = alloc.record();
        self.holds(Property::OnePerNodeMeansOne, record.index == 0, || {
            record.name.to_string()
        })
    }

    /// Of an allocation that is over nothing is started, asked to end or signalled.
    pub(super) fn a_finished_allocation_is_quiet(
        &mut self,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let finished = alloc.record().finished;
        self.holds(Property::AFinishedAllocationIsQuiet, !finished, || {
            format!("{key:?}")
        })
    }

    /// A task starts in directories that are there.
    fn a_start_finds_its_directories(&mut self, world: &World, key: &TaskKey) -> Verdict {
        let there = world.dirs.allocs.contains(&key.alloc)
            && world.dirs.tasks.contains(&(key.alloc, key.task.clone()));
        self.holds(Property::AStartFindsItsDirectories, there, || {
            format!("{key:?}")
        })
    }

    /// A task starts when what it needs was fetched.
    fn a_start_finds_its_artifacts(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let task = alloc.task(&key.task).map(|task| task.spec().task());
        if task.is_none_or(|task| task.artifacts.is_empty()) {
            return Ok(());
        }
        let fetched = (key.alloc, key.task.clone());
        let fetched = world.dirs.fetched.contains(&fetched);
        self.holds(Property::AStartFindsItsArtifacts, fetched, || {
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
        for other in alloc
            .tasks()
            .iter()
            .filter(|other| other.spec().key != *key)
        {
            let processes = world.launches_of(&other.spec().key);
            let (started, succeeded, lives) = processes.fold(
                (false, false, false),
                |(started, succeeded, lives), (_, process)| {
                    let well = process.exit.as_ref().is_some_and(|exit| exit.is_success());
                    (
                        started || process.starts > 0,
                        succeeded || well,
                        lives || process.alive,
                    )
                },
            );
            let fits = match (own, other.spec().stage()) {
                (Stage::Main, Stage::Prestart) => succeeded,
                (Stage::Main, Stage::PrestartSidecar) => started,
                (Stage::Poststart | Stage::PoststartSidecar, Stage::Main) => started,
                (Stage::Poststop, Stage::Poststop) => true,
                (Stage::Poststop, _) => !lives || other.is_dead(),
                _ => true,
            };
            self.holds(Property::StagesBeginInTheirOrder, fits, || {
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
        if task.spec().restarts_on_success() || self.lives.asked_again.contains(&key.alloc) {
            return Ok(());
        }
        let done = world.launches_of(key).any(|(launch, process)| {
            let succeeded = process.exit.as_ref().is_some_and(|exit| exit.is_success());
            succeeded && !process.unknowable && !self.lives.start_failed.contains(launch)
        });
        self.holds(Property::WhatSucceededIsNotRunAgain, !done, || {
            format!("{key:?}")
        })
    }

    /// A copy of a batch job that completed gets no other allocation for the same version.
    fn what_is_done_is_not_done_again(&mut self, alloc: &AllocRunner) -> Verdict {
        let place = Place::of(alloc);
        let by = self.lives.completed.get(&place).copied();
        let own = alloc.record();
        // An earlier one may still be on its way to its end.
        let again = by.is_some_and(|(by, made)| by != own.id && made < own.create_index);
        self.holds(Property::WhatIsDoneIsNotDoneAgain, !again, || {
            format!("{} was done by {by:?}, and {} starts", own.name, own.id)
        })
    }

    /// The leader ends first, sidecars last, and what comes after the end is left alone.
    pub(super) fn kills_follow_their_order(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let Some(task) = alloc.task(&key.task) else {
            return Ok(());
        };
        let stopping = matches!(task.phase(), Phase::Stopping(_));
        // One that fails with its script ends by itself, and not in its turn.
        if !stopping || task.record().restarting || task.state().failed {
            return Ok(());
        }
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
            let mut tasks = alloc.tasks().iter();
            let quarantined = tasks.any(|task| world.unread.contains(&task.spec().key));
            let allowed = limit.is_some()
                || quarantined
                || alloc.record().destroying
                || alloc.tasks().iter().any(setup_failed);
            return self.holds(Property::KillsFollowTheirOrder, allowed, || {
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
            let fits = !goes_first || !lives(world, &other.spec().key) || other.is_dead();
            self.holds(Property::KillsFollowTheirOrder, fits, || {
                format!(
                    "{key:?} is asked to end while {} lives",
                    other.spec().key.task
                )
            })?;
        }
        Ok(())
    }
}
