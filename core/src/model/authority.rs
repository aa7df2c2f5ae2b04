//! To whom a node turns for what belongs to an allocation.

use serde::{Deserialize, Serialize};

/// Who placed an allocation: that signs the identities of its tasks, and has the variables and services that its
/// templates read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Authority {
    /// This node, on its own.
    #[default]
    Node,
    /// The servers of the cluster.
    Servers,
}

impl Authority {
    /// Whether it is this node.
    pub fn is_node(&self) -> bool {
        *self == Authority::Node
    }
}
