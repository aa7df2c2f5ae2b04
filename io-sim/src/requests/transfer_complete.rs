//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// Another node has read the disk of an allocation: the n-th oldest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferComplete {
    /// Whose.
    pub job: String,
    /// Which; counted around.
    pub nth: usize,
}

impl ActKind for TransferComplete {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        if let Some(alloc) = sim.one_of(&self.job, Some(self.nth)) {
            sim.ask(requests::TransferComplete { alloc });
        }
        Ok(())
    }
}

impl Simulated for requests::TransferComplete {
    fn is_remembered(&self, _: Facts<'_>, _: &Reply) -> Option<bool> {
        None
    }
}
