//! Allocations and their tasks.

use std::collections::BTreeMap;

use drover_api::{
    AllocDeployment, AllocStub, DesiredTransition, DriverNetworkDto, TaskEventDto, TaskStateDto,
};
use drover_core::model::alloc::{DriverNetwork, TaskState};
use drover_core::model::network::INTERFACE;
use drover_core::store::record::AllocRecord;
use drover_core::time::Timestamp;
use drover_io_real::transfers::{Amount, Transfers, mib};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::job::full_job;
use super::metric::AllocMetric;
use super::resources::{AllocatedResources, OldResources};
use crate::http::records::AllocRecords;
use crate::times;

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

/// An allocation as lists show it.
impl From<&AllocRecords> for AllocStub {
    fn from(alloc: &AllocRecords) -> AllocStub {
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

/// Says how much came of what is fetched for an allocation, if anything is.
pub(crate) fn tell_transfers(stub: &mut AllocStub, coming: &Transfers) {
    let amount = stub.id.parse().ok().and_then(|id| coming.of(id));
    if let Some(amount) = amount {
        let how_far = how_far(amount);
        stub.client_description = match stub.client_status.as_str() {
            "pending" if stub.client_description == NOT_STARTED => {
                format!("Fetching what its tasks need: {how_far}")
            }
            _ => format!("{}: {how_far}", stub.client_description),
        };
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
            stub: AllocStub::from(alloc),
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
        events: (state.events.iter().cloned())
            .map(TaskEventDto::Shared)
            .collect(),
        driver_network: network.map(driver_network),
    }
}
