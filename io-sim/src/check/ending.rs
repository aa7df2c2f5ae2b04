//! Ends: of processes that were asked to end, and of agents.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::{DriverEffect, Effect, Reply};
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::ShutdownMode;
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::Instant;

use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of ends in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending {
    /// When the grace of each launch is over that was asked to end.
    graces: BTreeMap<LaunchId, Instant>,
    /// What was asked to be ended by force.
    destroyed: BTreeSet<LaunchId>,
    mode: Option<ShutdownMode>,
    /// Launches that were starting or ending when the agent was told to end without its tasks.
    busy: BTreeSet<LaunchId>,
    stopped: bool,
}

impl Ending {
    pub(super) fn on_stop_sent(&mut self, launch: LaunchId, until: Instant) {
        self.graces.insert(launch, until);
    }

    /// Returns whether the launch was asked to end before.
    pub(super) fn on_destroy_sent(&mut self, launch: LaunchId) -> bool {
        self.destroyed.insert(launch);
        self.graces.remove(&launch).is_some()
    }

    /// Whether this life of the agent asked for the launch's end by force.
    pub(super) fn is_destroyed(&self, launch: LaunchId) -> bool {
        self.destroyed.contains(&launch)
    }

    /// The agent is told to end.
    pub(super) fn asked(&mut self, agent: &Agent, mode: ShutdownMode) {
        self.mode = Some(mode);
        let tasks = agent.view().allocs().flat_map(AllocRunner::tasks);
        let busy = tasks.filter(|task| is_busy(task));
        let launches = busy.filter_map(|task| task.record().launch.as_ref());
        self.busy.extend(launches.map(|launch| launch.id));
    }
}

/// Whether the driver is about to be asked something, or was.
fn is_busy(task: &TaskRunner) -> bool {
    match task.phase() {
        Phase::Starting(_) | Phase::Stopping { .. } | Phase::Cleaning(_) | Phase::Dead(_) => true,
        Phase::Waiting
        | Phase::Preparing(_)
        | Phase::Recovering(_)
        | Phase::Running
        | Phase::Delaying(_)
        | Phase::Deregistering(_)
        | Phase::Pausing(_) => false,
    }
}

impl Checker {
    /// An agent that said that it is done does nothing more, but refuse what it is asked.
    pub(super) fn stopped_agent_has_no_effects(&mut self, effect: &Effect) -> Verdict {
        if !self.ending.stopped {
            return Ok(());
        }
        let refuses = matches!(effect, Effect::Reply(_, Reply::Refused(_)));
        self.holds(Property::StoppedAgentHasNoEffects, refuses, || {
            format!("{effect:?}")
        })
    }

    /// An agent that shuts down keeping its tasks starts, stops and signals none.
    pub(super) fn shutdown_keeping_tasks_touches_no_task(
        &mut self,
        key: &TaskKey,
        effect: &DriverEffect,
    ) -> Verdict {
        use DriverEffect::{Destroy, Start, Stop};
        if !matches!(effect, Start(_) | Stop(_) | Destroy(_)) {
            return Ok(());
        }
        if self.ending.mode != Some(ShutdownMode::KeepTasks) {
            return Ok(());
        }
        let busy = self.ending.busy.contains(&effect.launch());
        self.holds(Property::ShutdownKeepingTasksTouchesNoTask, busy, || {
            format!("{key:?} {effect:?}")
        })
    }

    /// The agent says that it is done.
    pub(super) fn stopped(&mut self, world: &World, agent: &Agent) -> Verdict {
        self.ending.stopped = true;
        // It is looked at all the same: that nothing follows is what is leased from now on.
        self.reached.note(Property::StoppedAgentHasNoEffects);
        match self.ending.mode {
            Some(ShutdownMode::StopTasks) => {
                self.shutdown_stopping_tasks_leaves_no_process(world, agent)
            }
            Some(ShutdownMode::KeepTasks) | None => Ok(()),
        }
    }

    /// An agent that shuts down stopping its tasks leaves no process, except those that could not be killed.
    fn shutdown_stopping_tasks_leaves_no_process(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        let resists = |key: &TaskKey| {
            let alloc = agent.view().alloc(key.alloc);
            let task = alloc.and_then(|alloc| alloc.task(&key.task));
            task.is_some_and(|task| task.is_dead() && task.has_remains())
        };
        let left = world.alive().find(|(_, process)| !resists(&process.key));
        let name = left.map(|(_, process)| process.name.to_string());
        self.holds(
            Property::ShutdownStoppingTasksLeavesNoProcess,
            name.is_none(),
            || format!("{name:?} is alive"),
        )?;
        let removing = |alloc: &AllocRunner| alloc.network_awaited().is_some();
        let left = agent.view().allocs().find(|alloc| removing(alloc));
        let left = left.map(|alloc| alloc.record().name.clone());
        self.holds(
            Property::ShutdownStoppingTasksRemovesNetworks,
            left.is_none(),
            || format!("the network of {left:?} is being removed"),
        )
    }

    /// A force kill follows when the kill timeout has passed, as soon as it is saved.
    pub(super) fn force_kill_follows_kill_timeout(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        let gated = self.commits.in_flight().is_some();
        // It was not called back in time itself.
        let late = agent
            .poll_timeout()
            .is_some_and(|(at, _)| at <= world.scene.at);
        if gated || late || self.leaving || self.ending.stopped || self.ending.graces.is_empty() {
            return Ok(());
        }
        let late = self
            .ending
            .graces
            .iter()
            .find(|(_, at)| **at < world.scene.at);
        let late = late.map(|(launch, at)| (*launch, *at));
        self.holds(
            Property::ForceKillFollowsKillTimeout,
            late.is_none(),
            || format!("{late:?}"),
        )
    }
}
