//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::model::drain::Eligibility;
use drover_core::store::node::NodeRecord;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// The node takes new allocations, or does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetEligibility {
    /// Whether it does.
    pub eligibility: Eligibility,
}

impl ActKind for SetEligibility {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let eligibility = self.eligibility;
        sim.ask(requests::SetEligibility { eligibility });
        Ok(())
    }
}

impl Simulated for requests::SetEligibility {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        // Nothing was done where there is no index.
        let Reply::NodeChanged {
            index: index @ 1.., ..
        } = reply
        else {
            return None;
        };
        let holds =
            |node: &NodeRecord| node.eligibility == self.eligibility || node.modify_index > *index;
        Some(facts.node().is_some_and(holds))
    }
}
