//! An allocation as servers send it, without what only schedulers read (metrics, deprecated copies
//! of resources). Empty fields are left out when it is written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::job::Job;
use super::network::{AllocatedPortMapping, Dns, NetworkResource};
use super::task::Lifecycle;
use super::update::TaskState;
use crate::msgpack::{Secret, Time};

/// An allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Allocation {
    /// Moves with changes by servers only: compare this one.
    pub alloc_modify_index: u64,
    pub allocated_resources: Option<AllocatedResources>,
    pub client_description: String,
    pub client_status: String,
    pub create_index: u64,
    pub create_time: i64,
    #[serde(rename = "DeploymentID")]
    pub deployment_id: String,
    pub deployment_status: Option<DeploymentStatus>,
    pub desired_description: String,
    /// `run`, `stop` or `evict`: the only order to stop.
    pub desired_status: String,
    pub desired_transition: DesiredTransition,
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    #[serde(rename = "FollowupEvalID")]
    pub followup_eval_id: String,
    #[serde(rename = "ID")]
    pub id: String,
    /// The job in full, as of the version that was placed.
    pub job: Option<Box<Job>>,
    #[serde(rename = "JobID")]
    pub job_id: String,
    /// Moves with reports of clients, too.
    pub modify_index: u64,
    pub modify_time: i64,
    pub name: String,
    pub namespace: String,
    pub network_status: Option<NetworkStatus>,
    pub next_allocation: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub node_name: String,
    pub preempted_allocations: Vec<String>,
    pub previous_allocation: String,
    pub reschedule_tracker: Option<RescheduleTracker>,
    /// The default identity of each task.
    pub signed_identities: BTreeMap<String, Secret>,
    #[serde(rename = "SigningKeyID")]
    pub signing_key_id: String,
    pub task_group: String,
    pub task_states: BTreeMap<String, TaskState>,
}

/// Hints of the scheduler; only `NoShutdownDelay` is for the client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct DesiredTransition {
    pub force_reschedule: Option<bool>,
    pub migrate: Option<bool>,
    pub migrate_disable_placement: Option<bool>,
    pub no_shutdown_delay: Option<bool>,
    pub reschedule: Option<bool>,
}

/// Whether the allocation is healthy, for its deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct DeploymentStatus {
    pub canary: bool,
    pub healthy: Option<bool>,
    pub modify_index: u64,
    pub timestamp: Time,
}

/// The address of an allocation with a network of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NetworkStatus {
    pub address: String,
    #[serde(rename = "AddressIPv6")]
    pub address_ipv6: String,
    #[serde(rename = "DNS")]
    pub dns: Option<Dns>,
    pub interface_name: String,
}

/// How often, when and from where it was rescheduled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct RescheduleTracker {
    pub events: Vec<RescheduleEvent>,
    pub last_reschedule: String,
}

/// One of those times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct RescheduleEvent {
    pub delay: i64,
    #[serde(rename = "PrevAllocID")]
    pub prev_alloc_id: String,
    #[serde(rename = "PrevNodeID")]
    pub prev_node_id: String,
    pub reschedule_time: i64,
}

/// What the allocation was given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocatedResources {
    pub shared: AllocatedShared,
    pub task_lifecycles: BTreeMap<String, Option<Lifecycle>>,
    pub tasks: BTreeMap<String, AllocatedTask>,
}

/// What one task was given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocatedTask {
    pub cpu: AllocatedCpu,
    pub devices: Vec<AllocatedDevice>,
    pub memory: AllocatedMemory,
    pub networks: Vec<NetworkResource>,
}

/// What its tasks share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocatedShared {
    #[serde(rename = "DiskMB")]
    pub disk_mb: i64,
    pub networks: Vec<NetworkResource>,
    pub ports: Vec<AllocatedPortMapping>,
}

/// MHz, and cores of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocatedCpu {
    pub cpu_shares: i64,
    pub reserved_cores: Vec<u16>,
}

/// Memory; the maximum is 0 without oversubscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocatedMemory {
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i64,
    #[serde(rename = "MemoryMaxMB")]
    pub memory_max_mb: i64,
}

/// Devices by their ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocatedDevice {
    #[serde(rename = "DeviceIDs")]
    pub device_ids: Vec<String>,
    pub name: String,
    pub r#type: String,
    pub vendor: String,
}
