//! Processes: they outlive the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::driver::config::MockConfig;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::alloc::ExitResult;
use serde::Serialize;

use crate::names::Names;
use crate::scene::Scene;

/// Everything that was ever launched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    pub(crate) all: BTreeMap<LaunchId, Process>,
    /// What lives.
    pub(crate) living: BTreeSet<LaunchId>,
    /// Every launch of each task, oldest first.
    pub(crate) of_task: BTreeMap<TaskKey, Vec<LaunchId>>,
    /// The launch that was started or looked for last.
    pub(crate) latest: BTreeMap<TaskKey, LaunchId>,
}

impl Processes {
    pub(crate) fn get(&self, launch: LaunchId) -> Option<&Process> {
        self.all.get(&launch)
    }

    pub(crate) fn get_mut(&mut self, launch: LaunchId) -> Option<&mut Process> {
        self.all.get_mut(&launch)
    }

    /// The process of a launch, if it is this task's. Nobody may touch another one.
    pub(crate) fn own(
        &self,
        scene: &mut Scene,
        key: &TaskKey,
        launch: LaunchId,
        what: &str,
    ) -> Option<&Process> {
        let own = self.get(launch).filter(|process| process.key == *key);
        if own.is_none() {
            scene.violated("foreign_process_is_not_touched", format!("{what} {launch}"));
        }
        own
    }

    /// The record of a launch, made if there is none.
    pub(crate) fn record(
        &mut self,
        names: &mut Names,
        key: &TaskKey,
        launch: LaunchId,
    ) -> &mut Process {
        let of_task = &mut self.of_task;
        self.all.entry(launch).or_insert_with(|| {
            of_task.entry(key.clone()).or_default().push(launch);
            Process::new(key.clone(), names.launch(key, launch))
        })
    }

    pub(crate) fn alive(&self) -> impl Iterator<Item = (&LaunchId, &Process)> {
        let living = self.living.iter();
        living.filter_map(|launch| self.all.get_key_value(launch))
    }

    pub(crate) fn launches_of(&self, key: &TaskKey) -> impl Iterator<Item = (&LaunchId, &Process)> {
        let launches = self.of_task.get(key).into_iter().flatten();
        launches.filter_map(|launch| self.all.get_key_value(launch))
    }

    /// Nobody is told of the ends of what lives, until somebody looks for it.
    pub(crate) fn agent_died(&mut self) {
        for launch in &self.living {
            if let Some(process) = self.all.get_mut(launch) {
                process.watched = false;
            }
        }
    }

    /// The next agent did not ask for the end of what lives, and is owed the news of it, also where a signal of this
    /// one has only just arrived.
    pub(crate) fn forget_signals(&mut self) {
        for launch in &self.living {
            if let Some(process) = self.all.get_mut(launch) {
                process.stopping = false;
            }
        }
    }

    /// Nothing that lived lives, and nobody knows how it ended.
    pub(crate) fn rebooted(&mut self) {
        for process in self.all.values_mut() {
            if process.alive {
                process.alive = false;
                process.rebooted = true;
                process.unknowable = true;
            } else if process.starts == 0 && process.claims > 0 {
                process.tombstone = true;
            }
        }
        self.living.clear();
    }
}

/// What the world knows of one launch id.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// Which task's.
    pub key: TaskKey,
    /// What people read in traces.
    #[serde(skip)]
    pub name: Arc<str>,
    /// How it behaves.
    pub config: Arc<MockConfig>,
    /// How often a start was asked for.
    pub claims: u32,
    /// How often it was started.
    pub starts: u32,
    /// Whether it lives.
    pub alive: bool,
    /// It never will start: somebody looked for it or destroyed it before it did.
    pub tombstone: bool,
    /// How it ended, once it did and if anybody can know.
    pub exit: Option<ExitResult>,
    /// How its engine said that it ended, while it lived.
    pub told: Option<ExitResult>,
    /// Whether it lived when the machine went down.
    pub rebooted: bool,
    /// Whether the world gave anybody reason to say that the exit is unknown.
    pub unknowable: bool,
    /// Whether the agent that lives now is told of its end.
    pub watched: bool,
    /// Whether the world destroyed it.
    pub destroyed: bool,
    /// Whether the agent said that it is not needed any more.
    pub forgotten: bool,
    /// Whether the polite signal arrived.
    pub stopping: bool,
}

impl Process {
    /// A launch of `key` of which nothing is known yet.
    pub(crate) fn new(key: TaskKey, name: Arc<str>) -> Process {
        Process {
            key,
            name,
            config: Arc::default(),
            claims: 0,
            starts: 0,
            alive: false,
            tombstone: false,
            exit: None,
            told: None,
            rebooted: false,
            unknowable: false,
            watched: false,
            destroyed: false,
            forgotten: false,
            stopping: false,
        }
    }

    /// The end that it had, and the one that its engine only said it had.
    pub(crate) fn ends(&self) -> impl Iterator<Item = &ExitResult> {
        self.exit.iter().chain(&self.told)
    }
}
