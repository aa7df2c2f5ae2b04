//! Somebody says of allocations of a roll-out whether they are healthy: what `health_check = "manual"` waits for.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict};
use crate::effect::Reply;
use crate::ids::{AllocId, DeploymentId};
use crate::model::eval::Trigger;

/// Say which allocations of a roll-out are healthy and which are not.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SetAllocHealth {
    /// Which roll-out.
    pub deployment: DeploymentId,
    /// Those that are.
    pub healthy: Vec<AllocId>,
    /// Those that are not.
    pub unhealthy: Vec<AllocId>,
}

impl OperatorRequest for SetAllocHealth {
    fn name(&self) -> &'static str {
        "set health of"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Deployment(self.deployment)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let words = "set health of allocations for";
        let rollout = match asked.active_deployment(self.deployment, words) {
            Ok(rollout) => rollout,
            Err(refused) => return Some(refused),
        };
        let ids: Vec<AllocId> = {
            let allocs = asked.agent.allocs_of_rollout(&rollout);
            allocs.map(|alloc| alloc.record().id).collect()
        };
        let mut all = self.healthy.iter().chain(&self.unhealthy);
        if let Some(other) = all.find(|id| !ids.contains(id)) {
            return Some(conflict(&format!(
                "allocation {other} is not part of the deployment"
            )));
        }
        asked.agent.set_health(asked.now, &self.healthy, true);
        asked.agent.set_health(asked.now, &self.unhealthy, false);
        let trigger = Trigger::DeploymentWatcher;
        asked.agent.evaluate(asked.now, &rollout.job, trigger);
        Some(asked.deployment_changed(&rollout.job, None))
    }
}
