//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// An allocation is stopped: the latest that is not over, or the n-th oldest of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopAlloc {
    /// Whose.
    pub job: String,
    /// Which; counted around.
    pub nth: Option<usize>,
}

impl ActKind for StopAlloc {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        if let Some(alloc) = sim.one_of(&self.job, self.nth) {
            sim.ask(requests::StopAlloc {
                alloc,
                no_shutdown_delay: false,
            });
        }
        Ok(())
    }
}

/// An allocation is stopped by somebody in a hurry: without the shutdown delays of its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopAllocWithoutDelay {
    /// Whose: the latest that is not over.
    pub job: String,
}

impl ActKind for StopAllocWithoutDelay {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        if let Some(alloc) = sim.one_of(&self.job, None) {
            sim.ask(requests::StopAlloc {
                alloc,
                no_shutdown_delay: true,
            });
        }
        Ok(())
    }
}

impl Simulated for requests::StopAlloc {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Stopping { eval: Some(_), .. } = reply else {
            return None;
        };
        let saved = facts.alloc(self.alloc);
        Some(saved.is_none_or(|saved| saved.desired.is_terminal() || saved.finished))
    }
}
