//! The parts of a node's resources.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::msgpack::Raw;

/// The processor as servers before 1.7 read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct LegacyCpu {
    pub cpu_shares: i64,
    pub reservable_cpu_cores: Vec<u16>,
    pub total_cpu_cores: u16,
}

/// The processor as servers since 1.7 read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Processors {
    pub topology: Option<Topology>,
}

/// The cores and how they lie. A server needs at least one core, even with an override.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Topology {
    pub bus_associativity: BTreeMap<String, u8>,
    pub cores: Vec<Core>,
    pub distances: Vec<Raw>,
    /// The numbers of the NUMA nodes, one byte each.
    pub nodes: Raw,
    pub override_total_compute: u64,
    /// MHz; spelled as Nomad spells it.
    pub override_withold_compute: u64,
}

/// One core; its speeds are in MHz.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Core {
    pub base_speed: u64,
    pub disable: bool,
    /// Whether it is a performance core.
    pub grade: bool,
    pub guess_speed: u64,
    #[serde(rename = "ID")]
    pub id: u16,
    pub max_speed: u64,
    #[serde(rename = "NodeID")]
    pub node_id: u8,
    #[serde(rename = "SocketID")]
    pub socket_id: u8,
}

/// The memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeMemory {
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i64,
}

/// The disk space for allocations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeDisk {
    #[serde(rename = "DiskMB")]
    pub disk_mb: i64,
}

/// Devices of one vendor, type and name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeDeviceGroup {
    pub attributes: BTreeMap<String, DeviceAttribute>,
    pub instances: Vec<NodeDevice>,
    pub name: String,
    pub r#type: String,
    pub vendor: String,
}

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeDevice {
    pub health_description: String,
    pub healthy: bool,
    #[serde(rename = "ID")]
    pub id: String,
    pub locality: Option<DeviceLocality>,
}

/// Where a device is attached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct DeviceLocality {
    #[serde(rename = "PciBusID")]
    pub pci_bus_id: String,
}

/// An attribute of a device: one of the four, and its unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct DeviceAttribute {
    pub bool: Option<bool>,
    pub float: Option<f64>,
    pub int: Option<i64>,
    pub string: Option<String>,
    pub unit: String,
}

/// The addresses of one interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeNetwork {
    pub addresses: Vec<NodeNetworkAddress>,
    pub device: String,
    pub mac_address: String,
    pub mode: String,
    pub speed: i64,
}

/// One address; ports without a host network use the alias `default`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeNetworkAddress {
    pub address: String,
    pub alias: String,
    pub family: String,
    pub gateway: String,
    pub reserved_ports: String,
}

/// MHz and cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ReservedCpu {
    pub cpu_shares: i64,
    pub reserved_cpu_cores: Vec<u16>,
}

/// Memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ReservedMemory {
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i64,
}

/// Disk space.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ReservedDisk {
    #[serde(rename = "DiskMB")]
    pub disk_mb: i64,
}

/// Ports, such as `22,80-90`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ReservedNetworks {
    pub reserved_host_ports: String,
}
