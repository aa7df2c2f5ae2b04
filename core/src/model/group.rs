//! A task group: the tasks that live together in one allocation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::job::Constraint;
pub use super::network::{Dns, Network, Port};
use super::policy::{ReschedulePolicy, RestartPolicy, UpdateStrategy};
use super::scaling::ScalingPolicy;
use super::task::Task;
use super::value::Value;
use super::volume::VolumeRequest;
use crate::time::Span;

/// Tasks that share a directory, a network and a fate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskGroup {
    /// Unique in its job.
    pub name: String,
    /// How many copies; 1 unless given.
    pub count: Option<i64>,
    /// The author's own keys.
    pub meta: BTreeMap<String, String>,
    /// Conditions on the node.
    pub constraints: Vec<Constraint>,
    /// Preferences among nodes; kept, of no effect on one node.
    pub affinities: Vec<Value>,
    /// Preferences of spreading; kept, of no effect on one node.
    pub spreads: Vec<Value>,
    /// When a task that ended is started again; the job type's default unless given.
    pub restart_policy: Option<RestartPolicy>,
    /// What follows a failed allocation.
    pub reschedule_policy: Option<ReschedulePolicy>,
    /// How a new version replaces an old one.
    pub update: Option<UpdateStrategy>,
    /// What moving to another node takes; kept, of no effect on one node.
    pub migrate: Option<Value>,
    /// The allocation's shared directory.
    pub ephemeral_disk: Option<EphemeralDisk>,
    /// Ports; one block at most.
    pub networks: Vec<Network>,
    /// What is told to service discovery.
    pub services: Vec<Value>,
    /// Volumes of the node that its tasks use, by name.
    pub volumes: BTreeMap<String, VolumeRequest>,
    /// Time between deregistering the services and killing the tasks.
    pub shutdown_delay: Option<Span>,
    /// The longest that an allocation of a batch job may run.
    pub max_run_duration: Option<Span>,
    /// What happens while the servers are out of reach.
    pub disconnect: Option<Value>,
    /// An older form of `disconnect`; kept.
    pub stop_after_client_disconnect: Option<Span>,
    /// An older form of `disconnect`; kept.
    pub max_client_disconnect: Option<Span>,
    /// An older form of `disconnect`; kept.
    pub prevent_reschedule_on_lost: Option<bool>,
    /// Within which bounds it is scaled.
    pub scaling: Option<ScalingPolicy>,
    /// Of Consul; refused where it would matter.
    pub consul: Option<Value>,
    /// The tasks.
    pub tasks: Vec<Task>,
}

impl TaskGroup {
    /// How many copies are wanted.
    pub fn wanted(&self) -> i64 {
        self.count.unwrap_or(1)
    }
}

/// The allocation's shared directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EphemeralDisk {
    /// Megabytes.
    #[serde(rename = "SizeMB")]
    pub size_mb: i64,
    /// Whether a replacement on the same node gets the data.
    pub sticky: bool,
    /// Whether a replacement on another node gets the data.
    pub migrate: bool,
}

impl Default for EphemeralDisk {
    fn default() -> Self {
        EphemeralDisk {
            size_mb: 300,
            sticky: false,
            migrate: false,
        }
    }
}
