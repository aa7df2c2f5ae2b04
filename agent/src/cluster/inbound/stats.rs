//! Statistics, from the form in which the API has them to the protocol's.

use drover_rpc::types::stats::{
    AllocResourceUsage, CpuUsage, DeviceGroupStats, DeviceStats, HostCpu, HostDisk, HostMemory,
    HostStats, MemoryUsage, ResourceUsage, StatObject, StatValue, TaskResourceUsage,
};

use super::answers::time;
use crate::http::dto;

/// What the machine uses.
pub(super) fn host(stats: dto::HostStats) -> HostStats {
    HostStats {
        alloc_dir_stats: Some(disk(stats.alloc_dir_stats)),
        cpu: stats.cpu.into_iter().map(core).collect(),
        cpu_ticks_consumed: stats.cpu_ticks_consumed,
        device_stats: devices(stats.device_stats),
        disk_stats: stats.disk_stats.into_iter().map(disk).collect(),
        memory: Some(HostMemory {
            available: stats.memory.available,
            free: stats.memory.free,
            total: stats.memory.total,
            used: stats.memory.used,
        }),
        timestamp: stats.timestamp,
        uptime: stats.uptime,
    }
}

/// What an allocation uses.
pub(super) fn alloc(stats: dto::AllocStats) -> AllocResourceUsage {
    let tasks = stats.tasks.into_iter();
    AllocResourceUsage {
        resource_usage: Some(usage(stats.resource_usage)),
        tasks: tasks.map(|(name, it)| (name, task(it))).collect(),
        timestamp: stats.timestamp,
    }
}

fn core(core: dto::HostCpu) -> HostCpu {
    HostCpu {
        cpu: core.cpu,
        idle: core.idle,
        system: core.system,
        total_percent: core.total_percent,
        total_ticks: core.total_ticks,
        user: core.user,
    }
}

fn disk(disk: dto::DiskStats) -> HostDisk {
    HostDisk {
        available: disk.available,
        device: disk.device,
        inodes_used_percent: disk.inodes_used_percent,
        mountpoint: disk.mountpoint,
        size: disk.size,
        used: disk.used,
        used_percent: disk.used_percent,
    }
}

fn task(stats: dto::TaskStats) -> TaskResourceUsage {
    let pids = stats.pids.into_iter();
    TaskResourceUsage {
        pids: pids.map(|(pid, it)| (pid, usage(it))).collect(),
        resource_usage: Some(usage(stats.resource_usage)),
        timestamp: stats.timestamp,
    }
}

fn usage(usage: dto::ResourceUsage) -> ResourceUsage {
    let (cpu, memory) = (usage.cpu_stats, usage.memory_stats);
    ResourceUsage {
        cpu_stats: Some(CpuUsage {
            measured: cpu.measured.unwrap_or_default(),
            percent: cpu.percent,
            system_mode: cpu.system_mode,
            throttled_periods: cpu.throttled_periods,
            throttled_time: cpu.throttled_time,
            total_ticks: cpu.total_ticks,
            user_mode: cpu.user_mode,
        }),
        device_stats: devices(usage.device_stats),
        memory_stats: Some(MemoryUsage {
            cache: memory.cache,
            kernel_max_usage: memory.kernel_max_usage,
            kernel_usage: memory.kernel_usage,
            mapped_file: memory.mapped_file,
            max_usage: memory.max_usage,
            measured: memory.measured.unwrap_or_default(),
            rss: memory.rss,
            swap: memory.swap,
            usage: memory.usage,
        }),
    }
}

fn devices(groups: Option<Vec<dto::DeviceGroupStats>>) -> Vec<DeviceGroupStats> {
    let groups = groups.into_iter().flatten();
    let group = |group: dto::DeviceGroupStats| DeviceGroupStats {
        instance_stats: (group.instance_stats.into_iter())
            .map(|(id, it)| (id, device(it)))
            .collect(),
        name: group.name,
        r#type: group.kind,
        vendor: group.vendor,
    };
    groups.map(group).collect()
}

fn device(device: dto::DeviceStats) -> DeviceStats {
    DeviceStats {
        stats: device.stats.map(object),
        summary: device.summary.map(value),
        timestamp: time(&device.timestamp),
    }
}

fn object(object: dto::StatObject) -> StatObject {
    let (attributes, nested) = (object.attributes.into_iter(), object.nested.into_iter());
    StatObject {
        attributes: attributes.map(|(name, it)| (name, value(it))).collect(),
        nested: nested.map(|(name, it)| (name, self::object(it))).collect(),
    }
}

fn value(value: dto::StatValue) -> StatValue {
    StatValue {
        bool_val: value.bool_val,
        desc: value.desc,
        float_denominator_val: value.float_denominator_val,
        float_numerator_val: value.float_numerator_val,
        int_denominator_val: value.int_denominator_val,
        int_numerator_val: value.int_numerator_val,
        string_val: value.string_val,
        unit: value.unit,
    }
}
