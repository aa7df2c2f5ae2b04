//! What must outlive the agent of the node's life in a cluster.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::alloc::ClientStatus;
use crate::model::drain::Eligibility;
use crate::model::job::Job;
use crate::model::secret::Secret;

/// What the servers know of this node, as far as the next agent has to know it: not what was registered, which is
/// registered again, and not the servers, of which the configuration names some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerRecord {
    /// Whether the node was registered: its secret is known to the servers, and heartbeats are awaited.
    pub registered: bool,
    /// Whether the node gets new allocations, as the servers said last.
    pub eligibility: Option<Eligibility>,
    /// The identity that servers signed for the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Secret>,
}

/// Of an allocation that servers placed here, what its own record does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PlacedRecord {
    /// Its job, in the version that it runs.
    pub job: Arc<Job>,
    /// The servers' index of their last change to it that was followed here.
    pub modify_index: u64,
}

/// What servers acknowledged last of an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedRecord {
    /// The index of its record then.
    pub modify_index: u64,
    /// Its status then.
    pub status: ClientStatus,
}
