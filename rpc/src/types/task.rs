//! A task of a group. Durations are nanoseconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::job::RestartPolicy;
use super::network::NetworkResource;
use super::service::Service;
use crate::msgpack::Value;

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Task {
    pub actions: Vec<Action>,
    pub artifacts: Vec<TaskArtifact>,
    /// Free-form: the driver's.
    pub config: BTreeMap<String, Value>,
    pub dispatch_payload: Option<DispatchPayload>,
    pub driver: String,
    pub env: BTreeMap<String, String>,
    pub identities: Vec<WorkloadIdentity>,
    pub identity: Option<WorkloadIdentity>,
    pub kill_signal: String,
    pub kill_timeout: i64,
    pub kind: String,
    pub leader: bool,
    pub lifecycle: Option<Lifecycle>,
    pub log_config: Option<LogConfig>,
    pub meta: BTreeMap<String, String>,
    pub name: String,
    pub resources: Option<Resources>,
    pub restart_policy: Option<RestartPolicy>,
    pub secrets: Vec<TaskSecret>,
    pub services: Vec<Service>,
    pub shutdown_delay: i64,
    pub templates: Vec<Template>,
    pub user: String,
    pub volume_mounts: Vec<VolumeMount>,
}

/// What a task asks for; what it was given is in the allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Resources {
    #[serde(rename = "CPU")]
    pub cpu: i64,
    pub cores: i64,
    pub devices: Vec<RequestedDevice>,
    #[serde(rename = "DiskMB")]
    pub disk_mb: i64,
    #[serde(rename = "IOPS")]
    pub iops: i64,
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i64,
    #[serde(rename = "MemoryMaxMB")]
    pub memory_max_mb: i64,
    #[serde(rename = "NUMA")]
    pub numa: Option<Numa>,
    pub networks: Vec<NetworkResource>,
    #[serde(rename = "SecretsMB")]
    pub secrets_mb: i64,
}

/// A device that a task asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct RequestedDevice {
    pub count: u64,
    pub name: String,
}

/// How cores are to be chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Numa {
    pub affinity: String,
    pub devices: Vec<String>,
}

/// When the task runs beside the main ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Lifecycle {
    pub hook: String,
    pub sidecar: bool,
}

/// A file to be rendered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Template {
    pub change_mode: String,
    pub change_script: Option<ChangeScript>,
    pub change_signal: String,
    pub dest_path: String,
    pub embedded_tmpl: String,
    pub envvars: bool,
    pub err_missing_key: bool,
    pub gid: Option<i64>,
    pub left_delim: String,
    pub once: bool,
    pub perms: String,
    pub right_delim: String,
    pub source_path: String,
    pub splay: i64,
    pub uid: Option<i64>,
    pub vault_grace: i64,
    pub wait: Option<TemplateWait>,
}

/// What runs in the task when a template changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ChangeScript {
    pub args: Vec<String>,
    pub command: String,
    pub fail_on_error: bool,
    pub run_on_first_render: bool,
    pub timeout: i64,
}

/// How long a template waits for changes to settle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TemplateWait {
    pub max: Option<i64>,
    pub min: Option<i64>,
}

/// Something to be downloaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TaskArtifact {
    pub chown: bool,
    pub getter_headers: BTreeMap<String, String>,
    pub getter_insecure: bool,
    pub getter_mode: String,
    pub getter_options: BTreeMap<String, String>,
    pub getter_source: String,
    pub relative_dest: String,
}

/// Secrets of a provider, as variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TaskSecret {
    pub config: BTreeMap<String, Value>,
    pub env: BTreeMap<String, String>,
    pub name: String,
    pub path: String,
    pub provider: String,
}

/// Where a dispatch's payload goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct DispatchPayload {
    pub file: String,
}

/// How logs are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct LogConfig {
    pub disabled: bool,
    #[serde(rename = "MaxFileSizeMB")]
    pub max_file_size_mb: i64,
    pub max_files: i64,
}

/// Where a volume of the group is mounted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct VolumeMount {
    pub destination: String,
    pub propagation_mode: String,
    pub read_only: bool,
    #[serde(rename = "SELinuxLabel")]
    pub se_linux_label: String,
    pub volume: String,
}

/// An identity for the task or service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct WorkloadIdentity {
    pub audience: Vec<String>,
    pub change_mode: String,
    pub change_signal: String,
    pub env: bool,
    pub extra_claims: Vec<String>,
    pub file: bool,
    pub filepath: String,
    pub name: String,
    pub service_name: String,
    #[serde(rename = "TTL")]
    pub ttl: i64,
}

/// A command that operators can run in the task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Action {
    pub args: Vec<String>,
    pub command: String,
    pub name: String,
}
