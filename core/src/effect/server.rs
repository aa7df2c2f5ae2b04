//! What is asked of those who reach the servers of the cluster.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::{Call, Credentials};
use crate::op::Op;

/// What is asked of those who reach the servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ServerEffect {
    /// Make this call at one of the servers. Answer with [`crate::input::ServerInput::Answered`].
    Call {
        /// The operation.
        op: Op,
        /// By what the servers know the node.
        credentials: Credentials,
        /// The call.
        call: Call,
    },
    /// The answer to a call is no longer wanted.
    Cancel {
        /// The operation.
        op: Op,
    },
    /// These are the servers from now on, instead of those that were known. No answer is awaited.
    Servers(Vec<Arc<str>>),
}

impl ServerEffect {
    /// The operation, if it has a number.
    pub fn op(&self) -> Option<Op> {
        match self {
            ServerEffect::Call { op, .. } | ServerEffect::Cancel { op } => Some(*op),
            ServerEffect::Servers(_) => None,
        }
    }
}
