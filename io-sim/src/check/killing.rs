//! Between the polite signal and the impolite one: as long as the job file says and the node allows, no less and no more.
//!
//! That it is no more is [`super::ending`]'s.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::request;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::DriverInput;
use drover_core::time::{Instant, Span};

use super::{Checker, Property, Verdict, policy};
use crate::world::World;

/// What is remembered in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Killing {
    /// Until when launches have time to end that were asked to, as long as nothing is told of them.
    graces: BTreeMap<LaunchId, Instant>,
    /// Launches of which a driver said that they are over.
    over: BTreeSet<LaunchId>,
}

impl Killing {
    pub(super) fn agent_died(&mut self) {
        *self = Killing::default();
    }

    /// A driver says that a launch is over, or that it cannot be asked to end: force may follow.
    pub(super) fn driver_reports(&mut self, reported: &DriverInput) {
        let over = match reported {
            DriverInput::Exited { .. } => true,
            DriverInput::Stopped { result, .. } => result.is_err(),
            _ => false,
        };
        if over {
            self.graces.remove(&reported.launch());
            self.over.insert(reported.launch());
        }
    }
}

impl Checker {
    /// A task that is asked to end gets the time that its job file gives it, and at most what the node allows; and it
    /// is asked by the signal of that file.
    pub(super) fn kill_timeout_is_that_of_job_file(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
        stop: &request::Stop,
    ) -> Verdict {
        // It may have ended while the request was held back.
        if !self.killing.over.contains(&stop.launch) {
            let until = world.scene.at + stop.grace;
            self.killing.graces.insert(stop.launch, until);
        }
        let most = self.max_kill_timeout;
        // It may have been asked before the last change, and only have left now.
        let mut said: Vec<Span> = Vec::new();
        let mut signals: Vec<String> = Vec::new();
        for task in self.files.tasks(alloc, key) {
            said.push(policy::kill_timeout(task, most));
            signals.push(task.kill_signal.clone());
        }
        let holds = said.is_empty() || said.contains(&stop.grace);
        self.holds(Property::KillTimeoutIsThatOfJobFile, holds, || {
            let grace = stop.grace;
            format!("{key:?} gets {grace}, its job file says {said:?} on a node that allows {most}")
        })?;
        let holds = signals.is_empty() || signals.contains(&stop.signal);
        self.holds(Property::KillSignalIsThatOfJobFile, holds, || {
            let signal = &stop.signal;
            format!("{key:?} gets {signal:?}, its job file says {signals:?}")
        })
    }

    /// No force while the task has time to end, and nobody says that it did or cannot be asked.
    pub(super) fn force_kill_waits_for_kill_timeout(
        &mut self,
        world: &World,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        let Some(until) = self.killing.graces.remove(&launch) else {
            return Ok(());
        };
        self.holds(
            Property::ForceKillWaitsForKillTimeout,
            world.scene.at >= until,
            || format!("{key:?} is killed {} too early", until - world.scene.at),
        )
    }
}
