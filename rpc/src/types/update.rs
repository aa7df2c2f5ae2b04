//! What a node reports of its allocations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::allocation::{DeploymentStatus, NetworkStatus};
use super::registration::WriteReply;
use super::request;
use crate::msgpack::{Secret, Time, Value};

/// Reports allocations. All but the deployment status is overwritten, by empty values, too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeUpdateAlloc {
    pub alloc: Vec<AllocUpdate>,
    pub auth_token: Secret,
    /// Must be empty.
    pub evals: Vec<Value>,
    pub forwarded: bool,
    pub idempotency_token: String,
    pub namespace: String,
    pub region: String,
}

request!(NodeUpdateAlloc, "Node.UpdateAlloc", WriteReply, idempotent);

/// The parts of an allocation that servers take from a client; empty ones are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocUpdate {
    pub client_description: String,
    pub client_status: String,
    pub deployment_status: Option<DeploymentStatus>,
    #[serde(rename = "ID")]
    pub id: String,
    pub network_status: Option<NetworkStatus>,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub task_states: BTreeMap<String, TaskState>,
}

/// The state of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TaskState {
    pub events: Vec<TaskEvent>,
    pub failed: bool,
    pub finished_at: Time,
    pub last_restart: Time,
    pub paused: String,
    pub restarts: u64,
    pub started_at: Time,
    /// `pending`, `running` or `dead`.
    pub state: String,
}

/// Something that happened to a task. Beside type, time, message and details, the fields are of old versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TaskEvent {
    pub details: BTreeMap<String, String>,
    pub disk_limit: i64,
    pub display_message: String,
    pub download_error: String,
    pub driver_error: String,
    pub driver_message: String,
    pub exit_code: i64,
    pub failed_sibling: String,
    pub fails_task: bool,
    pub generic_source: String,
    pub kill_error: String,
    pub kill_reason: String,
    pub kill_timeout: i64,
    pub message: String,
    pub restart_reason: String,
    pub setup_error: String,
    pub signal: i64,
    pub start_delay: i64,
    pub task_signal: String,
    pub task_signal_reason: String,
    /// Nanoseconds since 1970.
    pub time: i64,
    pub r#type: String,
    pub validation_error: String,
    pub vault_error: String,
}
