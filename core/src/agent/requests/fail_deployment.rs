//! `deployment fail`: a roll-out goes no further; with `auto_revert` the last stable version comes back.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject};
use crate::effect::Reply;
use crate::ids::DeploymentId;
use crate::model::eval::Trigger;

/// Mark a roll-out as failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FailDeployment {
    /// Which roll-out.
    pub deployment: DeploymentId,
}

impl OperatorRequest for FailDeployment {
    fn name(&self) -> &'static str {
        "fail"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Deployment(self.deployment)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let rollout = match asked.active_deployment(self.deployment, "fail") {
            Ok(rollout) => rollout,
            Err(refused) => return Some(refused),
        };
        let reverted = asked.agent.fail(asked.now, self.deployment);
        if reverted.is_none() {
            let trigger = Trigger::DeploymentWatcher;
            asked.agent.evaluate(asked.now, &rollout.job, trigger);
        }
        Some(asked.deployment_changed(&rollout.job, reverted))
    }
}
