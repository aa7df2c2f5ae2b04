//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// The tasks of the job's latest allocation that is not over get a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// Whose.
    pub job: String,
}

impl ActKind for Signal {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        if let Some(alloc) = sim.one_of(&self.job, None) {
            let (task, signal) = (None, "SIGHUP".to_owned());
            sim.ask(requests::Signal {
                alloc,
                task,
                signal,
            });
        }
        Ok(())
    }
}

/// One task of the job's latest allocation that is not over gets a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalTask {
    /// Whose.
    pub job: String,
    /// Which of its tasks; counted around.
    pub nth: usize,
}

impl ActKind for SignalTask {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        if let Some((alloc, task)) = sim.task_of(&self.job, self.nth) {
            sim.ask(requests::Signal {
                alloc,
                task: Some(task),
                signal: "SIGHUP".to_owned(),
            });
        }
        Ok(())
    }
}

impl Simulated for requests::Signal {
    fn is_remembered(&self, _: Facts<'_>, _: &Reply) -> Option<bool> {
        None
    }
}
