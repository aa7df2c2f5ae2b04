//! Allocations and their tasks.

use std::collections::BTreeMap;

use drover_core::agent::{ShownAlloc, View};
use drover_core::ids::{AllocId, TaskName};
use drover_core::model::alloc::TaskState;
use drover_core::model::event::TaskEvent;
use drover_core::model::task::Task;
use drover_core::store::record::AllocRecord;
use drover_core::time::Timestamp;
use drover_io_real::on_the_way::{Amount, OnTheWay, mib};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::job::full_job;
use crate::times;

/// An allocation in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are the field's")]
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
    pub client_status: String,
    pub client_description: String,
    pub task_states: BTreeMap<String, TaskStateShape>,
    pub deployment_status: Option<AllocDeployment>,
    #[serde(rename = "DeploymentID")]
    pub deployment_id: String,
    #[serde(rename = "FollowupEvalID")]
    pub followup_eval_id: String,
    pub previous_allocation: String,
    pub next_allocation: String,
    pub preempted_allocations: Option<Vec<String>>,
    pub preempted_by_allocation: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
}

/// Whether an allocation is healthy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are the field's")]
pub struct AllocDeployment {
    pub healthy: Option<bool>,
    pub timestamp: String,
    pub canary: bool,
    pub modify_index: u64,
}

/// A task's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are the field's")]
pub struct TaskStateShape {
    pub state: String,
    pub failed: bool,
    pub restarts: u64,
    pub last_restart: Option<String>,
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub events: Vec<TaskEventShape>,
}

/// Something that happened to a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are the field's")]
pub struct TaskEventShape {
    #[serde(rename = "Type")]
    pub kind: String,
    pub time: i64,
    pub display_message: String,
    pub details: BTreeMap<String, String>,
    pub message: String,
    pub fails_task: bool,
    pub exit_code: i64,
    pub signal: i64,
}

/// A whole allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are the field's")]
pub struct Alloc {
    #[serde(flatten)]
    pub stub: AllocStub,
    pub job: Value,
    pub alloc_modify_index: u64,
    /// An extension of our own: its logs and files are gone, what stays is this record.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub directory_collected: bool,
    pub allocated_resources: AllocatedResources,
}

/// What an allocation holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are the field's")]
pub struct AllocatedResources {
    pub tasks: BTreeMap<String, TaskResources>,
    pub task_lifecycles: BTreeMap<String, Option<drover_core::model::task::Lifecycle>>,
    pub shared: SharedResources,
}

/// What a task holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are the field's")]
pub struct TaskResources {
    pub cpu: CpuResources,
    pub memory: MemoryResources,
}

/// A share of the processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are the field's")]
pub struct CpuResources {
    pub cpu_shares: i64,
}

/// A part of the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are the field's")]
pub struct MemoryResources {
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i64,
    #[serde(rename = "MemoryMaxMB")]
    pub memory_max_mb: i64,
}

/// What the tasks of an allocation share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are the field's")]
pub struct SharedResources {
    #[serde(rename = "DiskMB")]
    pub disk_mb: i64,
    pub ports: Vec<AssignedPort>,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are the field's")]
pub struct AssignedPort {
    pub label: String,
    pub value: i64,
    pub to: i64,
    #[serde(rename = "HostIP")]
    pub host_ip: String,
}

/// Whose places it took, if any; those that ended anyway were only awaited.
fn preempted(view: View<'_>, record: &AllocRecord) -> Option<Vec<String>> {
    let gave_way = |id: &&AllocId| {
        let alloc = view.shown_alloc(**id);
        alloc.is_some_and(|alloc| alloc.record().preempted_by == Some(record.id))
    };
    let all = record.preempts.iter().filter(gave_way);
    let all: Vec<String> = all.map(ToString::to_string).collect();
    (!all.is_empty()).then_some(all)
}

impl AllocStub {
    /// An allocation as lists show it.
    pub fn of(view: View<'_>, alloc: ShownAlloc<'_>) -> AllocStub {
        let record = alloc.record();
        let id = |id: Option<_>| id.map(|id: drover_core::ids::AllocId| id.to_string());
        AllocStub {
            id: record.id.to_string(),
            eval_id: record.eval.to_string(),
            name: record.name.to_string(),
            namespace: record.job.namespace.to_string(),
            node_id: view.node().id.to_string(),
            node_name: view.node().name.clone(),
            job_id: record.job.id.to_string(),
            job_type: alloc.job().job_type.as_str().to_owned(),
            job_version: record.job_version,
            task_group: record.group.to_string(),
            desired_status: record.desired.as_str().to_owned(),
            desired_description: record.desired_description.to_string(),
            client_status: record.status.as_str().to_owned(),
            client_description: alloc
                .waits_for(view)
                .unwrap_or_else(|| record.status_description.to_string()),
            task_states: alloc.tasks().into_iter().map(named_state).collect(),
            deployment_status: deployment_status(record),
            deployment_id: record
                .deployment
                .map(|id| id.to_string())
                .unwrap_or_default(),
            followup_eval_id: String::new(),
            previous_allocation: id(record.previous).unwrap_or_default(),
            next_allocation: id(record.next).unwrap_or_default(),
            preempted_allocations: preempted(view, record),
            preempted_by_allocation: id(record.preempted_by).unwrap_or_default(),
            create_index: record.create_index,
            modify_index: record.modify_index,
            create_time: record.create_time.0,
            modify_time: record.modify_time.0,
        }
    }
}

impl AllocStub {
    /// Says how much came of what is fetched for it, if anything is.
    pub fn is_told(&mut self, coming: &OnTheWay) {
        let amount = self.id.parse().ok().and_then(|id| coming.of(id));
        if let Some(amount) = amount {
            let how_far = how_far(amount);
            self.client_description = match self.client_status.as_str() {
                "pending" if self.client_description == NOT_STARTED => {
                    format!("Fetching what its tasks need: {how_far}")
                }
                _ => format!("{}: {how_far}", self.client_description),
            };
        }
    }
}

/// What is said of an allocation of which nothing more is known.
const NOT_STARTED: &str = "No tasks have started";

/// How much came, in words.
pub(crate) fn how_far(amount: Amount) -> String {
    match amount.total {
        Some(total) => format!("{} of {} MiB", mib(amount.bytes), mib(total)),
        None => format!("{} MiB so far", mib(amount.bytes)),
    }
}

impl Alloc {
    /// An allocation as it is shown whole.
    pub fn of(view: View<'_>, alloc: ShownAlloc<'_>) -> Alloc {
        let record = alloc.record();
        let group = alloc.job().group(record.group.as_str());
        let tasks = group
            .map(|group| group.tasks.as_slice())
            .unwrap_or_default();
        let disk = group
            .and_then(|group| group.ephemeral_disk)
            .unwrap_or_default();
        let port = |port: &drover_core::store::record::AssignedPort| AssignedPort {
            label: port.label.clone(),
            value: i64::from(port.value),
            to: i64::from(port.to),
            host_ip: port.host_ip.clone(),
        };
        Alloc {
            stub: AllocStub::of(view, alloc),
            job: full_job(alloc.job(), view.job_status(&record.job)),
            alloc_modify_index: record.modify_index,
            directory_collected: alloc.is_collected(),
            allocated_resources: AllocatedResources {
                tasks: tasks.iter().map(task_resources).collect(),
                task_lifecycles: tasks
                    .iter()
                    .map(|t| (t.name.clone(), t.lifecycle))
                    .collect(),
                shared: SharedResources {
                    disk_mb: disk.size_mb,
                    ports: record.ports.iter().map(port).collect(),
                },
            },
        }
    }
}

fn task_resources(task: &Task) -> (String, TaskResources) {
    let resources = TaskResources {
        cpu: CpuResources {
            cpu_shares: task.resources.cpu,
        },
        memory: MemoryResources {
            memory_mb: task.resources.memory_mb,
            memory_max_mb: task.resources.memory_max_mb,
        },
    };
    (task.name.clone(), resources)
}

fn deployment_status(record: &AllocRecord) -> Option<AllocDeployment> {
    let health = record.health?;
    Some(AllocDeployment {
        healthy: Some(health.healthy),
        timestamp: times::to_nanos(health.timestamp),
        canary: false,
        modify_index: record.modify_index,
    })
}

fn named_state((task, known): (&TaskName, &TaskState)) -> (String, TaskStateShape) {
    (task.to_string(), state(known))
}

fn state(state: &TaskState) -> TaskStateShape {
    let time = |time: Option<Timestamp>| time.map(times::to_nanos);
    TaskStateShape {
        state: state.state.as_str().to_owned(),
        failed: state.failed,
        restarts: state.restarts,
        last_restart: time(state.last_restart),
        started_at: time(state.started_at),
        finished_at: time(state.finished_at),
        events: state.events.iter().map(|own| event(own)).collect(),
    }
}

fn event(event: &TaskEvent) -> TaskEventShape {
    let number = |name| {
        let text = event.details.get(name).map(String::as_str);
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    TaskEventShape {
        kind: event.kind.as_str().to_owned(),
        time: event.time.0,
        display_message: event.display_message.clone(),
        message: event.details.get("message").cloned().unwrap_or_default(),
        fails_task: event.fails_task,
        exit_code: number("exit_code"),
        signal: number("signal"),
        details: event.details.clone(),
    }
}
