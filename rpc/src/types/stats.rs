//! Statistics that servers ask for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::inbound_request;
use crate::msgpack::{Secret, Time};

/// Asks for statistics of the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ClientStatsStats {
    pub auth_token: Secret,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
}

inbound_request!(ClientStatsStats, "ClientStats.Stats", ClientStats);

/// Statistics of the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ClientStats {
    pub host_stats: Option<HostStats>,
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
}

/// Statistics of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostStats {
    pub alloc_dir_stats: Option<HostDisk>,
    #[serde(rename = "CPU")]
    pub cpu: Vec<HostCpu>,
    #[serde(rename = "CPUTicksConsumed")]
    pub cpu_ticks_consumed: f64,
    pub device_stats: Vec<DeviceGroupStats>,
    pub disk_stats: Vec<HostDisk>,
    pub memory: Option<HostMemory>,
    /// Nanoseconds since 1970.
    pub timestamp: i64,
    /// Seconds.
    pub uptime: u64,
}

/// Asks for statistics of an allocation, or of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocationsStats {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub auth_token: Secret,
    pub namespace: String,
    pub task: String,
}

inbound_request!(AllocationsStats, "Allocations.Stats", AllocStats);

/// Statistics of an allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocStats {
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
    pub stats: Option<AllocResourceUsage>,
}

/// What it uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocResourceUsage {
    pub resource_usage: Option<ResourceUsage>,
    pub tasks: BTreeMap<String, TaskResourceUsage>,
    pub timestamp: i64,
}

/// What a task uses, and each of its processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TaskResourceUsage {
    pub pids: BTreeMap<String, ResourceUsage>,
    pub resource_usage: Option<ResourceUsage>,
    pub timestamp: i64,
}

/// Usage of processor, memory and devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ResourceUsage {
    pub cpu_stats: Option<CpuUsage>,
    pub device_stats: Vec<DeviceGroupStats>,
    pub memory_stats: Option<MemoryUsage>,
}

/// Usage of the processor; `measured` names the fields that were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CpuUsage {
    pub measured: Vec<String>,
    pub percent: f64,
    pub system_mode: f64,
    pub throttled_periods: u64,
    pub throttled_time: u64,
    pub total_ticks: f64,
    pub user_mode: f64,
}

/// Usage of memory, in bytes; `measured` names the fields that were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct MemoryUsage {
    pub cache: u64,
    pub kernel_max_usage: u64,
    pub kernel_usage: u64,
    pub mapped_file: u64,
    pub max_usage: u64,
    pub measured: Vec<String>,
    #[serde(rename = "RSS")]
    pub rss: u64,
    pub swap: u64,
    pub usage: u64,
}

/// Memory of the machine, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostMemory {
    pub available: u64,
    pub free: u64,
    pub total: u64,
    pub used: u64,
}

/// One processor, in percent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostCpu {
    #[serde(rename = "CPU")]
    pub cpu: String,
    pub idle: f64,
    pub system: f64,
    pub total_percent: f64,
    pub total_ticks: f64,
    pub user: f64,
}

/// One disk, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostDisk {
    pub available: u64,
    pub device: String,
    pub inodes_used_percent: f64,
    pub mountpoint: String,
    pub size: u64,
    pub used: u64,
    pub used_percent: f64,
}

/// Devices of one kind, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct DeviceGroupStats {
    pub instance_stats: BTreeMap<String, DeviceStats>,
    pub name: String,
    pub r#type: String,
    pub vendor: String,
}

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct DeviceStats {
    pub stats: Option<StatObject>,
    pub summary: Option<StatValue>,
    pub timestamp: Time,
}

/// What a plugin tells of a device: values by name, and more of the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StatObject {
    pub attributes: BTreeMap<String, StatValue>,
    pub nested: BTreeMap<String, StatObject>,
}

/// A value. What it is not is nil.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StatValue {
    pub bool_val: Option<bool>,
    pub desc: String,
    pub float_denominator_val: Option<f64>,
    pub float_numerator_val: Option<f64>,
    pub int_denominator_val: Option<i64>,
    pub int_numerator_val: Option<i64>,
    pub string_val: Option<String>,
    pub unit: String,
}
