//! Allocations in lists, and their tasks.

use std::collections::BTreeMap;

use drover_core::ids::AllocId;
use drover_core::model::alloc::{DriverNetwork, TaskState};
use drover_core::store::record::AllocRecord;
use drover_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::TaskEventDto;
use crate::records::AllocRecords;
use crate::reschedule::RescheduleTracker;
use crate::times;

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
    pub reschedule_tracker: Option<RescheduleTracker>,
    pub previous_allocation: String,
    pub next_allocation: String,
    pub preempted_allocations: Option<Vec<String>>,
    pub preempted_by_allocation: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
    /// An extension of our own, on a node of a cluster: whether the node placed it itself, and its servers did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<bool>,
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

/// An allocation as lists show it.
impl From<&AllocRecords> for AllocStub {
    fn from(alloc: &AllocRecords) -> AllocStub {
        let record = alloc.alloc();
        let preempted: Vec<String> = alloc.preempted.iter().map(ToString::to_string).collect();
        let id = |id: Option<_>| id.map(|id: AllocId| id.to_string());
        let (desired, why) = alloc.desired();
        AllocStub {
            id: record.id.to_string(),
            eval_id: record.eval.to_string(),
            name: record.name.to_string(),
            namespace: record.job.namespace.to_string(),
            node_id: alloc.node.id.to_string(),
            node_name: alloc.node.name.clone(),
            job_id: record.job.id.to_string(),
            job_type: alloc.job.job_type.as_str().to_owned(),
            job_version: record.job_version,
            task_group: record.group.to_string(),
            desired_status: desired.as_str().to_owned(),
            desired_description: why.to_owned(),
            desired_transition: desired_transition(record),
            client_status: record.status.as_str().to_owned(),
            client_description: alloc.description().to_owned(),
            task_states: (alloc.tasks())
                .map(|(task, known, network)| (task.to_string(), state(known, network)))
                .collect(),
            deployment_status: deployment_status(record),
            deployment_id: record
                .deployment
                .map(|id| id.to_string())
                .unwrap_or_default(),
            followup_eval_id: (alloc.follow_up)
                .map(|id| id.to_string())
                .unwrap_or_default(),
            reschedule_tracker: alloc.rescheduled.clone(),
            previous_allocation: id(record.previous).unwrap_or_default(),
            next_allocation: id(record.next).unwrap_or_default(),
            preempted_allocations: (!preempted.is_empty()).then_some(preempted),
            preempted_by_allocation: id(record.preempted_by).unwrap_or_default(),
            create_index: record.create_index,
            modify_index: record.modify_index,
            create_time: record.create_time.0,
            modify_time: record.modify_time.0,
            local: alloc.is_local,
        }
    }
}

/// What the node wants of it beside what is told of all.
pub(crate) fn desired_transition(record: &AllocRecord) -> DesiredTransition {
    DesiredTransition {
        migrate: record.drained.then_some(true),
        no_shutdown_delay: record.skip_shutdown_delay.then_some(true),
        ..DesiredTransition::default()
    }
}

pub(crate) fn deployment_status(record: &AllocRecord) -> Option<AllocDeployment> {
    if record.health.is_none() && !record.canary {
        return None;
    }
    let timestamp = record.health.map(|health| health.timestamp);
    Some(AllocDeployment {
        healthy: record.health.map(|health| health.healthy),
        timestamp: times::to_nanos(timestamp.unwrap_or_default()),
        canary: record.canary,
        modify_index: record.modify_index,
    })
}

pub(crate) fn driver_network(known: &DriverNetwork) -> DriverNetworkDto {
    DriverNetworkDto {
        ip: known.ip.clone(),
        auto_advertise: known.auto_advertise,
        port_map: known.port_map.clone(),
    }
}

fn state(state: &TaskState, network: Option<&DriverNetwork>) -> TaskStateDto {
    let time = |time: Option<Timestamp>| time.map(times::to_nanos);
    TaskStateDto {
        state: state.state.as_str().to_owned(),
        failed: state.failed,
        restarts: state.restarts,
        last_restart: time(state.last_restart),
        started_at: time(state.started_at),
        finished_at: time(state.finished_at),
        paused: String::new(),
        events: (state.events.iter().cloned())
            .map(TaskEventDto::Shared)
            .collect(),
        driver_network: network.map(driver_network),
    }
}
