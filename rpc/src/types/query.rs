//! What a node asks: which allocations are its own, what they are, and what became of others.
//!
//! Reads may block: a server answers when its index is greater than `MinQueryIndex`, or after `MaxQueryTime`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::allocation::Allocation;
use super::identity::SignedWorkloadIdentity;
use super::node::Node;
use super::request;
use crate::msgpack::Secret;

/// Asks a server whether it is there. Needs neither region nor token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StatusPing {
    pub allow_stale: bool,
    pub auth_token: Secret,
    pub filter: String,
    pub forwarded: bool,
    pub max_query_time: i64,
    pub min_query_index: u64,
    pub namespace: String,
    pub next_token: String,
    pub per_page: i32,
    pub prefix: String,
    pub region: String,
    pub reverse: bool,
}

request!(StatusPing, "Status.Ping", Empty, idempotent);

/// An answer that says nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Empty {}

/// Which allocations are this node's, with the index of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeGetClientAllocs {
    pub allow_stale: bool,
    pub auth_token: Secret,
    pub filter: String,
    pub forwarded: bool,
    pub max_query_time: i64,
    pub min_query_index: u64,
    pub namespace: String,
    pub next_token: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub per_page: i32,
    pub prefix: String,
    pub region: String,
    pub reverse: bool,
    /// Servers before 2.0.1 want it; always send it.
    #[serde(rename = "SecretID")]
    pub secret_id: Secret,
}

request!(
    NodeGetClientAllocs,
    "Node.GetClientAllocs",
    NodeClientAllocs,
    idempotent
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

/// Asks for allocations in full.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocGetAllocs {
    #[serde(rename = "AllocIDs")]
    pub alloc_ids: Vec<String>,
    pub allow_stale: bool,
    pub auth_token: Secret,
    pub filter: String,
    pub forwarded: bool,
    pub max_query_time: i64,
    pub min_query_index: u64,
    pub namespace: String,
    pub next_token: String,
    pub per_page: i32,
    pub prefix: String,
    pub region: String,
    pub reverse: bool,
}

request!(AllocGetAllocs, "Alloc.GetAllocs", Allocations, idempotent);

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

/// Asks for one allocation, of whatever node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocGetAlloc {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub allow_stale: bool,
    pub auth_token: Secret,
    pub filter: String,
    pub forwarded: bool,
    pub max_query_time: i64,
    pub min_query_index: u64,
    pub namespace: String,
    pub next_token: String,
    pub per_page: i32,
    pub prefix: String,
    pub region: String,
    pub reverse: bool,
}

request!(AllocGetAlloc, "Alloc.GetAlloc", OneAllocation, idempotent);

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

/// Asks for one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeGetNode {
    pub allow_stale: bool,
    pub auth_token: Secret,
    pub filter: String,
    pub forwarded: bool,
    pub max_query_time: i64,
    pub min_query_index: u64,
    pub namespace: String,
    pub next_token: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub per_page: i32,
    pub prefix: String,
    pub region: String,
    pub reverse: bool,
    #[serde(rename = "SecretID")]
    pub secret_id: Secret,
}

request!(NodeGetNode, "Node.GetNode", OneNode, idempotent);

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
