//! What tasks and the machine use.

use std::collections::BTreeSet;

use drover_core::stats::host::Host;
use drover_core::stats::usage::{TaskUsage, Usage};
use drover_core::task::spec::TaskSpec;

use super::labels::Labels;
use super::{Kind, Metrics};

/// A megabyte, as jobs count memory.
pub(super) const MIB: f64 = (1 << 20) as f64;

/// What a running task holds and uses.
pub(super) fn task_used(
    metrics: &mut Metrics,
    labels: &Labels,
    spec: &TaskSpec,
    usage: Option<&TaskUsage>,
    mhz: Option<f64>,
) {
    let resources = &spec.task().resources;
    let positive = |megabytes: i64| (megabytes > 0).then_some(megabytes as f64);
    let held = [
        ("nomad.client.allocs.cpu.allocated", positive(resources.cpu)),
        (
            "nomad.client.allocs.memory.allocated",
            positive(resources.memory_mb).map(|megabytes| megabytes * MIB),
        ),
        (
            "nomad.client.allocs.memory.max_allocated",
            positive(resources.memory_max_mb).map(|megabytes| megabytes * MIB),
        ),
    ];
    let used = usage.map(|task| used(&task.usage));
    for (name, value) in held.into_iter().chain(used.into_iter().flatten()) {
        if let Some(value) = value {
            metrics.gauge(name, labels, value);
        }
    }
    let count = usage.and_then(|task| ticks_count(&task.usage, mhz));
    if let Some(count) = count {
        let name = "nomad.client.allocs.cpu.total_ticks_count";
        metrics.add(Kind::Counter, name, labels, count);
    }
}

/// MHz that a task used, added up over all of its seconds. Known only of a control group: what is
/// added up of single processes goes back when one of them ends.
fn ticks_count(usage: &Usage, mhz: Option<f64>) -> Option<f64> {
    let worked = usage.memory.usage.and(usage.cpu.worked)?;
    Some(worked as f64 / 1e9 * mhz?)
}

fn used(usage: &Usage) -> [(&'static str, Option<f64>); 14] {
    let (memory, cpu) = (&usage.memory, &usage.cpu);
    let bytes = |value: Option<u64>| value.map(|value| value as f64);
    [
        ("nomad.client.allocs.memory.rss", bytes(memory.rss)),
        ("nomad.client.allocs.memory.cache", bytes(memory.cache)),
        ("nomad.client.allocs.memory.swap", bytes(memory.swap)),
        (
            "nomad.client.allocs.memory.mapped_file",
            bytes(memory.mapped_file),
        ),
        ("nomad.client.allocs.memory.usage", bytes(memory.usage)),
        (
            "nomad.client.allocs.memory.max_usage",
            bytes(memory.max_usage),
        ),
        (
            "nomad.client.allocs.memory.kernel_usage",
            bytes(memory.kernel_usage),
        ),
        (
            "nomad.client.allocs.memory.kernel_max_usage",
            bytes(memory.kernel_max_usage),
        ),
        ("nomad.client.allocs.cpu.total_percent", cpu.percent),
        ("nomad.client.allocs.cpu.user", cpu.user),
        ("nomad.client.allocs.cpu.system", cpu.system),
        ("nomad.client.allocs.cpu.total_ticks", cpu.total_ticks),
        (
            "nomad.client.allocs.cpu.throttled_time",
            bytes(cpu.throttled_time),
        ),
        (
            "nomad.client.allocs.cpu.throttled_periods",
            bytes(cpu.throttled_periods),
        ),
    ]
}

/// What the machine uses.
pub(super) fn machine(metrics: &mut Metrics, node: &Labels, host: &Host) {
    let bytes = |value: Option<u64>| value.map(|value| value as f64);
    for (name, value) in [
        ("nomad.client.uptime", bytes(host.uptime)),
        ("nomad.client.host.memory.total", bytes(host.memory.total)),
        (
            "nomad.client.host.memory.available",
            bytes(host.memory.available),
        ),
        ("nomad.client.host.memory.used", bytes(host.memory.used)),
        ("nomad.client.host.memory.free", bytes(host.memory.free)),
    ] {
        if let Some(value) = value {
            metrics.gauge(name, node, value);
        }
    }
    for (core, used) in &host.cores {
        let labels = node.with("cpu", core);
        metrics.gauge("nomad.client.host.cpu.user", &labels, used.user);
        metrics.gauge("nomad.client.host.cpu.system", &labels, used.system);
        metrics.gauge("nomad.client.host.cpu.idle", &labels, used.idle);
        metrics.gauge("nomad.client.host.cpu.total", &labels, used.total);
        metrics.gauge("nomad.client.host.cpu.total_percent", &labels, used.total);
        if let Some(ticks) = host.ticks(used) {
            metrics.gauge("nomad.client.host.cpu.total_ticks", &labels, ticks);
        }
        if let Some(count) = host.ticks_count(used) {
            let name = "nomad.client.host.cpu.total_ticks_count";
            metrics.add(Kind::Counter, name, &labels, count);
        }
    }
    // A disk that is mounted twice is one disk.
    let mut seen = BTreeSet::new();
    for disk in host.disks.iter().filter(|disk| seen.insert(&disk.device)) {
        let labels = node.with("disk", &disk.device);
        let volume = &disk.volume;
        metrics.gauge("nomad.client.host.disk.size", &labels, volume.size as f64);
        metrics.gauge("nomad.client.host.disk.used", &labels, volume.used as f64);
        metrics.gauge(
            "nomad.client.host.disk.available",
            &labels,
            volume.available as f64,
        );
        metrics.gauge(
            "nomad.client.host.disk.used_percent",
            &labels,
            volume.used_percent,
        );
        metrics.gauge(
            "nomad.client.host.disk.inodes_percent",
            &labels,
            volume.inodes_percent,
        );
    }
}
