//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// Every job of the node is evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluateNode;

impl ActKind for EvaluateNode {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.ask(requests::EvaluateNode);
        Ok(())
    }
}

impl Simulated for requests::EvaluateNode {
    fn is_remembered(&self, _: Facts<'_>, _: &Reply) -> Option<bool> {
        None
    }
}
