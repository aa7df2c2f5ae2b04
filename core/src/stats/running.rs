//! Who is measured: the tasks that run.

use std::sync::Arc;

use crate::alloc::runner::AllocRunner;
use crate::ids::{LaunchId, TaskKey};
use crate::model::alloc::TaskLife;

/// A task that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Which.
    pub task: TaskKey,
    /// The launch that runs.
    pub launch: LaunchId,
    /// Who runs it.
    pub driver: Arc<str>,
}

impl Running {
    /// The tasks of an allocation that run.
    pub fn of(alloc: &AllocRunner) -> Vec<Running> {
        let tasks = alloc.tasks().iter();
        let runs = tasks.filter(|task| task.state().state == TaskLife::Running);
        let running = runs.filter_map(|task| {
            Some(Running {
                task: task.spec().key.clone(),
                launch: task.record().launch.as_ref()?.id,
                driver: task.spec().driver.clone(),
            })
        });
        running.collect()
    }
}
