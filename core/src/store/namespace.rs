//! What is remembered of a namespace that somebody made or described.

use serde::{Deserialize, Serialize};

use crate::model::namespace::Namespace;

/// The most namespaces that are made besides those of the configuration.
pub const MAX_NAMESPACES: usize = 1000;

/// A namespace that somebody made or described.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NamespaceRecord {
    /// What was said of it last.
    pub namespace: Namespace,
    /// The state's index when it was made.
    pub create_index: u64,
    /// The state's index of its last change.
    pub modify_index: u64,
}
