//! What a node asks: which allocations are its own, what they are, and what became of others.
//!
//! Reads may block: a server answers when its index is greater than `MinQueryIndex`, or after `MaxQueryTime`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::allocation::Allocation;
use super::identity::SignedWorkloadIdentity;
use super::node::Node;
use super::question;
use crate::msgpack::Secret;

question!(
    /// Asks a server whether it is there. Needs neither region nor token.
    StatusPing,
    "Status.Ping",
    Empty
);

/// An answer that says nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Empty {}

question!(
    /// Which allocations are this node's, with the index of each.
    NodeGetClientAllocs,
    "Node.GetClientAllocs",
    NodeClientAllocs,
    after_next_token {
        #[serde(rename = "NodeID")]
        pub node_id: String,
    },
    last {
        /// Servers before 2.0.1 want it; always send it.
        #[serde(rename = "SecretID")]
        pub secret_id: Secret,
    }
);

/// The allocations of a node by id. One that is missing was garbage collected by the servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeClientAllocs {
    /// The `AllocModifyIndex` of each allocation.
    pub allocs: BTreeMap<String, u64>,
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    /// For allocations whose disk is on another node.
    pub migrate_tokens: BTreeMap<String, Secret>,
    pub next_token: String,
}

question!(
    /// Asks for allocations in full.
    AllocGetAllocs,
    "Alloc.GetAllocs",
    Allocations,
    first {
        #[serde(rename = "AllocIDs")]
        pub alloc_ids: Vec<String>,
    }
);

/// Allocations in full; ids that are not known are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Allocations {
    pub allocs: Vec<Allocation>,
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
    pub signed_identities: Vec<SignedWorkloadIdentity>,
}

question!(
    /// Asks for one allocation, of whatever node.
    AllocGetAlloc,
    "Alloc.GetAlloc",
    OneAllocation,
    first {
        #[serde(rename = "AllocID")]
        pub alloc_id: String,
    }
);

/// One allocation, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct OneAllocation {
    pub alloc: Option<Box<Allocation>>,
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
}

question!(
    /// Asks for one node.
    NodeGetNode,
    "Node.GetNode",
    OneNode,
    after_next_token {
        #[serde(rename = "NodeID")]
        pub node_id: String,
    },
    last {
        #[serde(rename = "SecretID")]
        pub secret_id: Secret,
    }
);

/// One node, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct OneNode {
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
    pub node: Option<Box<Node>>,
}
