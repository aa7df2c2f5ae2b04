//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::agent::requests::RestartScope;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// Tasks of the job's latest allocation that is not over are started again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Whose.
    pub job: String,
    /// All of them, or those that run.
    pub all: bool,
}

impl ActKind for Restart {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let tasks = match self.all {
            true => RestartScope::All,
            false => RestartScope::Running,
        };
        if let Some(alloc) = sim.one_of(&self.job, None) {
            sim.ask(requests::Restart { alloc, tasks });
        }
        Ok(())
    }
}

/// One task of the job's latest allocation that is not over is started again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartTask {
    /// Whose.
    pub job: String,
    /// Which of its tasks; counted around.
    pub nth: usize,
}

impl ActKind for RestartTask {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        if let Some((alloc, task)) = sim.task_of(&self.job, self.nth) {
            let tasks = RestartScope::Task(task);
            sim.ask(requests::Restart { alloc, tasks });
        }
        Ok(())
    }
}

impl Simulated for requests::Restart {
    fn is_remembered(&self, _: Facts<'_>, _: &Reply) -> Option<bool> {
        None
    }
}
