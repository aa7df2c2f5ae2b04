//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::{Simulated, shown_version};
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// Somebody says whether a version of a job is stable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetStable {
    /// Which job.
    pub job: String,
    /// How many versions back.
    pub back: u64,
    /// Whether it is.
    pub stable: bool,
}

impl ActKind for SetStable {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let job = sim.key_of(&self.job);
        let version = shown_version(sim, &job).saturating_sub(self.back);
        sim.ask(requests::SetStable {
            job,
            version,
            stable: self.stable,
        });
        Ok(())
    }
}

impl Simulated for requests::SetStable {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Done { index } = reply else {
            return None;
        };
        Some(match facts.job(&self.job) {
            Some(saved) => saved.job.modify_index >= *index,
            None => facts.replies.may_forget(&self.job),
        })
    }
}
