//! An allocation that servers placed on this node, in the core's form.

use drover_core::cluster::PlacedAlloc;
use drover_core::model::alloc::{ClientStatus, DesiredStatus};
use drover_core::model::device::{AssignedDevices, GroupId};
use drover_core::store::record::{AssignedCores, AssignedPort};
use drover_core::time::Timestamp;
use drover_rpc::types::allocation::{AllocatedResources, Allocation};
use drover_rpc::types::network::{AllocatedPortMapping, Port};

use super::jobs::Jobs;

/// The allocation; none if it has no id that could be one.
pub(super) fn of(alloc: &Allocation) -> Option<PlacedAlloc> {
    of_jobs(alloc, &Jobs::default())
}

/// The same, whose job may be one of these.
pub(super) fn of_jobs(alloc: &Allocation, jobs: &Jobs) -> Option<PlacedAlloc> {
    let resources = alloc.allocated_resources.as_ref();
    let health = alloc.deployment_status.as_ref();
    Some(PlacedAlloc {
        id: alloc.id.parse().ok()?,
        modify_index: alloc.alloc_modify_index,
        name: alloc.name.as_str().into(),
        job: match &alloc.job {
            Some(job) => jobs.of(job, &alloc.task_group),
            None => Err("the servers sent no job with it".to_owned()),
        },
        group: alloc.task_group.as_str().into(),
        eval: alloc.eval_id.parse().unwrap_or_default(),
        deployment: alloc.deployment_id.parse().ok(),
        canary: health.is_some_and(|health| health.canary),
        previous: alloc.previous_allocation.parse().ok(),
        preempts: (alloc.preempted_allocations.iter())
            .filter_map(|id| id.parse().ok())
            .collect(),
        desired: desired(&alloc.desired_status),
        desired_description: alloc.desired_description.as_str().into(),
        no_shutdown_delay: alloc.desired_transition.no_shutdown_delay == Some(true),
        client_status: client_status(&alloc.client_status),
        ports: resources.map_or_else(Vec::new, |it| ports(alloc, it)),
        cores: resources.map_or_else(Vec::new, cores),
        devices: resources.map_or_else(Vec::new, devices),
        create_time: Timestamp(alloc.create_time),
    })
}

fn desired(text: &str) -> DesiredStatus {
    match text {
        "stop" => DesiredStatus::Stop,
        "evict" => DesiredStatus::Evict,
        _ => DesiredStatus::Run,
    }
}

fn client_status(text: &str) -> ClientStatus {
    match text {
        "running" => ClientStatus::Running,
        "complete" => ClientStatus::Complete,
        "failed" => ClientStatus::Failed,
        "lost" => ClientStatus::Lost,
        "unknown" => ClientStatus::Unknown,
        _ => ClientStatus::Pending,
    }
}

fn ports(alloc: &Allocation, resources: &AllocatedResources) -> Vec<AssignedPort> {
    let groups = alloc.job.iter().flat_map(|job| &job.task_groups);
    let mut networks = groups
        .filter(|group| group.name == alloc.task_group)
        .flat_map(|group| &group.networks);
    let network = networks.next();
    let asked = |label: &str| -> Option<&Port> {
        let network = network?;
        let mut all = network.reserved_ports.iter().chain(&network.dynamic_ports);
        all.find(|port| port.label == label)
    };
    let shared = resources.shared.ports.iter();
    shared
        .filter_map(|port| assigned(port, asked(&port.label)))
        .collect()
}

/// A port; none if its number is none.
fn assigned(port: &AllocatedPortMapping, asked: Option<&Port>) -> Option<AssignedPort> {
    let value = u16::try_from(port.value).ok().filter(|port| *port > 0)?;
    let to = u16::try_from(port.to).unwrap_or(0);
    let network = asked.map_or("", |asked| asked.host_network.as_str());
    Some(AssignedPort {
        label: port.label.clone(),
        value,
        to: if to == value { 0 } else { to },
        host_ip: port.host_ip.clone(),
        host_network: if network == "default" { "" } else { network }.to_owned(),
    })
}

fn cores(resources: &AllocatedResources) -> Vec<AssignedCores> {
    let tasks = resources.tasks.iter();
    let with_cores = tasks.filter(|(_, task)| !task.cpu.reserved_cores.is_empty());
    with_cores
        .map(|(name, task)| AssignedCores {
            task: name.clone(),
            ids: task
                .cpu
                .reserved_cores
                .iter()
                .map(|id| u32::from(*id))
                .collect(),
        })
        .collect()
}

fn devices(resources: &AllocatedResources) -> Vec<AssignedDevices> {
    let tasks = resources.tasks.iter();
    let all = tasks.flat_map(|(name, task)| task.devices.iter().map(move |one| (name, one)));
    all.map(|(name, one)| AssignedDevices {
        task: name.clone(),
        // Which plugin has them is the core's business.
        plugin: String::new(),
        group: GroupId {
            vendor: one.vendor.clone(),
            kind: one.r#type.clone(),
            name: one.name.clone(),
        },
        ids: one.device_ids.clone(),
    })
    .collect()
}
