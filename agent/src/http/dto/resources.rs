//! What an allocation holds, in the two forms that Nomad's programs read: by task and shared, and
//! the older one that is a single object. Old programs read the older one without asking whether it
//! is there.

use std::collections::BTreeMap;

use drover_core::model::device::AssignedDevices;
use drover_core::model::group::TaskGroup;
use drover_core::model::network::DEFAULT_HOST_NETWORK;
use drover_core::model::task::{Lifecycle, Task};
use drover_core::store::record::AllocRecord;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::records::AllocRecords;

/// What an allocation holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct AllocatedResources {
    pub tasks: BTreeMap<String, TaskResources>,
    pub task_lifecycles: BTreeMap<String, Option<Lifecycle>>,
    pub shared: SharedResources,
}

/// What a task holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct TaskResources {
    pub cpu: CpuResources,
    pub memory: MemoryResources,
    pub networks: Option<Vec<NetworkResource>>,
    pub devices: Option<Vec<DeviceResource>>,
}

/// A share of the processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct CpuResources {
    pub cpu_shares: i64,
    pub reserved_cores: Option<Vec<u32>>,
}

/// A part of the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct MemoryResources {
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i64,
    #[serde(rename = "MemoryMaxMB")]
    pub memory_max_mb: i64,
}

/// Devices of one group that a task holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct DeviceResource {
    pub vendor: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub name: String,
    #[serde(rename = "DeviceIDs")]
    pub device_ids: Vec<String>,
}

/// What the tasks of an allocation share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct SharedResources {
    #[serde(rename = "DiskMB")]
    pub disk_mb: i64,
    pub networks: Option<Vec<NetworkResource>>,
    pub ports: Vec<AssignedPort>,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct AssignedPort {
    pub label: String,
    pub value: i64,
    pub to: i64,
    #[serde(rename = "HostIP")]
    pub host_ip: String,
}

/// A network with its ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct NetworkResource {
    pub mode: String,
    #[serde(rename = "IP")]
    pub ip: String,
    pub reserved_ports: Vec<NetworkPort>,
    pub dynamic_ports: Vec<NetworkPort>,
}

/// A port of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct NetworkPort {
    pub label: String,
    pub value: i64,
    pub to: i64,
    pub host_network: String,
}

/// The older form: everything in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct OldResources {
    #[serde(rename = "CPU")]
    pub cpu: i64,
    #[serde(rename = "Cores")]
    pub cores: i64,
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i64,
    #[serde(rename = "MemoryMaxMB")]
    pub memory_max_mb: i64,
    #[serde(rename = "DiskMB")]
    pub disk_mb: i64,
    #[serde(rename = "IOPS")]
    pub iops: i64,
    #[serde(rename = "SecretsMB")]
    pub secrets_mb: i64,
    #[serde(rename = "NUMA")]
    pub numa: Option<Value>,
    #[serde(rename = "Networks")]
    pub networks: Option<Vec<NetworkResource>>,
    #[serde(rename = "Devices")]
    pub devices: Option<Vec<Value>>,
}

impl AllocatedResources {
    pub(super) fn of(record: &AllocRecord, group: Option<&TaskGroup>) -> AllocatedResources {
        let tasks = group.map_or(&[][..], |group| group.tasks.as_slice());
        let disk = group.and_then(|group| group.ephemeral_disk);
        let port = |port: &drover_core::store::record::AssignedPort| AssignedPort {
            label: port.label.clone(),
            value: i64::from(port.value),
            to: i64::from(port.to),
            host_ip: port.host_ip.clone(),
        };
        AllocatedResources {
            tasks: (tasks.iter())
                .map(|task| (task.name.clone(), TaskResources::of(task, record)))
                .collect(),
            task_lifecycles: (tasks.iter())
                .map(|task| (task.name.clone(), task.lifecycle))
                .collect(),
            shared: SharedResources {
                disk_mb: disk.unwrap_or_default().size_mb,
                networks: networks(record, group),
                ports: record.ports.iter().map(port).collect(),
            },
        }
    }

    /// What an allocation holds.
    pub(in crate::http) fn of_alloc(alloc: &AllocRecords) -> AllocatedResources {
        let record = alloc.alloc();
        AllocatedResources::of(record, alloc.job.group(record.group.as_str()))
    }

    /// What all tasks hold together, in the older form.
    pub(super) fn old(&self) -> OldResources {
        let mut all = self.shared.old();
        for task in self.tasks.values() {
            let task = task.old();
            all.cpu = all.cpu.saturating_add(task.cpu);
            all.cores = all.cores.saturating_add(task.cores);
            all.memory_mb = all.memory_mb.saturating_add(task.memory_mb);
            all.memory_max_mb = all.memory_max_mb.saturating_add(task.memory_max_mb.max(0));
        }
        all
    }
}

impl TaskResources {
    fn of(task: &Task, record: &AllocRecord) -> TaskResources {
        let cores = record.cores.iter().filter(|cores| cores.task == task.name);
        let cores: Vec<u32> = cores.flat_map(|cores| cores.ids.clone()).collect();
        let of_task = record
            .devices
            .iter()
            .filter(|devices| devices.task == task.name);
        let devices: Vec<DeviceResource> = of_task.map(DeviceResource::of).collect();
        TaskResources {
            cpu: CpuResources {
                cpu_shares: task.resources.cpu,
                reserved_cores: (!cores.is_empty()).then_some(cores),
            },
            memory: MemoryResources {
                memory_mb: task.resources.memory_mb,
                memory_max_mb: task.resources.memory_max_mb,
            },
            networks: None,
            devices: (!devices.is_empty()).then_some(devices),
        }
    }

    pub(super) fn old(&self) -> OldResources {
        OldResources {
            cpu: self.cpu.cpu_shares,
            cores: self
                .cpu
                .reserved_cores
                .as_ref()
                .map_or(0, |cores| i64::try_from(cores.len()).unwrap_or(i64::MAX)),
            memory_mb: self.memory.memory_mb,
            memory_max_mb: self.memory.memory_max_mb,
            ..OldResources::default()
        }
    }
}

impl SharedResources {
    pub(super) fn old(&self) -> OldResources {
        OldResources {
            disk_mb: self.disk_mb,
            networks: self.networks.clone(),
            ..OldResources::default()
        }
    }
}

impl DeviceResource {
    fn of(devices: &AssignedDevices) -> DeviceResource {
        DeviceResource {
            vendor: devices.group.vendor.clone(),
            kind: devices.group.kind.clone(),
            name: devices.group.name.clone(),
            device_ids: devices.ids.clone(),
        }
    }
}

/// The group's network with the ports as they were assigned. Whoever has ports has a network, also
/// if the job's version is gone that says more of them.
fn networks(record: &AllocRecord, group: Option<&TaskGroup>) -> Option<Vec<NetworkResource>> {
    let asked = group.and_then(|group| group.networks.first());
    if asked.is_none() && record.ports.is_empty() {
        return None;
    }
    let mut network = NetworkResource {
        mode: asked.map(|asked| asked.mode.clone()).unwrap_or_default(),
        ip: (record.ports.first())
            .map(|port| port.host_ip.clone())
            .unwrap_or_default(),
        ..NetworkResource::default()
    };
    for port in &record.ports {
        let reserved = asked.and_then(|asked| {
            let mut reserved = asked.reserved_ports.iter();
            reserved.find(|reserved| reserved.label == port.label)
        });
        let list = match reserved {
            Some(_) => &mut network.reserved_ports,
            None => &mut network.dynamic_ports,
        };
        list.push(NetworkPort {
            label: port.label.clone(),
            value: i64::from(port.value),
            to: i64::from(port.to),
            host_network: match port.host_network.as_str() {
                "" => DEFAULT_HOST_NETWORK.to_owned(),
                name => name.to_owned(),
            },
        });
    }
    Some(vec![network])
}
