//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// Another node takes over a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOver {
    /// Which.
    pub job: String,
}

impl ActKind for HandOver {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.hand_over(&self.job);
        Ok(())
    }
}

impl Simulated for requests::HandOver {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::HandedOver(slots) = reply else {
            return None;
        };
        Some(slots.iter().all(|(slot, alloc)| {
            let goes = (facts.alloc(*alloc)).is_none_or(|saved| saved.destroying);
            goes || (facts.disk(slot)).is_some_and(|disk| disk.lease.is_some())
        }))
    }
}
