//! `deployment pause` and `deployment resume`: nothing more of a roll-out is started, until it goes on.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject};
use crate::effect::Reply;
use crate::ids::DeploymentId;
use crate::model::eval::Trigger;

/// Pause a roll-out, or let it go on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PauseDeployment {
    /// Which roll-out.
    pub deployment: DeploymentId,
    /// Whether it is paused.
    pub pause: bool,
}

impl OperatorRequest for PauseDeployment {
    fn name(&self) -> &'static str {
        if self.pause { "pause" } else { "resume" }
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Deployment(self.deployment)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let rollout = match asked.active_deployment(self.deployment, self.name()) {
            Ok(rollout) => rollout,
            Err(refused) => return Some(refused),
        };
        asked.agent.pause(asked.now, self.deployment, self.pause);
        let trigger = Trigger::DeploymentWatcher;
        asked.agent.evaluate(asked.now, &rollout.job, trigger);
        Some(asked.deployment_changed(&rollout.job, None))
    }
}
