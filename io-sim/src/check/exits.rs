//! What is reported and remembered of the ends of tasks, against how they ended.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::{DriverInput, Found};
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::store::record::Launch;
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::Instant;

use super::history::LostStarts;
use super::{Checker, Property, Verdict};
use crate::process::Process;
use crate::world::World;

/// What is remembered of starts and ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Exits {
    /// How often the end of a launch was told in this life.
    reported: BTreeMap<LaunchId, u32>,
    /// Launches whose end the disk held once.
    saved: BTreeSet<LaunchId>,
    /// Since when the agent knows of a launch that it runs.
    pub(super) known_since: BTreeMap<LaunchId, Instant>,
}

impl Exits {
    pub(super) fn agent_died(&mut self) {
        self.reported.clear();
        self.known_since.clear();
    }

    /// Whether the disk held the end of a launch once.
    pub(super) fn was_saved(&self, launch: LaunchId) -> bool {
        self.saved.contains(&launch)
    }

    pub(super) fn saved(&mut self, launch: &Launch) {
        if launch.exit.is_some() {
            self.saved.insert(launch.id);
        }
    }
}

impl Checker {
    /// A driver says something that the checks remember.
    pub(super) fn driver_reports(
        &mut self,
        world: &World,
        agent: &Agent,
        key: &TaskKey,
        reported: &DriverInput,
    ) {
        let launch = reported.launch();
        match reported {
            DriverInput::Started { .. } => {
                self.exits
                    .known_since
                    .entry(launch)
                    .or_insert(world.scene.at);
            }
            DriverInput::Recovered { op, found, .. } => {
                self.is_found(agent, key, *op, found);
                // What is looked for is not known to be hopeless.
                self.lives.task(key).hopeless = None;
                if *found == Found::NeverStarted {
                    self.lives.task(key).never_started += 1;
                }
                self.sometimes(probe(found), true);
            }
            DriverInput::Exited { .. } => {
                let task = agent
                    .view()
                    .alloc(key.alloc)
                    .and_then(|a| a.task(&key.task));
                let starting = task.is_some_and(|task| {
                    let launch_of = task.record().launch.as_ref().map(|launch| launch.id);
                    matches!(task.phase(), Phase::Starting(_)) && launch_of == Some(launch)
                });
                self.sometimes(Property::SometimesExitArrivesBeforeStarted, starting);
            }
            DriverInput::StartLost { op, .. } => self.start_is_lost(agent, key, *op),
            DriverInput::StartFailed { op, failure, .. } if !failure.recoverable => {
                self.start_is_hopeless(agent, key, *op);
            }
            _ => {}
        }
    }

    pub(super) fn event_emitted(
        &mut self,
        world: &World,
        agent: &Agent,
        key: &TaskKey,
        event: &TaskEvent,
    ) -> Verdict {
        self.event_has_current_time(world, key, event)?;
        self.oversized_directory_is_told_once(key, event)?;
        let Some(alloc) = agent.view().alloc(key.alloc) else {
            return Ok(());
        };
        let Some(task) = alloc.task(&key.task) else {
            return Ok(());
        };
        self.no_event_shows_a_secret(task, event)?;
        self.template_change_is_applied_once(task, event)?;
        self.renewed_token_is_applied_once(world, task, event)?;
        self.check_restarts(world, task, event)?;
        self.engine_is_awaited(world, task, event)?;
        if event.kind == EventType::NotRestarting {
            self.restart_budget_is_used_in_full(world, alloc, task)?;
        }
        self.story_goes_on(world, task, event)?;
        self.ending_reported(world, alloc, task, event)?;
        self.canaries
            .reported(world.scene.at, alloc.job_key(), event.kind);
        match event.kind {
            EventType::Terminated => self.end_reported(world, task, event),
            EventType::Restarting => self.restart_reported(world, alloc, task, event),
            EventType::Started => {
                let memory = self.lives.task(key);
                // What was lost may have come to run for a moment.
                if memory.cut_off.is_none() {
                    memory.lost_starts = LostStarts::default();
                }
                Ok(())
            }
            EventType::NotRestarting => {
                self.the_end_was_the_tasks_own(alloc, task)?;
                let used_up = event.display_message.starts_with("Exceeded");
                self.sometimes(Property::SometimesRestartBudgetIsUsedUp, used_up);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end_reported(&mut self, world: &World, task: &TaskRunner, event: &TaskEvent) -> Verdict {
        let Some(launch) = world.processes.latest.get(&task.spec().key) else {
            return Ok(());
        };
        let Some(process) = world.processes.get(*launch) else {
            return Ok(());
        };
        let current = task.record().launch.as_ref();
        if current.is_some_and(|current| current.id != *launch) {
            return Ok(());
        }
        self.reported_exit_matches_process_exit(process, event)?;
        self.exit_is_reported_once(*launch, process)
    }

    /// A reported exit is true, and "unknown" only where it cannot be known.
    fn reported_exit_matches_process_exit(
        &mut self,
        process: &Process,
        event: &TaskEvent,
    ) -> Verdict {
        let reported = event.details.get("exit_code").map(String::as_str);
        let codes = process.ends().filter_map(|exit| exit.code);
        let truth: Vec<String> = codes.map(|code| code.to_string()).collect();
        let holds = match reported {
            Some("unknown") => process.unknowable || process.starts == 0,
            Some(reported) => truth.iter().any(|code| code == reported),
            None => false,
        };
        self.holds(Property::ReportedExitMatchesProcessExit, holds, || {
            format!(
                "{}: reported {reported:?}, expected {truth:?}",
                process.name
            )
        })
    }

    /// Each exit is reported once; a saved one is not reported again after a restart.
    fn exit_is_reported_once(&mut self, launch: LaunchId, process: &Process) -> Verdict {
        let times = self.exits.reported.entry(launch).or_default();
        *times += 1;
        let once = *times == 1;
        self.holds(Property::ExitIsReportedOnce, once, || {
            process.name.to_string()
        })?;
        let saved = self.exits.saved.contains(&launch);
        self.holds(Property::SavedExitIsNotReportedAgain, !saved, || {
            process.name.to_string()
        })
    }

    /// A saved exit matches the process's exit.
    pub(super) fn saved_exit_matches_process_exit(
        &mut self,
        world: &World,
        task: &TaskRunner,
    ) -> Verdict {
        let Some(launch) = &task.record().launch else {
            return Ok(());
        };
        let (Some(exit), Some(process)) = (&launch.exit, world.processes.get(launch.id)) else {
            return Ok(());
        };
        let truth: Vec<_> = process.ends().collect();
        let holds = match exit.code {
            None => process.unknowable || process.starts == 0,
            Some(_) => truth.iter().any(|truth| {
                (truth.code, truth.signal, truth.oom_killed)
                    == (exit.code, exit.signal, exit.oom_killed)
            }),
        };
        self.holds(Property::SavedExitMatchesProcessExit, holds, || {
            format!("{}: {exit:?}, true {truth:?}", process.name)
        })
    }
}

fn probe(found: &Found) -> Property {
    match found {
        Found::Running => Property::SometimesTaskIsRecoveredRunning,
        Found::Exited(_) => Property::SometimesTaskIsRecoveredExited,
        Found::NeverStarted => Property::SometimesLaunchNeverStarted,
        Found::Rebooted => Property::SometimesRebootEndsATask,
        Found::Gone(_) => Property::SometimesLaunchIsGone,
    }
}
