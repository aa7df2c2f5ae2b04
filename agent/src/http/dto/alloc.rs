//! Allocations and their tasks.

use std::collections::BTreeMap;

use drover_core::model::alloc::{DriverNetwork, TaskState};
use drover_core::model::event::TaskEvent;
use drover_core::model::network::INTERFACE;
use drover_core::store::record::AllocRecord;
use drover_core::text::parse_duration;
use drover_core::time::Timestamp;
use drover_io_real::transfers::{Amount, Transfers, mib};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::job::full_job;
use super::metric::AllocMetric;
use super::resources::{AllocatedResources, OldResources};
use crate::http::records::AllocRecords;
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

/// The network of an allocation's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct NetworkStatus {
    pub interface_name: String,
    pub address: String,
    #[serde(rename = "AddressIPv6")]
    pub address_ipv6: String,
    #[serde(rename = "DNS")]
    pub dns: Option<Value>,
}

/// Something that happened to a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct TaskEventDto {
    #[serde(rename = "Type")]
    pub kind: String,
    pub time: i64,
    pub display_message: String,
    pub details: BTreeMap<String, String>,
    pub message: String,
    pub fails_task: bool,
    pub exit_code: i64,
    pub signal: i64,
    /// What older programs read instead of the details.
    #[serde(flatten)]
    pub old: OldEvent,
}

/// The fields of an event from before there were details.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct OldEvent {
    pub disk_limit: i64,
    pub download_error: String,
    pub driver_error: String,
    pub driver_message: String,
    pub failed_sibling: String,
    pub generic_source: String,
    pub kill_error: String,
    pub kill_reason: String,
    pub kill_timeout: i64,
    pub restart_reason: String,
    pub setup_error: String,
    pub start_delay: i64,
    pub task_signal: String,
    pub task_signal_reason: String,
    pub validation_error: String,
    pub vault_error: String,
}

/// A whole allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Alloc {
    #[serde(flatten)]
    pub stub: AllocStub,
    pub job: Value,
    pub alloc_modify_index: u64,
    /// An extension of our own: its logs and files are gone, what stays is this record.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub directory_collected: bool,
    pub allocated_resources: AllocatedResources,
    pub resources: OldResources,
    pub task_resources: BTreeMap<String, OldResources>,
    pub shared_resources: OldResources,
    pub metrics: AllocMetric,
    /// The address that a driver gave to a task of it, as soon as that is known.
    pub network_status: Option<NetworkStatus>,
    #[serde(rename = "SigningKeyID")]
    pub signing_key_id: String,
}

impl AllocStub {
    /// An allocation as lists show it.
    pub(crate) fn of(alloc: &AllocRecords) -> AllocStub {
        let record = alloc.alloc();
        let preempted: Vec<String> = alloc.preempted.iter().map(ToString::to_string).collect();
        let id = |id: Option<_>| id.map(|id: drover_core::ids::AllocId| id.to_string());
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
            desired_transition: DesiredTransition {
                migrate: record.drained.then_some(true),
                no_shutdown_delay: record.skip_shutdown_delay.then_some(true),
                ..DesiredTransition::default()
            },
            client_status: record.status.as_str().to_owned(),
            client_description: (alloc.waits_for.clone())
                .unwrap_or_else(|| record.status_description.to_string()),
            task_states: (alloc.tasks())
                .map(|(task, known, network)| (task.to_string(), state(known, network)))
                .collect(),
            deployment_status: deployment_status(record),
            deployment_id: record
                .deployment
                .map(|id| id.to_string())
                .unwrap_or_default(),
            followup_eval_id: String::new(),
            reschedule_tracker: None,
            previous_allocation: id(record.previous).unwrap_or_default(),
            next_allocation: id(record.next).unwrap_or_default(),
            preempted_allocations: (!preempted.is_empty()).then_some(preempted),
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
    pub fn is_told(&mut self, coming: &Transfers) {
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
    pub(crate) fn of(alloc: &AllocRecords) -> Alloc {
        Alloc {
            job: full_job(&alloc.job, alloc.job_status, None),
            ..Alloc::without_job(alloc)
        }
    }

    /// The same but for its job, which is the larger part of it.
    pub(crate) fn without_job(alloc: &AllocRecords) -> Alloc {
        let record = alloc.alloc();
        let group = alloc.job.group(record.group.as_str());
        let allocated = AllocatedResources::of(record, group);
        Alloc {
            stub: AllocStub::of(alloc),
            job: Value::Null,
            alloc_modify_index: record.modify_index,
            directory_collected: alloc.is_collected(),
            resources: allocated.old(),
            task_resources: (allocated.tasks.iter())
                .map(|(name, task)| (name.clone(), task.old()))
                .collect(),
            shared_resources: allocated.shared.old(),
            allocated_resources: allocated,
            metrics: AllocMetric::placed(&alloc.node),
            network_status: network_status(alloc),
            signing_key_id: String::new(),
        }
    }
}

fn deployment_status(record: &AllocRecord) -> Option<AllocDeployment> {
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

/// The network of its own, or the first address that a driver gave to a task of it.
fn network_status(alloc: &AllocRecords) -> Option<NetworkStatus> {
    if let Some(address) = alloc.alloc().address() {
        let group = alloc.job.group(alloc.alloc().group.as_str());
        let network = group.and_then(|group| group.networks.first());
        let dns = network.and_then(|network| network.dns.as_ref());
        return Some(NetworkStatus {
            interface_name: INTERFACE.to_owned(),
            address: address.to_string(),
            dns: dns.and_then(|dns| serde_json::to_value(dns).ok()),
            ..NetworkStatus::default()
        });
    }
    let mut networks = alloc.tasks().filter_map(|(_, _, network)| network);
    let ip = &networks.find(|network| !network.ip.is_empty())?.ip;
    let (address, address_ipv6) = if ip.contains(':') {
        (String::new(), ip.clone())
    } else {
        (ip.clone(), String::new())
    };
    Some(NetworkStatus {
        address,
        address_ipv6,
        ..NetworkStatus::default()
    })
}

fn driver_network(known: &DriverNetwork) -> DriverNetworkDto {
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
        events: state.events.iter().map(|own| event(own)).collect(),
        driver_network: network.map(driver_network),
    }
}

pub(super) fn event(event: &TaskEvent) -> TaskEventDto {
    let number = |name| {
        let text = event.details.get(name).map(String::as_str);
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    TaskEventDto {
        kind: event.kind.as_str().to_owned(),
        time: event.time.0,
        display_message: event.display_message.clone(),
        message: event.details.get("message").cloned().unwrap_or_default(),
        fails_task: event.fails_task,
        exit_code: number("exit_code"),
        signal: number("signal"),
        old: OldEvent::of(&event.details),
        details: event.details.clone(),
    }
}

impl OldEvent {
    fn of(details: &BTreeMap<String, String>) -> OldEvent {
        let text = |name| details.get(name).cloned().unwrap_or_default();
        let nanos = |name| {
            let text = details.get(name).map(String::as_str).unwrap_or_default();
            let span = text.parse().ok();
            span.or_else(|| Some(parse_duration(text).ok()?.0))
                .unwrap_or(0)
        };
        OldEvent {
            download_error: text("download_error"),
            driver_error: text("driver_error"),
            driver_message: text("driver_message"),
            failed_sibling: text("failed_sibling"),
            kill_error: text("kill_error"),
            kill_reason: text("kill_reason"),
            kill_timeout: nanos("kill_timeout"),
            restart_reason: text("restart_reason"),
            setup_error: text("setup_error"),
            start_delay: nanos("start_delay"),
            task_signal: text("task_signal"),
            task_signal_reason: text("task_signal_reason"),
            validation_error: text("validation_error"),
            ..OldEvent::default()
        }
    }
}
