//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A periodic job is launched by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcePeriodic {
    /// Which.
    pub job: String,
}

impl ActKind for ForcePeriodic {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let job = sim.key_of(&self.job);
        sim.ask(requests::ForcePeriodic { job });
        Ok(())
    }
}

impl Simulated for requests::ForcePeriodic {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Dispatched { job, .. } = reply else {
            return None;
        };
        Some(match facts.job(job) {
            Some(saved) => *saved.job.parent_id == *self.job.id,
            None => facts.replies.may_forget(job),
        })
    }
}
