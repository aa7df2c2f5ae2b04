//! What people decided about this node, which must outlive the agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::drain::{DrainStrategy, Eligibility, LastDrain};
use crate::model::placement::PlacementFailure;
use crate::model::scheduler::SchedulerRecord;

/// The most keys that a node has besides those of its configuration, or instead of them.
pub const MAX_META: usize = 1000;

/// What people decided about this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeRecord {
    /// Whether it takes new allocations.
    pub eligibility: Eligibility,
    /// The drain that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainStrategy>,
    /// The last drain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_drain: Option<LastDrain>,
    /// Values that the operator's keys have instead of those of the configuration; none for a key that the node
    /// does not have though its configuration names it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, Option<String>>,
    /// How jobs are taken in and placed, if somebody set it while the agent ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerRecord>,
    /// The state's index of its last change; 0 if there was none.
    pub modify_index: u64,
}

impl NodeRecord {
    /// Why nothing new is placed on this node, if so.
    pub fn refusal(&self) -> Option<PlacementFailure> {
        match (self.eligibility, &self.drain) {
            (_, Some(_)) => Some(PlacementFailure::Draining),
            (Eligibility::Ineligible, None) => Some(PlacementFailure::Ineligible),
            (Eligibility::Eligible, None) => None,
        }
    }
}
