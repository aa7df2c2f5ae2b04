//! What must outlive the agent of the node's life in a cluster.

use serde::{Deserialize, Serialize};

use crate::model::drain::Eligibility;
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
