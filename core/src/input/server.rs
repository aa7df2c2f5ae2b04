//! What comes from the servers of the cluster.

use serde::{Deserialize, Serialize};

use crate::cluster::{Answer, CallError};
use crate::op::Op;

/// What comes from the servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ServerInput {
    /// A call was answered, or could not be made.
    Answered {
        /// The operation.
        op: Op,
        /// The answer, or why there is none.
        result: Result<Answer, CallError>,
    },
    /// The servers want the node to have a new identity.
    RenewIdentity,
}
