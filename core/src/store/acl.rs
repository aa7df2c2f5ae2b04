//! What is remembered of policies and tokens of the API.

use serde::{Deserialize, Serialize};

use crate::model::acl::{AclPolicy, AclToken};

/// The most policies.
pub const MAX_POLICIES: usize = 1_000;
/// The most tokens.
pub const MAX_TOKENS: usize = 10_000;

/// A policy that somebody made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct AclPolicyRecord {
    /// What was said of it last.
    pub policy: AclPolicy,
    /// The state's index when it was made.
    pub create_index: u64,
    /// The state's index of its last change.
    pub modify_index: u64,
}

/// A token that somebody made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct AclTokenRecord {
    /// What was said of it last.
    pub token: AclToken,
    /// The state's index when it was made.
    pub create_index: u64,
    /// The state's index of its last change.
    pub modify_index: u64,
}

/// The first token was made, without anybody's leave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct AclBootstrapRecord {
    /// The state's index when it was.
    pub index: u64,
}
