//! A task: one program and how it is run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::artifact::Artifact;
use super::device::DeviceRequest;
use super::dispatch::DispatchPayload;
use super::identity::Identity;
use super::image::ImageUpdate;
use super::job::Constraint;
use super::policy::RestartPolicy;
use super::template::Template;
use super::value::Value;
use super::volume::VolumeMount;
use crate::time::Span;

/// One program of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Task {
    /// Unique in its group; a directory bears it.
    pub name: String,
    /// Which driver starts it.
    pub driver: String,
    /// As whom it runs; the driver's default if empty.
    pub user: String,
    /// The driver's own configuration; the driver validates it.
    pub config: BTreeMap<String, Value>,
    /// Environment variables, interpolated before each start.
    pub env: BTreeMap<String, String>,
    /// The author's own keys.
    pub meta: BTreeMap<String, String>,
    /// When in the group's life it runs; a main task if none.
    pub lifecycle: Option<Lifecycle>,
    /// Whether the others stop when this one ends.
    pub leader: bool,
    /// Of Connect; refused.
    pub kind: String,
    /// From the polite signal to the impolite one; 5 s unless given.
    pub kill_timeout: Option<Span>,
    /// The polite signal; the driver's default if empty.
    pub kill_signal: String,
    /// From deregistering its services to the polite signal.
    pub shutdown_delay: Span,
    /// Overrides the group's policy field by field.
    pub restart_policy: Option<RestartPolicy>,
    /// What it needs.
    pub resources: Resources,
    /// How its output is kept.
    pub log_config: Option<LogConfig>,
    /// Conditions on the node.
    pub constraints: Vec<Constraint>,
    /// Preferences among nodes; kept, of no effect on one node.
    pub affinities: Vec<Value>,
    /// What is told to service discovery.
    pub services: Vec<Value>,
    /// Files to fetch before the start.
    pub artifacts: Vec<Artifact>,
    /// Files to render before the start.
    pub templates: Vec<Template>,
    /// Volumes of the group to mount.
    pub volume_mounts: Vec<VolumeMount>,
    /// Where a dispatched payload goes.
    pub dispatch_payload: Option<DispatchPayload>,
    /// Of Vault.
    pub vault: Option<Value>,
    /// Of Consul.
    pub consul: Option<Value>,
    /// The default workload identity.
    pub identity: Option<Identity>,
    /// Further workload identities.
    pub identities: Vec<Identity>,
    /// Secrets from providers.
    pub secrets: Vec<Value>,
    /// Commands that an operator may run in the task.
    pub actions: Vec<TaskAction>,
    /// Marks a storage plugin.
    #[serde(rename = "CSIPluginConfig")]
    pub csi_plugin_config: Option<Value>,
    /// Bounds for an autoscaler; kept.
    pub scaling_policies: Vec<Value>,
    /// Not of the community edition.
    pub schedule: Option<Value>,
    /// Services that must be healthy before it starts. Not Nomad's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wait_for: Vec<WaitFor>,
    /// How it follows the tag of its image, if it does. Not Nomad's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_update: Option<ImageUpdate>,
    /// The digest that its image has, whatever the tag means by now; that of the tag if empty. Drover's own: what
    /// somebody submits says nothing of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image_digest: String,
}

/// A service that must be healthy before a task starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct WaitFor {
    /// Its name, in the namespace of the job.
    pub service: String,
}

/// A command that an operator may run in a task by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskAction {
    /// Unique in its task.
    pub name: String,
    /// Where the program is: found as the task's own program is.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl TaskAction {
    /// The command and its arguments.
    pub fn words(&self) -> Vec<String> {
        let command = core::iter::once(&self.command);
        command.chain(&self.args).cloned().collect()
    }
}

/// The default of `kill_timeout`.
pub const DEFAULT_KILL_TIMEOUT: Span = Span::secs(5);

impl Task {
    /// From the polite signal to the impolite one.
    pub fn kill_timeout(&self) -> Span {
        self.kill_timeout.unwrap_or(DEFAULT_KILL_TIMEOUT)
    }

    /// Which part of the group's life this task belongs to.
    pub fn stage(&self) -> Stage {
        let Some(lifecycle) = &self.lifecycle else {
            return Stage::Main;
        };
        match (lifecycle.hook, lifecycle.sidecar) {
            (Hook::Prestart, false) => Stage::Prestart,
            (Hook::Prestart, true) => Stage::PrestartSidecar,
            (Hook::Poststart, false) => Stage::Poststart,
            (Hook::Poststart, true) => Stage::PoststartSidecar,
            (Hook::Poststop, _) => Stage::Poststop,
        }
    }
}

/// When a task runs that is not a main task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Lifecycle {
    /// Before, after the start, or after the end of the main tasks.
    pub hook: Hook,
    /// Whether it goes on running beside the main tasks. Of no meaning for `poststop`.
    #[serde(default)]
    pub sidecar: bool,
}

/// The moments of a group's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hook {
    /// Before the main tasks.
    Prestart,
    /// When every main task runs.
    Poststart,
    /// When every other task is dead.
    Poststop,
}

/// The part of a group's life that a task belongs to. Ordered as they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Stage {
    /// Must succeed before the main tasks start.
    Prestart,
    /// Must run before the main tasks start, and runs beside them.
    PrestartSidecar,
    /// The purpose of the group.
    Main,
    /// Starts when the main tasks run, and ends by itself.
    Poststart,
    /// Starts when the main tasks run, and runs beside them.
    PoststartSidecar,
    /// Runs when all others are dead.
    Poststop,
}

impl Stage {
    /// Whether the task lives beside the main tasks and is stopped after them.
    pub fn is_sidecar(self) -> bool {
        matches!(self, Stage::PrestartSidecar | Stage::PoststartSidecar)
    }
}

/// What a task needs of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Resources {
    /// Share of the processor, in MHz.
    #[serde(rename = "CPU")]
    pub cpu: i64,
    /// Whole cores, instead of a share.
    pub cores: i64,
    /// Megabytes that it may use.
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i64,
    /// Megabytes that it may use while others leave them: 0 for no more than `MemoryMB`, -1 for
    /// no limit.
    #[serde(rename = "MemoryMaxMB")]
    pub memory_max_mb: i64,
    /// Megabytes of the secrets directory.
    #[serde(rename = "SecretsMB")]
    pub secrets_mb: i64,
    /// Devices such as GPUs.
    pub devices: Vec<DeviceRequest>,
    /// Placement on processor nodes; kept.
    #[serde(rename = "NUMA")]
    pub numa: Option<Value>,
}

impl Default for Resources {
    fn default() -> Self {
        Resources {
            cpu: 100,
            cores: 0,
            memory_mb: 300,
            memory_max_mb: 0,
            secrets_mb: 0,
            devices: Vec::new(),
            numa: None,
        }
    }
}

/// How a task's output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LogConfig {
    /// How many files each of stdout and stderr may have.
    pub max_files: i64,
    /// Megabytes of one file.
    #[serde(rename = "MaxFileSizeMB")]
    pub max_file_size_mb: i64,
    /// Whether output is thrown away.
    pub disabled: bool,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig {
            max_files: 10,
            max_file_size_mb: 10,
            disabled: false,
        }
    }
}
