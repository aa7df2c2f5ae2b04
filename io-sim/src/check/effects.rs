//! Starts and stops as they leave: their order, and who must not live beside them.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::{DriverEffect, TaskConfig, request};
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::alloc::{ExitResult, TaskLife};
use drover_core::model::event::EventType;
use drover_core::model::task::{LogConfig, Stage};
use drover_core::task::runner::{Phase, TaskRunner};

use super::history::{TaskPath, lives, saved_alloc, saved_task};
use super::{Checker, Property, Verdict, scripts};
use crate::world::World;

impl Checker {
    /// A driver is asked for something.
    pub(super) fn driver_effect(
        &mut self,
        world: &World,
        agent: &Agent,
        key: &TaskKey,
        effect: &DriverEffect,
    ) -> Verdict {
        let alloc = agent.view().alloc(key.alloc);
        self.holds(Property::DriverEffectHasKnownAlloc, alloc.is_some(), || {
            format!("{key:?} {effect:?}")
        })?;
        let Some(alloc) = alloc else { return Ok(()) };
        self.shutdown_keeping_tasks_touches_no_task(key, effect)?;
        match effect {
            DriverEffect::Start(request::Start { launch, config, .. }) => {
                self.devices_of_a_start(alloc, key, config)?;
                self.start_env_has_ports(alloc, key, config)?;
                self.start_is_that_of_job_file(alloc, key, *launch, config)?;
                self.start_has_its_network(world, alloc, key, config)?;
                self.start_has_its_volumes(world, alloc, key, config)?;
                self.start_is_in_known_namespace(world, alloc, key)?;
                self.placed_alloc_starts_where_it_was_placed(world, alloc, key)?;
                self.start_env_has_dispatch_meta(alloc, key, config)?;
                self.prestart_task_runs_before_main_tasks(world, alloc, key)?;
                if let Some(task) = alloc.task(&key.task) {
                    self.start_has_its_templates(task, config)?;
                    self.start_has_its_identity_tokens(world, task)?;
                }
                self.start_effect(world, agent, alloc, key, *launch)
            }
            DriverEffect::Stop(stop @ request::Stop { launch, grace, .. }) => {
                self.ending.on_stop_sent(*launch, world.scene.at + *grace);
                self.kill_timeout_is_that_of_job_file(world, alloc, key, stop)?;
                self.stop_waits_for_shutdown_delay(world, alloc, key)?;
                self.finished_alloc_has_no_driver_effects(alloc, key)?;
                self.stop_is_saved_before_kill(world, key, *launch)?;
                self.kill_order_is_leader_others_sidecars(world, alloc, key)
            }
            DriverEffect::OpenSession(request::OpenSession { launch, .. }) => {
                self.finished_alloc_has_no_driver_effects(alloc, key)?;
                match alloc.task(&key.task) {
                    Some(task) => {
                        let runs = scripts::runs_until_now(agent, world, task);
                        self.session_effect(agent, alloc, task, runs, *launch)
                    }
                    None => Ok(()),
                }
            }
            DriverEffect::Destroy(request::Destroy { launch, .. }) => {
                let open = world
                    .sessions
                    .open
                    .values()
                    .any(|one| one.launch == *launch);
                self.sometimes(Property::SometimesSessionEndsWithItsTask, open);
                let asked = self.ending.on_destroy_sent(*launch);
                let alive = (world.processes.get(*launch)).is_some_and(|process| process.alive);
                self.sometimes(Property::SometimesForceKillIsNeeded, asked && alive);
                self.force_kill_waits_for_kill_timeout(world, key, *launch)?;
                self.exit_is_saved_before_destroy(world, key, *launch)
            }
            DriverEffect::Exec(request::Exec {
                op, output: true, ..
            })
            | DriverEffect::Health(request::Health { op, .. }) => {
                self.finished_alloc_has_no_driver_effects(alloc, key)?;
                self.check_program(world, agent, (alloc, key), *op)
            }
            DriverEffect::Exec(request::Exec {
                op,
                launch,
                program,
                output: false,
            }) => {
                self.finished_alloc_has_no_driver_effects(alloc, key)?;
                match alloc.task(&key.task) {
                    Some(task) => {
                        let runs = scripts::runs_until_now(agent, world, task);
                        self.script_effect(world, task, runs, *op, *launch, program)
                    }
                    None => Ok(()),
                }
            }
            DriverEffect::Recover(request::Recover { launch, logs, .. }) => {
                self.lives.to_find.remove(launch);
                self.recovered_output_is_kept_as_job_file_says(alloc, key, logs)?;
                self.failed_start_is_not_looked_for(key, *launch)
            }
            _ => self.finished_alloc_has_no_driver_effects(alloc, key),
        }
    }

    pub(super) fn start_effect(
        &mut self,
        world: &World,
        agent: &Agent,
        alloc: &AllocRunner,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        self.task_with_unreadable_record_is_not_started(world, key)?;
        self.timed_out_alloc_starts_nothing(world, key)?;
        self.launch_is_saved_before_start(world, key, launch)?;
        self.no_start_after_alloc_is_terminal(world, alloc, key)?;
        self.restored_agent_starts_nothing_terminal(key)?;
        self.start_has_its_directories(world, key)?;
        self.start_has_its_artifacts(world, alloc, key)?;
        self.start_has_its_dispatch_payload(world, alloc, key)?;
        self.parameterized_job_never_runs(alloc)?;
        self.periodic_job_never_runs(alloc)?;
        self.a_start_has_its_disk(world, alloc)?;
        self.lifecycle_stages_run_in_order(world, alloc, key)?;
        self.complete_batch_alloc_is_not_run_again(world, alloc, key)?;
        self.complete_batch_copy_is_not_placed_again(alloc)?;
        self.no_start_while_claim_is_held(world, agent, alloc)?;
        self.system_job_has_one_alloc_per_node(alloc)?;
        self.finished_alloc_has_no_driver_effects(alloc, key)?;
        self.restart_is_paid_for(world, key, launch)
    }

    /// The output of a task that lives on is kept as some version of its job says.
    fn recovered_output_is_kept_as_job_file_says(
        &mut self,
        alloc: &AllocRunner,
        key: &TaskKey,
        logs: &LogConfig,
    ) -> Verdict {
        let said = self.files.tasks(alloc, key).into_iter();
        let said: Vec<LogConfig> = said
            .map(|task| task.log_config.unwrap_or_default())
            .collect();
        let holds = said.is_empty() || said.contains(logs);
        self.holds(Property::RecoveredOutputIsKeptAsJobFileSays, holds, || {
            format!("{key:?} {logs:?}, its job file says {said:?}")
        })
    }

    /// A task finds each port of its allocation in its environment.
    pub(super) fn start_env_has_ports(
        &mut self,
        alloc: &AllocRunner,
        key: &TaskKey,
        config: &TaskConfig,
    ) -> Verdict {
        for port in &alloc.record().ports {
            let reported = config.env.get(&format!("NOMAD_HOST_PORT_{}", port.label));
            let so = reported.is_some_and(|reported| *reported == port.value.to_string());
            self.holds(Property::StartEnvHasPorts, so, || {
                format!(
                    "{key:?} is told {reported:?} of port {} {}",
                    port.label, port.value
                )
            })?;
        }
        Ok(())
    }

    /// A task whose record could not be read is not started again: nobody knows what it did.
    fn task_with_unreadable_record_is_not_started(
        &mut self,
        world: &World,
        key: &TaskKey,
    ) -> Verdict {
        let unread = world.disk.unread.contains(key);
        self.holds(
            Property::TaskWithUnreadableRecordIsNotStarted,
            !unread,
            || format!("{key:?}"),
        )
    }

    /// What was saved or reported as over does not start.
    fn no_start_after_alloc_is_terminal(
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
            Property::NoStartAfterAllocIsTerminal,
            !task_over && !alloc_over && !reported,
            || format!("{key:?}: task {task_over}, alloc {alloc_over}, reported {reported}"),
        )
    }

    /// A restored agent starts nothing that was saved as terminal, unless an operator asked for it.
    fn restored_agent_starts_nothing_terminal(&mut self, key: &TaskKey) -> Verdict {
        let over = self.lives.tasks.get(key).is_some_and(|task| task.over);
        self.holds(Property::RestoredAgentStartsNothingTerminal, !over, || {
            format!("{key:?}")
        })
    }

    /// A system job starts one allocation on a node.
    fn system_job_has_one_alloc_per_node(&mut self, alloc: &AllocRunner) -> Verdict {
        if !alloc.job().job_type.one_per_node() {
            return Ok(());
        }
        let record = alloc.record();
        self.holds(
            Property::SystemJobHasOneAllocPerNode,
            record.index == 0,
            || record.name.to_string(),
        )
    }

    /// A finished allocation starts, stops and signals nothing.
    pub(super) fn finished_alloc_has_no_driver_effects(
        &mut self,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let finished = alloc.record().finished;
        self.holds(Property::FinishedAllocHasNoDriverEffects, !finished, || {
            format!("{key:?}")
        })
    }

    /// A task starts only when its directories exist.
    fn start_has_its_directories(&mut self, world: &World, key: &TaskKey) -> Verdict {
        let there = world.dirs.allocs.contains(&key.alloc)
            && world.dirs.tasks.contains(&(key.alloc, key.task.clone()));
        self.holds(Property::StartHasItsDirectories, there, || {
            format!("{key:?}")
        })
    }

    /// A task starts only after its artifacts were fetched.
    fn start_has_its_artifacts(
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
        self.holds(Property::StartHasItsArtifacts, fetched, || {
            format!("{key:?}")
        })
    }

    /// Lifecycle stages run in order: prestart, main, poststart, poststop.
    fn lifecycle_stages_run_in_order(
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
                    let well = process.ends().any(ExitResult::is_success);
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
            self.holds(Property::LifecycleStagesRunInOrder, fits, || {
                format!(
                    "{key:?} starts while {} is not there yet",
                    other.spec().key.task
                )
            })?;
        }
        Ok(())
    }

    /// A task that is done when it succeeds runs no second time, unless an operator says so.
    fn complete_batch_alloc_is_not_run_again(
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
            let believed = !process.unknowable && process.told.is_none();
            succeeded && believed && !self.lives.start_failed.contains(launch)
        });
        self.holds(Property::CompleteBatchAllocIsNotRunAgain, !done, || {
            format!("{key:?}")
        })
    }

    /// A complete copy of a batch job gets no other allocation of the same job version.
    fn complete_batch_copy_is_not_placed_again(&mut self, alloc: &AllocRunner) -> Verdict {
        if alloc.record().of_servers {
            // Servers decide that, and may have forgotten that it was done.
            return Ok(());
        }
        let place = TaskPath::of(alloc);
        let by = self.lives.completed.get(&place).copied();
        let own = alloc.record();
        // An earlier one may still be on its way to its end.
        let again = by.is_some_and(|(by, made)| by != own.id && made < own.create_index);
        self.holds(Property::CompleteBatchCopyIsNotPlacedAgain, !again, || {
            format!("{} was done by {by:?}, and {} starts", own.name, own.id)
        })
    }

    /// A group is killed in order: leader, other tasks, sidecars; poststop tasks are not killed.
    pub(super) fn kill_order_is_leader_others_sidecars(
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
            let quarantined = tasks.any(|task| world.disk.unread.contains(&task.spec().key));
            let allowed = limit.is_some()
                || quarantined
                || alloc.record().destroying
                || alloc.tasks().iter().any(setup_failed);
            return self.holds(Property::KillOrderIsLeaderOthersSidecars, allowed, || {
                format!("{key:?} is a poststop task and is killed")
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
            self.holds(Property::KillOrderIsLeaderOthersSidecars, fits, || {
                format!(
                    "{key:?} is asked to stop while {} is alive",
                    other.spec().key.task
                )
            })?;
        }
        Ok(())
    }
}
