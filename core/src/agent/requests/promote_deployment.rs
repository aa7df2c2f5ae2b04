//! `deployment promote`: healthy canaries become copies as all others, and what they are to replace follows.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict};
use crate::effect::Reply;
use crate::ids::{DeploymentId, GroupName};
use crate::model::eval::Deployment;
use crate::scheduler::rollout::healthy_canaries;
use crate::store::record::AllocRecord;

/// Promote the canaries of a roll-out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PromoteDeployment {
    /// Which roll-out.
    pub deployment: DeploymentId,
    /// Of which groups; of all if none is named.
    pub groups: Vec<GroupName>,
}

impl OperatorRequest for PromoteDeployment {
    fn name(&self) -> &'static str {
        "promote"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Deployment(self.deployment)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let rollout = match asked.active_deployment(self.deployment, "promote") {
            Ok(rollout) => rollout,
            Err(refused) => return Some(refused),
        };
        let allocs = asked.agent.allocs_of_rollout(&rollout);
        let allocs: Vec<&AllocRecord> = allocs.map(|alloc| &**alloc.record()).collect();
        let groups = match self.promotable(&rollout, &allocs) {
            Ok(groups) => groups,
            Err(why) => return Some(conflict(&why)),
        };
        asked.agent.promote(asked.now, self.deployment, &groups);
        Some(asked.deployment_changed(&rollout.job, None))
    }
}

impl PromoteDeployment {
    /// The groups that are promoted.
    ///
    /// # Errors
    /// There is nothing to promote, or not all of it is healthy; in Nomad's words.
    pub fn promotable(
        &self,
        rollout: &Deployment,
        allocs: &[&AllocRecord],
    ) -> Result<Vec<GroupName>, String> {
        let asked = |name: &GroupName| self.groups.is_empty() || self.groups.contains(name);
        let groups: Vec<_> = rollout
            .unpromoted()
            .filter(|(name, _)| asked(name))
            .collect();
        if groups.is_empty() {
            return Err("no canaries to promote".to_owned());
        }
        for (name, group) in &groups {
            let (healthy, wanted) = (healthy_canaries(name, allocs), group.canaries);
            if healthy < wanted {
                return Err(format!(
                    "Task group \"{name}\" has {healthy}/{wanted} healthy allocations"
                ));
            }
        }
        Ok(groups.into_iter().map(|(name, _)| name.clone()).collect())
    }
}
