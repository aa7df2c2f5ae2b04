//! Allocations in lists, and their tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::event::TaskEventDto;

/// An allocation in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct AllocStub {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub name: String,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub node_name: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub job_type: String,
    pub job_version: u64,
    pub task_group: String,
    pub desired_status: String,
    pub desired_description: String,
    pub desired_transition: DesiredTransition,
    pub client_status: String,
    pub client_description: String,
    pub task_states: BTreeMap<String, TaskStateDto>,
    pub deployment_status: Option<AllocDeployment>,
    #[serde(rename = "DeploymentID")]
    pub deployment_id: String,
    #[serde(rename = "FollowupEvalID")]
    pub followup_eval_id: String,
    pub reschedule_tracker: Option<Value>,
    pub previous_allocation: String,
    pub next_allocation: String,
    pub preempted_allocations: Option<Vec<String>>,
    pub preempted_by_allocation: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
}

/// What a server wants of an allocation's node. Here the node decides by itself, at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct DesiredTransition {
    pub migrate: Option<bool>,
    pub reschedule: Option<bool>,
    pub force_reschedule: Option<bool>,
    pub no_shutdown_delay: Option<bool>,
    pub migrate_disable_placement: Option<bool>,
}

/// Whether an allocation is healthy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct AllocDeployment {
    pub healthy: Option<bool>,
    pub timestamp: String,
    pub canary: bool,
    pub modify_index: u64,
}

/// A task's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct TaskStateDto {
    pub state: String,
    pub failed: bool,
    pub restarts: u64,
    pub last_restart: Option<String>,
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub paused: String,
    pub events: Vec<TaskEventDto>,
    /// An extension of our own: what only the driver knows of its network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_network: Option<DriverNetworkDto>,
}

/// What a driver knows of a task's network once it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct DriverNetworkDto {
    #[serde(rename = "IP")]
    pub ip: String,
    pub auto_advertise: bool,
    pub port_map: BTreeMap<String, u16>,
}

impl AllocStub {
    /// Its JSON.
    ///
    /// # Errors
    /// None that can happen: every field has a form in JSON.
    pub fn json(&self) -> serde_json::Result<Box<RawValue>> {
        to_raw_value(self)
    }

    /// The same, at the end of a text.
    ///
    /// # Errors
    /// None that can happen.
    pub fn write_json(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(text, self)
    }
}
