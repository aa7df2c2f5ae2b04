//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::{Simulated, deployment_is_remembered, shown_deployment};
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// The canaries of a job are promoted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromoteDeployment {
    /// Which job.
    pub job: String,
}

impl ActKind for PromoteDeployment {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let deployment = shown_deployment(sim, &sim.key_of(&self.job));
        sim.ask(requests::PromoteDeployment {
            deployment,
            groups: Vec::new(),
        });
        Ok(())
    }
}

impl Simulated for requests::PromoteDeployment {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        deployment_is_remembered(self.deployment, facts, reply)
    }
}
