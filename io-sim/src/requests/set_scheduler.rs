//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::model::scheduler::SchedulerConfig;
use drover_core::store::node::NodeRecord;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// Jobs are taken in and placed in another way from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetScheduler {
    /// How.
    pub config: SchedulerConfig,
}

impl ActKind for SetScheduler {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.ask(requests::SetScheduler {
            config: self.config,
            expect_index: None,
        });
        Ok(())
    }
}

impl Simulated for requests::SetScheduler {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        // Nothing was done where there is no index.
        let Reply::NodeChanged {
            index: index @ 1.., ..
        } = reply
        else {
            return None;
        };
        let holds = |node: &NodeRecord| {
            let set = node.scheduler.is_some_and(|set| set.config == self.config);
            set || node.modify_index > *index
        };
        Some(facts.node().is_some_and(holds))
    }
}
