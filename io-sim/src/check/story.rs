//! The story that is told of each launch: that it began, then that it ended, each once; and that it did well only if
//! it did.
//!
//! A crash may make a thing be told again that was not saved. So what counts is this life of the agent, and what
//! the disk held when it began.

use std::collections::BTreeSet;

use drover_core::agent::Agent;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::alloc::{ExitResult, TaskLife};
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::store::{Key, Record};
use drover_core::task::runner::TaskRunner;

use super::{Checker, Property, Verdict, policy};
use crate::world::World;

/// What was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    /// Launches that were told to have begun in this life, and those of which the disk said so when it began.
    began: BTreeSet<LaunchId>,
    /// Launches that were ever told to have ended.
    ended: BTreeSet<LaunchId>,
    /// Launches of which the disk says that the driver could not start them.
    failed_starts: BTreeSet<LaunchId>,
    /// Tasks whose remains could not be destroyed: nobody knows how they ended.
    given_up: BTreeSet<TaskKey>,
}

impl Story {
    /// What the disk says counts as told.
    pub(super) fn agent_restored(&mut self, world: &World) {
        self.began.clear();
        self.failed_starts.clear();
        for (key, record) in world.disk.records() {
            let (Key::Task(..), Record::Task(task)) = (key, record) else {
                continue;
            };
            let Some(launch) = &task.launch else { continue };
            if task.state.state == TaskLife::Running || launch.exit.is_some() {
                self.began.insert(launch.id);
            }
            if launch.start_failed.is_some() {
                self.failed_starts.insert(launch.id);
            }
        }
    }
}

impl Checker {
    /// Something is told of a task.
    pub(super) fn story_goes_on(
        &mut self,
        world: &World,
        task: &TaskRunner,
        event: &TaskEvent,
    ) -> Verdict {
        let key = &task.spec().key;
        let memory = self.lives.task(key);
        memory.last_event = Some(event.kind);
        match event.kind {
            EventType::Started => self.start_is_told_once(world, key),
            EventType::Terminated => self.end_is_told_after_start(world, key),
            EventType::Killing => {
                memory.killed = true;
                Ok(())
            }
            EventType::Killed if event.details.contains_key("kill_error") => {
                self.story.given_up.insert(key.clone());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A launch is told to have begun once, and before it is told to have ended.
    fn start_is_told_once(&mut self, world: &World, key: &TaskKey) -> Verdict {
        let Some(launch) = world.processes.latest.get(key) else {
            return Ok(());
        };
        let first = self.story.began.insert(*launch);
        self.holds(Property::StartIsToldOnce, first, || {
            format!("{key:?} {launch} is told to begin again")
        })
    }

    /// A launch that is told to have ended was told to have begun.
    fn end_is_told_after_start(&mut self, world: &World, key: &TaskKey) -> Verdict {
        let Some(launch) = world.processes.latest.get(key) else {
            return Ok(());
        };
        self.story.ended.insert(*launch);
        let began = self.story.began.contains(launch);
        self.holds(Property::EndIsToldAfterStart, began, || {
            format!("{key:?} {launch} ends, and nobody was told that it began")
        })
    }

    /// What of a launch that was told to have begun is forgotten when it was told to have ended, too.
    pub(super) fn end_of_forgotten_launch_was_told(
        &mut self,
        world: &World,
        launch: LaunchId,
    ) -> Verdict {
        let Some(process) = world.processes.get(launch) else {
            return Ok(());
        };
        let key = &process.key;
        let exempt = self.story.given_up.contains(key) || world.disk.unread.contains(key);
        // What was told in a step that a crash cut off, and is not on the disk, nobody can go on with.
        if exempt || !self.story.began.contains(&launch) {
            return Ok(());
        }
        let told = self.story.ended.contains(&launch) || self.exits.was_saved(launch);
        self.holds(Property::EndIsTold, told, || {
            format!("{key:?} {launch} is forgotten, and nobody was told that it ended")
        })
    }

    /// A start that failed, as the disk says, is over: nobody looks for it.
    pub(super) fn failed_start_is_not_looked_for(
        &mut self,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        let failed = self.story.failed_starts.contains(&launch);
        self.holds(Property::FailedStartIsNotForgotten, !failed, || {
            format!("{key:?} {launch}, whose start failed, is looked for")
        })
    }

    /// A task that is over by itself and did not fail ended with code 0, by no signal, and with no error.
    pub(super) fn success_is_code_zero_without_signal(
        &mut self,
        world: &World,
        agent: &Agent,
        task: &TaskRunner,
    ) -> Verdict {
        let key = &task.spec().key;
        let killed = self.lives.task(key).killed || self.leaving || agent.view().stopped();
        if !task.is_dead() || task.state().failed || killed || world.disk.unread.contains(key) {
            return Ok(());
        }
        let Some(process) = world.launches_of(key).last().map(|(_, process)| process) else {
            return Ok(());
        };
        let well = |exit: &ExitResult| {
            exit.code == Some(0) && exit.signal == 0 && exit.message.is_none() && !exit.oom_killed
        };
        let holds = process.ends().any(well);
        self.holds(Property::SuccessIsCodeZeroWithoutSignal, holds, || {
            format!("{key:?} counts as successful: {:?}", process.exit)
        })?;
        self.lasting_task_is_not_done(agent, task)
    }

    /// What is to run as long as its group does is never done by itself, however well it ended.
    fn lasting_task_is_not_done(&mut self, agent: &Agent, task: &TaskRunner) -> Verdict {
        let key = &task.spec().key;
        let alloc = agent.view().alloc(key.alloc);
        let file = alloc.and_then(|alloc| Some((self.files.of(alloc)?, alloc.record())));
        let lasts = file.is_some_and(|(file, record)| {
            let group = policy::group(file, record.group.as_str());
            let task = group.and_then(|group| policy::task(group, key.task.as_str()));
            task.is_some_and(|task| policy::lasts(file, task))
        });
        self.holds(Property::LastingTaskIsNotDone, !lasts, || {
            format!("{key:?} is over, and nobody asked it to end")
        })
    }
}
