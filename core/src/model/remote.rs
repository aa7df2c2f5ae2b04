//! Allocations of other nodes, as far as allocations of this one replace them ([`crate::alloc::remote`]).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AllocId, GroupName};
use crate::model::secret::Secret;

/// An allocation of another node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct RemotePrevious {
    /// Its id.
    pub alloc: AllocId,
    /// Where its node answers: `http://HOST:PORT` or `https://HOST:PORT`. Empty if that is asked of servers.
    pub address: Arc<str>,
    /// What its node wants to see before it gives away the disk. A secret.
    pub token: Secret,
    /// Whether it is known to have ended.
    pub ended: bool,
    /// Whether servers placed it: they know what became of it, and where it was.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub of_servers: bool,
}

/// Which copy of a group replaces an allocation of another node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Takeover {
    /// The group.
    pub group: GroupName,
    /// Which copy, from 0.
    pub index: u32,
    /// What it replaces.
    pub from: RemotePrevious,
}

/// What another node says of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Remote {
    /// It may still run. Ask again with this index: the answer comes when something changed.
    Runs {
        /// The other node's index.
        index: u64,
    },
    /// Nothing of it runs any more.
    Ended,
    /// The node knows nothing of it, or does not want to say.
    Unknown,
}
