//! What servers ask of the machine of a node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::inbound_request;
use crate::msgpack::Secret;

/// Asks for facts of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AgentHost {
    pub auth_token: Secret,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
}

inbound_request!(AgentHost, "Agent.Host", AgentHostReply);

/// They, and whose they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AgentHostReply {
    #[serde(rename = "AgentID")]
    pub agent_id: String,
    pub host_data: Option<HostData>,
}

/// Facts of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostData {
    /// By directory.
    pub disk: BTreeMap<String, DiskSpace>,
    pub environment: BTreeMap<String, String>,
    /// Its file `hosts`.
    pub hosts: String,
    pub network: Vec<BTreeMap<String, String>>,
    #[serde(rename = "OS")]
    pub os: String,
    /// Its file `resolv.conf`.
    pub resolv_conf: String,
}

/// A disk, in MiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct DiskSpace {
    #[serde(rename = "DiskMB")]
    pub disk_mb: i64,
    #[serde(rename = "UsedMB")]
    pub used_mb: i64,
}
