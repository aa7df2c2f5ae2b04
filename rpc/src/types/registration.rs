//! Registration, heartbeats and events of the node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::node::{Node, NodeEvent};
use super::request;
use crate::msgpack::Secret;

/// Registers the node, or replaces what the servers know of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeRegister {
    pub auth_token: Secret,
    pub create_node_pool: bool,
    pub forwarded: bool,
    pub idempotency_token: String,
    pub namespace: String,
    pub node: Option<Box<Node>>,
    pub node_event: Option<NodeEvent>,
    pub region: String,
}

request!(NodeRegister, "Node.Register", NodeUpdateReply, idempotent);

/// A heartbeat: the node is in this status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeUpdateStatus {
    pub auth_token: Secret,
    pub force_identity_renewal: bool,
    pub forwarded: bool,
    pub idempotency_token: String,
    #[serde(rename = "IdentitySigningKeyID")]
    pub identity_signing_key_id: String,
    pub namespace: String,
    pub node_event: Option<NodeEvent>,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub region: String,
    pub status: String,
    pub updated_at: i64,
}

request!(
    NodeUpdateStatus,
    "Node.UpdateStatus",
    NodeUpdateReply,
    idempotent
);

/// The answer to a registration and to a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeUpdateReply {
    pub eval_create_index: u64,
    #[serde(rename = "EvalIDs")]
    pub eval_ids: Vec<String>,
    pub features: u64,
    /// Nanoseconds until the next heartbeat is due.
    #[serde(rename = "HeartbeatTTL")]
    pub heartbeat_ttl: i64,
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    #[serde(rename = "LeaderRPCAddr")]
    pub leader_rpc_addr: String,
    pub next_token: String,
    pub node_modify_index: u64,
    pub num_nodes: i32,
    pub scheduling_eligibility: String,
    /// The servers that there are: replaces the list that one had.
    pub servers: Vec<ServerInfo>,
    /// A new token of the node; `None`: keep what you have.
    pub signed_identity: Option<Secret>,
}

/// A server, as servers advertise it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ServerInfo {
    pub datacenter: String,
    #[serde(rename = "RPCAdvertiseAddr")]
    pub rpc_advertise_addr: String,
    #[serde(rename = "RPCMajorVersion")]
    pub rpc_major_version: i32,
    #[serde(rename = "RPCMinorVersion")]
    pub rpc_minor_version: i32,
}

/// Reports events of this node, by its id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeEmitEvents {
    pub auth_token: Secret,
    pub forwarded: bool,
    pub idempotency_token: String,
    pub namespace: String,
    pub node_events: BTreeMap<String, Vec<NodeEvent>>,
    pub region: String,
}

request!(
    NodeEmitEvents,
    "Node.EmitEvents",
    WriteReply,
    not_idempotent
);

/// The answer to a write that says nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct WriteReply {
    pub index: u64,
}
