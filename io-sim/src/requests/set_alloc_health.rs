//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::{Simulated, deployment_is_remembered, shown_deployment};
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// Somebody says of the allocations of a job's roll-out how they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAllocHealth {
    /// Which job.
    pub job: String,
    /// Whether they are healthy.
    pub healthy: bool,
}

impl ActKind for SetAllocHealth {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let key = sim.key_of(&self.job);
        let deployment = shown_deployment(sim, &key);
        let allocs = sim.view().into_iter().flat_map(|view| view.allocs_of(&key));
        let allocs = allocs.map(|alloc| alloc.record());
        let allocs = allocs.filter(|alloc| alloc.deployment == Some(deployment));
        let ids: Vec<_> = allocs.map(|alloc| alloc.id).collect();
        let (healthy, unhealthy) = match self.healthy {
            true => (ids, Vec::new()),
            false => (Vec::new(), ids),
        };
        sim.ask(requests::SetAllocHealth {
            deployment,
            healthy,
            unhealthy,
        });
        Ok(())
    }
}

impl Simulated for requests::SetAllocHealth {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        deployment_is_remembered(self.deployment, facts, reply)
    }
}
