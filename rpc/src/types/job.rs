//! A job and its groups, without what only schedulers read. Durations are nanoseconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::network::NetworkResource;
use super::service::Service;
use super::task::Task;
use crate::msgpack::{Raw, Value};

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Job {
    pub consul_namespace: String,
    pub create_index: u64,
    pub datacenters: Vec<String>,
    pub dispatched: bool,
    #[serde(rename = "ID")]
    pub id: String,
    pub job_modify_index: u64,
    pub meta: BTreeMap<String, String>,
    pub modify_index: u64,
    pub name: String,
    pub namespace: String,
    pub node_pool: String,
    pub parameterized_job: Option<ParameterizedJob>,
    #[serde(rename = "ParentID")]
    pub parent_id: String,
    pub payload: Raw,
    pub priority: i64,
    pub region: String,
    pub status: String,
    pub stop: bool,
    pub submit_time: i64,
    pub task_groups: Vec<TaskGroup>,
    pub r#type: String,
    pub update: UpdateStrategy,
    pub vault_namespace: String,
    pub version: u64,
}

/// What a dispatch must and may bring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ParameterizedJob {
    pub meta_optional: Vec<String>,
    pub meta_required: Vec<String>,
    pub payload: String,
}

/// How an update is rolled out, and when an allocation counts as healthy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct UpdateStrategy {
    pub auto_promote: bool,
    pub auto_revert: bool,
    pub canary: i64,
    pub health_check: String,
    pub healthy_deadline: i64,
    pub max_parallel: i64,
    pub min_healthy_time: i64,
    pub progress_deadline: i64,
    pub stagger: i64,
}

/// A group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TaskGroup {
    pub count: i64,
    pub disconnect: Option<Disconnect>,
    pub ephemeral_disk: Option<EphemeralDisk>,
    pub max_client_disconnect: Option<i64>,
    /// Since 2.0.5.
    pub max_run_duration: Option<i64>,
    pub meta: BTreeMap<String, String>,
    pub migrate: Option<MigrateStrategy>,
    pub name: String,
    pub networks: Vec<NetworkResource>,
    pub prevent_reschedule_on_lost: bool,
    pub reschedule_policy: Option<ReschedulePolicy>,
    pub restart_policy: Option<RestartPolicy>,
    pub services: Vec<Service>,
    pub shutdown_delay: Option<i64>,
    pub stop_after_client_disconnect: Option<i64>,
    pub tasks: Vec<Task>,
    pub update: Option<UpdateStrategy>,
    pub volumes: BTreeMap<String, VolumeRequest>,
}

/// The disk that tasks share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct EphemeralDisk {
    pub migrate: bool,
    #[serde(rename = "SizeMB")]
    pub size_mb: i64,
    pub sticky: bool,
}

/// How often a task may be restarted here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct RestartPolicy {
    pub attempts: i64,
    pub delay: i64,
    pub interval: i64,
    pub mode: String,
    pub render_templates: bool,
}

/// How often an allocation may be placed anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ReschedulePolicy {
    pub attempts: i64,
    pub delay: i64,
    pub delay_function: String,
    pub interval: i64,
    pub max_delay: i64,
    pub unlimited: bool,
}

/// How allocations leave a node that is drained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct MigrateStrategy {
    pub health_check: String,
    pub healthy_deadline: i64,
    pub max_parallel: i64,
    pub min_healthy_time: i64,
}

/// What becomes of it while node and servers do not hear each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Disconnect {
    pub lost_after: i64,
    pub reconcile: String,
    pub replace: Option<bool>,
    pub stop_on_client_after: Option<i64>,
}

/// A volume that the group wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct VolumeRequest {
    pub access_mode: String,
    pub attachment_mode: String,
    pub mount_options: Option<Value>,
    pub name: String,
    pub per_alloc: bool,
    pub read_only: bool,
    pub source: String,
    pub sticky: bool,
    pub r#type: String,
}
