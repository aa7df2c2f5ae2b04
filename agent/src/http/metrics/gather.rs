//! Gathers metrics: from the state, from measurements, and of the core itself.

use drover_core::agent::audit::Violation;
use drover_core::agent::{AllocView, View};
use drover_core::cx::Counters;
use drover_core::model::alloc::TaskLife;
use drover_core::model::drain::Eligibility;
use drover_core::model::node::Node;
use drover_core::stats::running::Running;
use drover_core::task::runner::TaskRunner;
use drover_core::task::spec::TaskSpec;
use drover_io_real::agent_handle::CoreMetrics;
use drover_io_real::facts;
use drover_io_real::forward::ForwardCounts;
use drover_io_real::notify::Notifier;
use drover_io_real::sampler::Depth;

use super::Metrics;
use super::jobs::{Jobs, label_dispatch};
use super::labels::{Labels, Map};
use super::sums::Sum;
use super::used::{machine, task_used};
use crate::config::telemetry::{Metadata, Telemetry};
use crate::http::Api;
use crate::http::errors::ApiError;
use crate::http::stats::mhz_of_a_core;

/// What of the state metrics are made of. Nothing is written down while the core waits.
struct StateSnapshot {
    node: Node,
    eligibility: Eligibility,
    sum: Sum,
    jobs: Jobs,
    tasks: Vec<TaskSnapshot>,
    counters: Counters,
    violations: Vec<Violation>,
}

/// A task.
pub(super) struct TaskSnapshot {
    pub(super) spec: TaskSpec,
    pub(super) runs: u64,
    pub(super) restarts: u64,
    /// Whether it failed, if it is over.
    pub(super) failed: Option<bool>,
    /// What is to be measured, if it runs.
    pub(super) sampled: Option<Running>,
}

/// Gathers everything.
///
/// # Errors
/// The agent has stopped.
pub(super) async fn gather(api: &Api) -> Result<Metrics, ApiError> {
    let telemetry = &api.settings.telemetry;
    let dispatched = telemetry.dispatched_jobs;
    let see = move |view: View<'_>| see(view, dispatched);
    let seen = api.agent_handle.ask(see).await?;
    let mhz = mhz_of_a_core(&seen.node);
    let host_name = host_name(telemetry, &seen.node);
    let node = Labels::new(
        node_labels(&seen.node, seen.eligibility),
        host_name.as_deref(),
    );
    let mut metrics = Metrics::default();
    seen.sum.write(&mut metrics, &node, &seen.node);
    seen.jobs.write(&mut metrics, &node, host_name.as_deref());
    core(
        &mut metrics,
        &node,
        seen.counters,
        &api.agent_handle.core_metrics(),
    );
    broken(&mut metrics, &node, &seen.violations);
    let own = node_labels(&seen.node, seen.eligibility);
    notified(&mut metrics, &own, &api.settings.notifier);
    forwarded(&mut metrics, &own, &api.settings.forwarded);
    let sampler = &api.measures.tasks;
    if telemetry.allocations {
        let sampled = seen.tasks.iter().filter_map(|it| it.sampled.clone());
        sampler.refresh(sampled.collect(), Depth::Totals, mhz).await;
    }
    for task in &seen.tasks {
        let map = task_labels(&task.spec, &telemetry.metadata);
        let labels = Labels::new(map, host_name.as_deref());
        lived(&mut metrics, &labels, task);
        if let Some(sampled) = task.sampled.as_ref().filter(|_| telemetry.allocations) {
            let usage = sampler
                .board()
                .launch(&sampled.task, sampled.launch)
                .cloned();
            task_used(&mut metrics, &labels, &task.spec, usage.as_deref(), mhz);
        }
    }
    if telemetry.node {
        machine(&mut metrics, &node, &*api.measures.host.sample(mhz).await);
    }
    Ok(metrics)
}

/// What the state says.
fn see(view: View<'_>, with_dispatched: bool) -> StateSnapshot {
    let mut seen = StateSnapshot {
        node: view.node().clone(),
        eligibility: view.node_record().eligibility,
        sum: Sum::default(),
        jobs: Jobs::see(view, with_dispatched),
        tasks: Vec::new(),
        counters: view.counters(),
        violations: view.violations(),
    };
    for alloc in view.allocs() {
        seen.sum.add(view, alloc);
        see_tasks(alloc, &mut seen.tasks);
    }
    seen
}

fn see_tasks(alloc: AllocView<'_>, tasks: &mut Vec<TaskSnapshot>) {
    let mut running = Running::of(alloc);
    let seen = |task: &TaskRunner| {
        let state = task.state();
        let at = running.iter().position(|it| it.task == task.spec().key);
        TaskSnapshot {
            spec: task.spec().clone(),
            runs: u64::from(task.record().runs.0),
            restarts: state.restarts,
            failed: (state.state == TaskLife::Dead).then_some(state.failed),
            sampled: at.map(|at| running.swap_remove(at)),
        }
    };
    tasks.extend(alloc.tasks().iter().map(seen));
}

/// How the core does.
pub(super) fn core(
    metrics: &mut Metrics,
    node: &Labels,
    counters: Counters,
    core_metrics: &CoreMetrics,
) {
    metrics.counter("drover.core.steps", node, counters.steps);
    metrics.counter("drover.core.stale_answers", node, counters.stale);
    metrics.counter("drover.core.overdue_operations", node, counters.overdue);
    metrics.gauge("drover.queue.answers", node, core_metrics.answers as f64);
    metrics.gauge("drover.queue.requests", node, core_metrics.requests as f64);
    for (name, longest, timing) in [
        (
            "drover.core.step_seconds",
            "drover.core.longest_step_seconds",
            core_metrics.steps,
        ),
        (
            "drover.core.question_seconds",
            "drover.core.longest_question_seconds",
            core_metrics.questions,
        ),
    ] {
        metrics.gauge(longest, node, timing.longest.as_secs_f64());
        metrics.timing(name, node, timing);
    }
}

/// What does not hold of the core, which is nothing unless it is wrong.
pub(super) fn broken(metrics: &mut Metrics, node: &Labels, violations: &[Violation]) {
    for what in violations {
        tracing::error!("{what}: this is a bug, and the recording shows how it came to be");
    }
    let count = violations.len() as f64;
    metrics.gauge("drover.core.invariant_violations", node, count);
}

/// What became of what operators are told, for each target.
fn notified(metrics: &mut Metrics, own: &Map, notifier: &Notifier) {
    for target in notifier.metrics() {
        let mut map = own.clone();
        map.insert("target".into(), target.name);
        let labels = Labels::new(map, None);
        metrics.counter("drover.notify.sent", &labels, target.sent);
        metrics.counter("drover.notify.failed", &labels, target.failed);
        metrics.counter("drover.notify.given_up", &labels, target.given_up);
        metrics.counter("drover.notify.dropped", &labels, target.dropped);
        metrics.gauge("drover.notify.waiting", &labels, target.waiting as f64);
    }
}

/// What became of the logs that are sent elsewhere, for each destination.
fn forwarded(metrics: &mut Metrics, own: &Map, counts: &ForwardCounts) {
    for to in counts.metrics() {
        let mut map = own.clone();
        map.insert("destination".into(), to.name);
        let labels = Labels::new(map, None);
        for (name, count) in [
            ("drover.log_forward.lines", to.lines),
            ("drover.log_forward.bytes", to.bytes),
            ("drover.log_forward.failures", to.failures),
            ("drover.log_forward.refused_lines", to.refused),
            ("drover.log_forward.lost_bytes", to.lost),
        ] {
            metrics.counter(name, &labels, count);
        }
    }
}

/// What became of a task so far.
fn lived(metrics: &mut Metrics, labels: &Labels, task: &TaskSnapshot) {
    let ended = |failed| u64::from(task.failed == Some(failed));
    for (name, count) in [
        ("nomad.client.allocs.running", task.runs),
        ("nomad.client.allocs.restart", task.restarts),
        ("nomad.client.allocs.complete", ended(false)),
        ("nomad.client.allocs.failed", ended(true)),
    ] {
        metrics.counter(name, labels, count);
    }
}

/// The name that gauges bear as the host's, if they do.
fn host_name(telemetry: &Telemetry, node: &Node) -> Option<String> {
    let name = match telemetry.use_node_name {
        true => node.name.clone(),
        false => facts::hostname(),
    };
    telemetry.hostname.then_some(name)
}

pub(super) fn node_labels(node: &Node, eligibility: Eligibility) -> Map {
    let class = match node.class.as_str() {
        "" => "none",
        class => class,
    };
    let labels = [
        ("node_id", node.id.to_string()),
        ("datacenter", node.datacenter.clone()),
        ("node_class", class.to_owned()),
        ("node_pool", node.pool.clone()),
        ("node_status", "ready".to_owned()),
        (
            "node_scheduling_eligibility",
            eligibility.as_str().to_owned(),
        ),
    ];
    labels.map(|(name, value)| (name.into(), value)).into()
}

pub(super) fn task_labels(spec: &TaskSpec, metadata: &Metadata) -> Map {
    let (job, group) = (spec.job(), spec.group());
    // What is nearer to the task wins, and nothing of it changes whose metrics these are.
    let all = job.meta.iter().chain(&group.meta).chain(&spec.task().meta);
    let wanted = all.filter(|(key, _)| metadata.has(key));
    let mut labels: Map = wanted
        .map(|(key, value)| (label_name(key).into(), value.clone()))
        .collect();
    let own = [
        ("job", job.name.clone()),
        ("task_group", group.name.clone()),
        ("alloc_id", spec.key.alloc.to_string()),
        ("task", spec.key.task.to_string()),
        ("namespace", job.namespace.to_string()),
    ];
    labels.extend(own.map(|(name, value)| (name.into(), value)));
    label_dispatch(&mut labels, job);
    labels
}

/// A key of metadata as Prometheus takes it.
fn label_name(key: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let name = key.replace(|letter| !fits(letter), "_");
    match name.starts_with(|first: char| first.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}
