//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::{Simulated, shown_version};
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A job goes back to an earlier version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertJob {
    /// Which.
    pub job: String,
    /// How many versions back.
    pub back: u64,
    /// Whether the latest version must be the one that is shown.
    pub checked: bool,
}

impl ActKind for RevertJob {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let job = sim.key_of(&self.job);
        let latest = shown_version(sim, &job);
        sim.ask(requests::RevertJob {
            job,
            version: latest.saturating_sub(self.back),
            expect_version: self.checked.then_some(latest),
        });
        Ok(())
    }
}

impl Simulated for requests::RevertJob {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        super::register::job_is_remembered(&self.job, facts, reply)
    }
}
