//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// An allocation is removed: the n-th oldest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectAlloc {
    /// Whose.
    pub job: String,
    /// Which; counted around.
    pub nth: usize,
}

impl ActKind for CollectAlloc {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        if let Some(alloc) = sim.one_of(&self.job, Some(self.nth)) {
            sim.ask(requests::CollectAlloc { alloc });
        }
        Ok(())
    }
}

impl Simulated for requests::CollectAlloc {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Done { .. } = reply else {
            return None;
        };
        Some(facts.alloc(self.alloc).is_none_or(|saved| saved.destroying))
    }
}
