//! Statistics. What was not measured is 0 in Nomad's shapes; which values were is listed beside
//! them, so that zero and unset stay different.

use std::collections::BTreeMap;

use drover_core::device::reported_stats::{ReportedInstance, ReportedObject, ReportedValue};
use drover_core::model::float::Float;
use drover_core::stats::board::AllocUsage;
use drover_core::stats::devices::{DeviceUsage, GroupUsage};
use drover_core::stats::host::{Disk, Host, HostMemory, Volume};
use drover_core::stats::usage::{Cpu, Memory, TaskUsage, Usage};
use serde::{Deserialize, Serialize};

use crate::times;

/// What the machine uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct HostStats {
    pub memory: HostMemoryStats,
    #[serde(rename = "CPU")]
    pub cpu: Vec<HostCpu>,
    pub disk_stats: Vec<DiskStats>,
    pub alloc_dir_stats: DiskStats,
    pub device_stats: Option<Vec<DeviceGroupStats>>,
    pub uptime: u64,
    pub timestamp: i64,
    #[serde(rename = "CPUTicksConsumed")]
    pub cpu_ticks_consumed: f64,
}

/// The machine's memory, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct HostMemoryStats {
    pub total: u64,
    pub available: u64,
    pub used: u64,
    pub free: u64,
    pub measured: Option<Vec<String>>,
}

/// A core of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct HostCpu {
    #[serde(rename = "CPU")]
    pub cpu: String,
    pub user: f64,
    pub system: f64,
    pub idle: f64,
    pub total_percent: f64,
    pub total_ticks: f64,
}

/// A disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct DiskStats {
    pub device: String,
    pub mountpoint: String,
    pub size: u64,
    pub used: u64,
    pub available: u64,
    pub used_percent: f64,
    pub inodes_used_percent: f64,
}

/// What an allocation uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct AllocStats {
    pub resource_usage: ResourceUsage,
    pub tasks: BTreeMap<String, TaskStats>,
    pub timestamp: i64,
}

/// What a task uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct TaskStats {
    pub resource_usage: ResourceUsage,
    pub timestamp: i64,
    pub pids: BTreeMap<String, ResourceUsage>,
}

/// Memory, work and devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct ResourceUsage {
    pub memory_stats: MemoryStats,
    pub cpu_stats: CpuStats,
    pub device_stats: Option<Vec<DeviceGroupStats>>,
}

/// Memory, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct MemoryStats {
    #[serde(rename = "RSS")]
    pub rss: u64,
    pub cache: u64,
    pub swap: u64,
    pub mapped_file: u64,
    pub usage: u64,
    pub max_usage: u64,
    pub kernel_usage: u64,
    pub kernel_max_usage: u64,
    pub measured: Option<Vec<String>>,
}

/// Work of processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct CpuStats {
    pub system_mode: f64,
    pub user_mode: f64,
    pub total_ticks: f64,
    pub throttled_periods: u64,
    pub throttled_time: u64,
    pub percent: f64,
    pub measured: Option<Vec<String>>,
}

/// Devices of one group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct DeviceGroupStats {
    pub vendor: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub name: String,
    pub instance_stats: BTreeMap<String, DeviceStats>,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct DeviceStats {
    pub summary: Option<StatValue>,
    pub stats: Option<StatObject>,
    pub timestamp: String,
}

/// Values by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct StatObject {
    pub nested: BTreeMap<String, StatObject>,
    pub attributes: BTreeMap<String, StatValue>,
}

/// A value; what is unset is not there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct StatValue {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub float_numerator_val: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub float_denominator_val: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub int_numerator_val: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub int_denominator_val: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string_val: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bool_val: Option<bool>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub desc: String,
}

impl HostStats {
    /// The machine, with its devices.
    pub fn of(host: &Host, devices: &DeviceUsage) -> HostStats {
        let core = |(name, core): &(String, drover_core::stats::cpu::CoreUse)| HostCpu {
            cpu: name.clone(),
            user: core.user,
            system: core.system,
            idle: core.idle,
            total_percent: core.total,
            total_ticks: host.ticks(core).unwrap_or_default(),
        };
        let disk = |disk: &Disk| DiskStats {
            device: disk.device.clone(),
            mountpoint: disk.mountpoint.clone(),
            ..DiskStats::of(&disk.volume)
        };
        HostStats {
            memory: HostMemoryStats::of(&host.memory),
            cpu: host.cores.iter().map(core).collect(),
            disk_stats: host.disks.iter().map(disk).collect(),
            alloc_dir_stats: host
                .alloc_dir
                .as_ref()
                .map(DiskStats::of)
                .unwrap_or_default(),
            device_stats: some_groups(devices),
            uptime: host.uptime.unwrap_or_default(),
            timestamp: host.at.0,
            cpu_ticks_consumed: host.all_ticks().unwrap_or_default(),
        }
    }
}

impl HostMemoryStats {
    fn of(memory: &HostMemory) -> HostMemoryStats {
        HostMemoryStats {
            total: memory.total.unwrap_or_default(),
            available: memory.available.unwrap_or_default(),
            used: memory.used.unwrap_or_default(),
            free: memory.free.unwrap_or_default(),
            measured: measured([
                ("Total", memory.total.is_some()),
                ("Available", memory.available.is_some()),
                ("Used", memory.used.is_some()),
                ("Free", memory.free.is_some()),
            ]),
        }
    }
}

impl DiskStats {
    fn of(volume: &Volume) -> DiskStats {
        DiskStats {
            size: volume.size,
            used: volume.used,
            available: volume.available,
            used_percent: volume.used_percent,
            inodes_used_percent: volume.inodes_percent,
            ..DiskStats::default()
        }
    }
}

impl AllocStats {
    /// An allocation.
    pub fn of(usage: &AllocUsage) -> AllocStats {
        let tasks = usage.tasks.iter().map(|(name, task)| {
            let task = TaskStats::of(&task.usage, some_groups(&task.devices));
            (name.to_string(), task)
        });
        AllocStats {
            resource_usage: ResourceUsage::of(&usage.usage, Some(groups(&usage.devices))),
            tasks: tasks.collect(),
            timestamp: usage.at.0,
        }
    }
}

impl TaskStats {
    fn of(task: &TaskUsage, devices: Option<Vec<DeviceGroupStats>>) -> TaskStats {
        let processes = task.processes.iter();
        let pids = processes.map(|(pid, usage)| (pid.to_string(), ResourceUsage::of(usage, None)));
        TaskStats {
            resource_usage: ResourceUsage::of(&task.usage, devices),
            timestamp: task.at.0,
            pids: pids.collect(),
        }
    }
}

impl ResourceUsage {
    fn of(usage: &Usage, device_stats: Option<Vec<DeviceGroupStats>>) -> ResourceUsage {
        ResourceUsage {
            memory_stats: MemoryStats::of(&usage.memory),
            cpu_stats: CpuStats::of(&usage.cpu),
            device_stats,
        }
    }
}

impl MemoryStats {
    fn of(memory: &Memory) -> MemoryStats {
        let known = [
            ("RSS", memory.rss),
            ("Cache", memory.cache),
            ("Swap", memory.swap),
            ("Mapped File", memory.mapped_file),
            ("Usage", memory.usage),
            ("Max Usage", memory.max_usage),
            ("Kernel Usage", memory.kernel_usage),
            ("Kernel Max Usage", memory.kernel_max_usage),
        ];
        // For mapped files `nomad` has no column, and would show what follows below wrong names.
        let shown = |name| name != "Mapped File";
        let set = known.map(|(name, value)| (name, value.is_some() && shown(name)));
        let [
            rss,
            cache,
            swap,
            mapped_file,
            usage,
            max_usage,
            kernel_usage,
            kernel_max_usage,
        ] = known.map(|(_, value)| value.unwrap_or_default());
        MemoryStats {
            rss,
            cache,
            swap,
            mapped_file,
            usage,
            max_usage,
            kernel_usage,
            kernel_max_usage,
            measured: measured(set),
        }
    }
}

impl CpuStats {
    fn of(cpu: &Cpu) -> CpuStats {
        CpuStats {
            system_mode: cpu.system.unwrap_or_default(),
            user_mode: cpu.user.unwrap_or_default(),
            total_ticks: cpu.total_ticks.unwrap_or_default(),
            throttled_periods: cpu.throttled_periods.unwrap_or_default(),
            throttled_time: cpu.throttled_time.unwrap_or_default(),
            percent: cpu.percent.unwrap_or_default(),
            measured: measured([
                ("System Mode", cpu.system.is_some()),
                ("User Mode", cpu.user.is_some()),
                ("Throttled Periods", cpu.throttled_periods.is_some()),
                ("Throttled Time", cpu.throttled_time.is_some()),
                ("Percent", cpu.percent.is_some()),
            ]),
        }
    }
}

/// The names of what was measured; nothing if nothing was.
fn measured<const N: usize>(known: [(&str, bool); N]) -> Option<Vec<String>> {
    let set = known.into_iter().filter(|(_, set)| *set);
    let names: Vec<String> = set.map(|(name, _)| name.to_owned()).collect();
    (!names.is_empty()).then_some(names)
}

fn some_groups(devices: &DeviceUsage) -> Option<Vec<DeviceGroupStats>> {
    (!devices.is_empty()).then(|| groups(devices))
}

fn groups(devices: &DeviceUsage) -> Vec<DeviceGroupStats> {
    let group = |known: &GroupUsage| DeviceGroupStats {
        vendor: known.group.vendor.clone(),
        kind: known.group.kind.clone(),
        name: known.group.name.clone(),
        instance_stats: (known.instances.iter())
            .map(|(id, it)| (id.to_string(), DeviceStats::of(it)))
            .collect(),
    };
    devices.groups().iter().map(group).collect()
}

impl DeviceStats {
    fn of(reported: &ReportedInstance) -> DeviceStats {
        let never = || "0001-01-01T00:00:00Z".to_owned();
        DeviceStats {
            summary: reported.summary.as_ref().map(StatValue::of),
            stats: reported.stats.as_ref().map(StatObject::of),
            timestamp: reported.time.map_or_else(never, times::to_nanos),
        }
    }
}

impl StatObject {
    fn of(reported: &ReportedObject) -> StatObject {
        let nested = reported.nested.iter();
        let attributes = reported.attributes.iter();
        StatObject {
            nested: nested
                .map(|(name, it)| (name.clone(), StatObject::of(it)))
                .collect(),
            attributes: attributes
                .map(|(name, it)| (name.clone(), StatValue::of(it)))
                .collect(),
        }
    }
}

impl StatValue {
    fn of(reported: &ReportedValue) -> StatValue {
        StatValue {
            float_numerator_val: reported.float_numerator.map(Float::get),
            float_denominator_val: reported.float_denominator.map(Float::get),
            int_numerator_val: reported.int_numerator,
            int_denominator_val: reported.int_denominator,
            string_val: reported.string.clone(),
            bool_val: reported.bool,
            unit: reported.unit.clone(),
            desc: reported.description.clone(),
        }
    }
}
