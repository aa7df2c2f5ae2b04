//! Which metrics there are, and what they say.

use std::sync::Arc;

use drover_core::agent::{AllocView, View};
use drover_core::alloc::runner::Phase;
use drover_core::cx::Counters;
use drover_core::model::alloc::{ClientStatus, TaskLife};
use drover_core::model::node::Node;
use drover_core::stats::host::Host;
use drover_core::stats::usage::{TaskUsage, Usage};
use drover_core::task::runner::TaskRunner;
use drover_io_real::stats::Depth;

use super::{Labels, Metrics};
use crate::http::Api;
use crate::http::errors::ApiError;
use crate::http::stats::{Outline, mhz_of_a_core};

/// A megabyte, as jobs count memory.
const MIB: f64 = (1 << 20) as f64;

/// What of the state metrics are made of.
struct Counted {
    metrics: Metrics,
    node: Labels,
    mhz: Option<f64>,
    tasks: Vec<TaskLine>,
}

/// A running task.
struct TaskLine {
    looked: drover_io_real::stats::Looked,
    labels: Labels,
    cpu: i64,
    memory: i64,
    memory_max: i64,
}

/// Gathers everything.
///
/// # Errors
/// The agent has stopped.
pub(super) async fn gather(api: &Api) -> Result<Metrics, ApiError> {
    let mut counted = api.door.ask(|view: View<'_>| count(view)).await?;
    let measures = &api.measures;
    let looked = counted.tasks.iter().map(|it| it.looked.clone()).collect();
    measures
        .tasks
        .look(looked, Depth::Totals, counted.mhz)
        .await;
    let metrics = &mut counted.metrics;
    {
        let board = measures.tasks.board();
        for line in &counted.tasks {
            let usage = board.task(&line.looked.task).cloned();
            task_used(metrics, line, usage.as_ref());
        }
    }
    let host = measures.host.look(counted.mhz).await;
    machine(metrics, &counted.node, &host);
    let pulse = api.door.pulse();
    metrics.gauge("drover.queue.answers", &counted.node, pulse.answers as f64);
    metrics.gauge(
        "drover.queue.requests",
        &counted.node,
        pulse.requests as f64,
    );
    let step_time = pulse.step_time.as_secs_f64();
    metrics.add(
        super::Kind::Counter,
        "drover.core.step_seconds",
        &counted.node,
        step_time,
    );
    Ok(counted.metrics)
}

/// What the state says, without waiting for anything.
fn count(view: View<'_>) -> Counted {
    let node = node_labels(view.node());
    let mut counted = Counted {
        metrics: Metrics::default(),
        mhz: mhz_of_a_core(view.node()),
        node: node.clone(),
        tasks: Vec::new(),
    };
    let mut sum = Sum::default();
    for alloc in view.allocs() {
        sum.add(view, alloc);
        let outline = Outline::of(alloc);
        for task in alloc.tasks() {
            let labels = task_labels(alloc, task);
            lived(&mut counted.metrics, &labels, task);
            let running = outline.running.iter();
            let looked = running.filter(|it| it.task == task.spec().key).cloned();
            let resources = &task.spec().task().resources;
            counted.tasks.extend(looked.map(|looked| TaskLine {
                looked,
                labels: labels.clone(),
                cpu: resources.cpu,
                memory: resources.memory_mb,
                memory_max: resources.memory_max_mb,
            }));
        }
    }
    sum.tell(&mut counted.metrics, &node, view.node());
    core(&mut counted.metrics, &node, view.counters());
    counted
}

fn core(metrics: &mut Metrics, node: &Labels, counters: Counters) {
    metrics.counter("drover.core.steps", node, counters.steps);
    metrics.counter("drover.core.stale_answers", node, counters.stale);
    metrics.counter("drover.core.overdue_operations", node, counters.overdue);
}

/// What became of a task so far.
fn lived(metrics: &mut Metrics, labels: &Labels, task: &TaskRunner) {
    let state = task.state();
    let dead = state.state == TaskLife::Dead;
    metrics.counter(
        "nomad.client.allocs.running",
        labels,
        u64::from(task.record().runs.0),
    );
    metrics.counter("nomad.client.allocs.restart", labels, state.restarts);
    metrics.counter(
        "nomad.client.allocs.complete",
        labels,
        u64::from(dead && !state.failed),
    );
    metrics.counter(
        "nomad.client.allocs.failed",
        labels,
        u64::from(dead && state.failed),
    );
}

/// What all allocations hold and are.
#[derive(Default)]
struct Sum {
    cpu: f64,
    memory: f64,
    memory_max: f64,
    disk: f64,
    allocs: [u64; 4],
    tasks: [u64; 3],
}

impl Sum {
    fn add(&mut self, view: View<'_>, alloc: AllocView<'_>) {
        let record = alloc.record();
        let awaited = record.previous.and_then(|id| view.alloc(id));
        let waits = awaited.is_some_and(|previous| !previous.record().finished);
        let at = match (alloc.phase(), record.status) {
            (Phase::Prerun(_), _) if waits && !record.finished => 0,
            (_, ClientStatus::Pending) => 1,
            (_, ClientStatus::Running) => 2,
            (
                _,
                ClientStatus::Complete
                | ClientStatus::Failed
                | ClientStatus::Lost
                | ClientStatus::Unknown,
            ) => 3,
        };
        self.allocs[at] += 1;
        for task in alloc.tasks() {
            self.tasks[match task.state().state {
                TaskLife::Pending => 0,
                TaskLife::Running => 1,
                TaskLife::Dead => 2,
            }] += 1;
        }
        if record.status.is_terminal() {
            return;
        }
        for task in alloc.tasks() {
            let resources = &task.spec().task().resources;
            self.cpu += resources.cpu as f64;
            self.memory += resources.memory_mb as f64;
            self.memory_max += resources.memory_max_mb.max(resources.memory_mb) as f64;
        }
        let group = alloc.job().group(record.group.as_str());
        let disk = group.and_then(|group| group.ephemeral_disk.as_ref());
        self.disk += disk.map_or(0.0, |disk| disk.size_mb as f64);
    }

    fn tell(&self, metrics: &mut Metrics, labels: &Labels, node: &Node) {
        let held = [
            ("nomad.client.allocated.cpu", self.cpu),
            ("nomad.client.allocated.memory", self.memory),
            ("nomad.client.allocated.max_memory", self.memory_max),
            ("nomad.client.allocated.disk", self.disk),
        ];
        let [blocked, pending, running, terminal] = self.allocs.map(|count| count as f64);
        let [tasks_pending, tasks_running, tasks_dead] = self.tasks.map(|count| count as f64);
        let counts = [
            ("nomad.client.allocations.blocked", blocked),
            ("nomad.client.allocations.pending", pending),
            ("nomad.client.allocations.running", running),
            ("nomad.client.allocations.terminal", terminal),
            ("nomad.client.tasks.pending", tasks_pending),
            ("nomad.client.tasks.running", tasks_running),
            ("nomad.client.tasks.dead", tasks_dead),
        ];
        for (name, value) in held.into_iter().chain(counts) {
            metrics.gauge(name, labels, value);
        }
        let number = |name: &str| node.attributes.get(name)?.parse::<f64>().ok();
        let left = [
            (
                "nomad.client.unallocated.cpu",
                number("cpu.usablecompute"),
                self.cpu,
            ),
            (
                "nomad.client.unallocated.memory",
                number("memory.totalbytes").map(|bytes| (bytes / MIB).floor()),
                self.memory,
            ),
            (
                "nomad.client.unallocated.disk",
                number("unique.storage.bytestotal").map(|bytes| (bytes / MIB).floor()),
                self.disk,
            ),
        ];
        for (name, all, held) in left {
            if let Some(all) = all {
                metrics.gauge(name, labels, all - held);
            }
        }
    }
}

/// What a running task holds and uses.
fn task_used(metrics: &mut Metrics, line: &TaskLine, usage: Option<&Arc<TaskUsage>>) {
    let labels = &line.labels;
    let positive = |megabytes: i64| (megabytes > 0).then_some(megabytes as f64);
    let held = [
        ("nomad.client.allocs.cpu.allocated", positive(line.cpu)),
        (
            "nomad.client.allocs.memory.allocated",
            positive(line.memory).map(|megabytes| megabytes * MIB),
        ),
        (
            "nomad.client.allocs.memory.max_allocated",
            positive(line.memory_max).map(|megabytes| megabytes * MIB),
        ),
    ];
    let used = usage.map(|task| used(&task.usage));
    for (name, value) in held.into_iter().chain(used.into_iter().flatten()) {
        if let Some(value) = value {
            metrics.gauge(name, labels, value);
        }
    }
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
fn machine(metrics: &mut Metrics, node: &Labels, host: &Host) {
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
        let labels = with(node, "cpu", core);
        metrics.gauge("nomad.client.host.cpu.user", &labels, used.user);
        metrics.gauge("nomad.client.host.cpu.system", &labels, used.system);
        metrics.gauge("nomad.client.host.cpu.idle", &labels, used.idle);
        metrics.gauge("nomad.client.host.cpu.total", &labels, used.total);
        metrics.gauge("nomad.client.host.cpu.total_percent", &labels, used.total);
        if let Some(ticks) = host.ticks(used) {
            metrics.gauge("nomad.client.host.cpu.total_ticks", &labels, ticks);
        }
    }
    // A disk that is mounted twice is one disk.
    let mut seen = std::collections::BTreeSet::new();
    for disk in host.disks.iter().filter(|disk| seen.insert(&disk.device)) {
        let labels = with(node, "disk", &disk.device);
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

fn with(labels: &Labels, name: &'static str, value: &str) -> Labels {
    let mut labels = (**labels).clone();
    labels.insert(name, value.to_owned());
    Arc::new(labels)
}

fn node_labels(node: &Node) -> Labels {
    let class = match node.class.as_str() {
        "" => "none",
        class => class,
    };
    let labels = [
        ("node_id", node.id.to_string()),
        ("datacenter", node.datacenter.clone()),
        ("node_class", class.to_owned()),
        ("node_pool", node.pool.clone()),
        // As the node's own page says; there is no draining yet.
        ("node_status", "ready".to_owned()),
        ("node_scheduling_eligibility", "eligible".to_owned()),
    ];
    Arc::new(labels.into())
}

fn task_labels(alloc: AllocView<'_>, task: &TaskRunner) -> Labels {
    let record = alloc.record();
    let labels = [
        ("job", alloc.job().name.clone()),
        ("task_group", record.group.to_string()),
        ("alloc_id", record.id.to_string()),
        ("task", task.spec().key.task.to_string()),
        ("namespace", record.job.namespace.to_string()),
    ];
    Arc::new(labels.into())
}

#[cfg(test)]
pub(super) fn fixed(host: &Host, usage: TaskUsage) -> Metrics {
    use drover_core::ids::LaunchId;
    use drover_core::input::TaskKey;
    let mut metrics = Metrics::default();
    let node = Node {
        datacenter: "dc1".to_owned(),
        pool: "default".to_owned(),
        attributes: [("memory.totalbytes".to_owned(), "1073741824".to_owned())].into(),
        ..Node::default()
    };
    let labels = node_labels(&node);
    let sum = Sum {
        cpu: 100.0,
        memory: 64.0,
        memory_max: 128.0,
        disk: 300.0,
        allocs: [0, 1, 2, 3],
        tasks: [4, 5, 6],
    };
    sum.tell(&mut metrics, &labels, &node);
    let counters = Counters {
        steps: 1234,
        stale: 2,
        overdue: 1,
    };
    core(&mut metrics, &labels, counters);
    let line = TaskLine {
        looked: drover_io_real::stats::Looked {
            task: TaskKey::default(),
            launch: LaunchId(1),
            driver: "".into(),
        },
        labels: Arc::new(
            [
                ("job", "a \"job\"\n".to_owned()),
                ("task", "t\\".to_owned()),
            ]
            .into(),
        ),
        cpu: 100,
        memory: 64,
        memory_max: 0,
    };
    task_used(&mut metrics, &line, Some(&Arc::new(usage)));
    machine(&mut metrics, &labels, host);
    metrics
}
