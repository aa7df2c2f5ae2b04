//! See the core's request of the same name.

use drover_core::agent::requests::{self, SessionCommand};
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// Somebody opens a session in one task of the job's latest allocation that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenSession {
    /// Whose.
    pub job: String,
    /// Which of its tasks; counted around.
    pub nth: usize,
}

impl ActKind for OpenSession {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        if let Some((alloc, task)) = sim.task_of(&self.job, self.nth) {
            let session = sim.next_session();
            sim.ask(requests::OpenSession {
                session,
                alloc,
                task,
                run: SessionCommand::Command(vec!["/bin/sh".to_owned()]),
                tty: false,
            });
        }
        Ok(())
    }
}

impl Simulated for requests::OpenSession {
    fn is_remembered(&self, _: Facts<'_>, _: &Reply) -> Option<bool> {
        None
    }
}
