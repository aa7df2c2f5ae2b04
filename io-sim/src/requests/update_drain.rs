//! See the core's request of the same name.

use std::collections::BTreeMap;

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::model::drain::DrainSpec;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// The node is drained, or not any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateDrain {
    /// How; none to drain it no more.
    pub spec: Option<DrainSpec>,
    /// Whether it takes new allocations when it is drained no more.
    pub mark_eligible: bool,
}

impl ActKind for UpdateDrain {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.ask(requests::UpdateDrain {
            spec: self.spec,
            mark_eligible: self.mark_eligible,
            meta: BTreeMap::new(),
        });
        Ok(())
    }
}

impl Simulated for requests::UpdateDrain {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::NodeChanged { index, .. } = reply else {
            return None;
        };
        let Some(node) = facts.node() else {
            return Some(self.spec.is_none());
        };
        let same = node.drain.map(|drain| drain.spec) == self.spec;
        Some(same || node.modify_index > *index)
    }
}
