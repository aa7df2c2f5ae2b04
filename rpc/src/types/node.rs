//! A node as it registers: what the scheduler reads of it.
//!
//! A registration replaces the whole node: a field left out is erased.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::network::NetworkResource;
use super::node_resources::{
    LegacyCpu, NodeDeviceGroup, NodeDisk, NodeMemory, NodeNetwork, Processors, ReservedCpu,
    ReservedDisk, ReservedMemory, ReservedNetworks,
};
use crate::msgpack::{Secret, Time, Value};

/// A node. Its status and eligibility are the servers', whatever a registration says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Node {
    pub attributes: BTreeMap<String, String>,
    #[serde(rename = "CSIControllerPlugins")]
    pub csi_controller_plugins: BTreeMap<String, Value>,
    #[serde(rename = "CSINodePlugins")]
    pub csi_node_plugins: BTreeMap<String, Value>,
    pub cgroup_parent: String,
    pub computed_class: String,
    pub create_index: u64,
    pub datacenter: String,
    pub drain_strategy: Option<DrainStrategy>,
    pub drivers: BTreeMap<String, DriverInfo>,
    pub events: Vec<NodeEvent>,
    #[serde(rename = "GCVolumesOnNodeGC")]
    pub gc_volumes_on_node_gc: bool,
    #[serde(rename = "HTTPAddr")]
    pub http_addr: String,
    pub host_networks: BTreeMap<String, HostNetwork>,
    pub host_volumes: BTreeMap<String, HostVolume>,
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "IdentitySigningKeyID")]
    pub identity_signing_key_id: String,
    pub last_alloc_update_index: u64,
    pub last_drain: Option<DrainMetadata>,
    pub last_missed_heartbeat_index: u64,
    pub links: BTreeMap<String, String>,
    pub meta: BTreeMap<String, String>,
    pub modify_index: u64,
    pub name: String,
    pub node_class: String,
    pub node_max_allocs: i64,
    pub node_pool: String,
    pub node_resources: Option<NodeResources>,
    pub reserved_resources: Option<ReservedResources>,
    pub scheduling_eligibility: String,
    #[serde(rename = "SecretID")]
    pub secret_id: Secret,
    pub status: String,
    pub status_description: String,
    pub status_updated_at: i64,
    #[serde(rename = "TLSEnabled")]
    pub tls_enabled: bool,
}

/// How the node is being drained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct DrainStrategy {
    pub deadline: i64,
    pub force_deadline: Time,
    pub ignore_system_jobs: bool,
    pub started_at: Time,
}

/// Who drained the node last, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct DrainMetadata {
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    pub meta: BTreeMap<String, String>,
    pub started_at: Time,
    pub status: String,
    pub updated_at: Time,
}

/// What is known of one task driver. It must be detected *and* healthy to be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct DriverInfo {
    pub attributes: BTreeMap<String, String>,
    pub detected: bool,
    pub health_description: String,
    pub healthy: bool,
    pub update_time: Time,
}

/// Something that happened to the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeEvent {
    pub create_index: u64,
    pub details: BTreeMap<String, String>,
    pub message: String,
    pub subsystem: String,
    pub timestamp: Time,
}

/// A directory that jobs can mount; a static one has an empty id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostVolume {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    pub path: String,
    pub read_only: bool,
}

/// A named network of the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostNetwork {
    #[serde(rename = "CIDR")]
    pub cidr: String,
    pub interface: String,
    pub name: String,
    pub reserved_ports: String,
}

/// What the node has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeResources {
    pub cpu: LegacyCpu,
    pub devices: Vec<NodeDeviceGroup>,
    pub disk: NodeDisk,
    pub max_dynamic_port: i64,
    pub memory: NodeMemory,
    pub min_dynamic_port: i64,
    pub networks: Vec<NetworkResource>,
    pub node_networks: Vec<NodeNetwork>,
    pub processors: Processors,
}

/// What of it is not for allocations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ReservedResources {
    pub cpu: ReservedCpu,
    pub disk: ReservedDisk,
    pub memory: ReservedMemory,
    pub networks: ReservedNetworks,
}
