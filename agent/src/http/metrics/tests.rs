//! The forms of metrics, and of everything that is measured, with fixed values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::cx::Counters;
use drover_core::device::reported_stats::{
    ReportedInstance, ReportedObject, ReportedStats, ReportedValue,
};
use drover_core::ids::{AllocId, LaunchId, TaskKey, TaskName};
use drover_core::model::authority::Authority;
use drover_core::model::device::{AssignedDevices, GroupId};
use drover_core::model::drain::Eligibility;
use drover_core::model::float::Float;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::node::{DriverInfo, Node};
use drover_core::model::task::{Resources, Task};
use drover_core::stats::board::Board;
use drover_core::stats::cpu::CoreUse;
use drover_core::stats::host::{Disk, Host, HostMemory, Volume};
use drover_core::stats::running::Running;
use drover_core::stats::usage::{Cpu, Memory, TaskUsage, Usage};
use drover_core::store::Saved;
use drover_core::task::spec::TaskSpec;
use drover_core::time::Now;
use drover_io_real::agent_handle::CoreMetrics;
use drover_io_real::timing::Timer;

use super::jobs::Jobs;
use super::labels::Labels;
use super::sums::Sum;
use super::used::{machine, task_used};
use super::{Metrics, gather, json, text};
use crate::config::telemetry::Metadata;
use crate::http::Settings;
use crate::http::dto::{AllocStats, GroupSummary, HostStats, NodeDto};
use crate::testing::BEGAN;

fn shown(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

fn host() -> Host {
    let core = CoreUse {
        user: 20.0,
        system: 10.5,
        idle: 60.0,
        total: 35.25,
        worked: Some(12_345),
    };
    let volume = Volume::of(1000, 400, 200, 50, 40);
    let disk = |point: &str| Disk {
        device: "/dev/vda".to_owned(),
        mountpoint: point.to_owned(),
        volume,
    };
    Host {
        memory: HostMemory {
            total: Some(4096),
            available: None,
            used: Some(0),
            free: Some(1024),
        },
        cores: vec![("cpu0".to_owned(), core)],
        mhz_of_a_core: Some(2000.0),
        disks: vec![disk("/"), disk("/var/lib")],
        alloc_dir: Some(volume),
        uptime: Some(77),
        at: BEGAN,
        ..Host::default()
    }
}

fn usage() -> TaskUsage {
    let memory = Memory {
        rss: Some(1 << 20),
        cache: Some(0),
        swap: None,
        usage: Some(2 << 20),
        max_usage: Some(3 << 20),
        ..Memory::default()
    };
    let cpu = Cpu {
        percent: Some(12.5),
        user: Some(0.0),
        total_ticks: Some(250.0),
        worked: Some(90_000_000_000),
        ..Cpu::default()
    };
    let usage = Usage { memory, cpu };
    TaskUsage {
        usage,
        processes: [(42, usage)].into(),
        at: BEGAN,
    }
}

/// Two devices; of one, next to nothing was said.
fn devices() -> Vec<ReportedStats> {
    let value = |value: ReportedValue| BTreeMap::from([("value".to_owned(), value)]);
    let zero = ReportedValue {
        int_numerator: Some(0),
        int_denominator: Some(100),
        unit: "%".to_owned(),
        description: "busy".to_owned(),
        ..ReportedValue::default()
    };
    let odd = ReportedValue {
        float_numerator: Some(Float::new(0.5)),
        string: Some(String::new()),
        bool: Some(false),
        ..ReportedValue::default()
    };
    let full = ReportedInstance {
        summary: Some(zero.clone()),
        stats: Some(ReportedObject {
            nested: [(
                "inner".to_owned(),
                ReportedObject {
                    attributes: value(odd),
                    ..ReportedObject::default()
                },
            )]
            .into(),
            attributes: value(zero),
        }),
        time: Some(BEGAN),
    };
    vec![ReportedStats {
        vendor: "acme".to_owned(),
        kind: "gpu".to_owned(),
        name: "big".to_owned(),
        instances: [
            ("a".to_owned(), full),
            ("b".to_owned(), ReportedInstance::default()),
        ]
        .into(),
    }]
}

/// These tasks run, each in its first launch.
fn running(names: &[&str]) -> Vec<Running> {
    let one = |name: &&str| Running {
        task: TaskKey {
            alloc: AllocId(1),
            task: TaskName::from(*name),
        },
        launch: LaunchId(1),
        driver: "mock_driver".into(),
    };
    names.iter().map(one).collect()
}

/// Two tasks, each with a device of one group; and a third that has ended.
fn board() -> (Board, Vec<AssignedDevices>) {
    let mut board = Board::default();
    board.devices.report("acme", devices()).unwrap();
    for one in running(&["one", "two", "over"]) {
        board.note(one.task, one.launch, Arc::new(usage()));
    }
    let held = |task: &str, id: &str| AssignedDevices {
        task: task.to_owned(),
        plugin: "acme".to_owned(),
        group: GroupId {
            vendor: "acme".to_owned(),
            kind: "gpu".to_owned(),
            name: "big".to_owned(),
        },
        ids: vec![id.to_owned()],
    };
    (board, vec![held("one", "a"), held("two", "b")])
}

#[test]
fn allocation_metrics_match_snapshot() {
    let (board, held) = board();
    let usage = board.of(AllocId(1), &held, &running(&["one", "two"]));
    insta::assert_snapshot!("allocation", shown(&AllocStats::of(&usage)));
}

#[test]
fn empty_metrics_match_snapshot() {
    let nothing = Board::default().of(AllocId(1), &[], &running(&["one"]));
    insta::assert_snapshot!("nothing", shown(&AllocStats::of(&nothing)));
}

#[test]
fn host_metrics_match_snapshot() {
    let (board, _) = board();
    let stats = HostStats::of(&host(), &board.devices.all());
    insta::assert_snapshot!("host", shown(&stats));
}

#[test]
fn node_metrics_match_snapshot() {
    let attributes = [
        ("cpu.numcores", "2"),
        ("driver.raw_exec", "1"),
        ("driver.raw_exec.version", "1.0"),
        ("kernel.name", "linux"),
    ];
    let info = DriverInfo {
        detected: true,
        healthy: false,
        description: "it is ill".to_owned(),
    };
    let node = Node {
        name: "box".to_owned(),
        datacenter: "dc1".to_owned(),
        attributes: attributes.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        meta: [("rack".to_owned(), "r1".to_owned())].into(),
        drivers: [("raw_exec".to_owned(), info)].into(),
        ..Node::default()
    };
    let config = Config::new(1, node, "/alloc");
    let agent = Agent::restore(config, Saved::default(), Now::default());
    let settings = Settings {
        version: "1.0".to_owned(),
        ..Settings::default()
    };
    insta::assert_snapshot!(
        "node",
        shown(&NodeDto::of(agent.view(), &settings.nomad_version, &settings.client).full())
    );
}

/// A task of a job with odd names and metadata.
fn task() -> TaskSpec {
    let meta = |pairs: &[(&str, &str)]| {
        let owned = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        owned.collect::<BTreeMap<_, _>>()
    };
    let task = Task {
        name: "t\\".to_owned(),
        meta: meta(&[("the-owner", "near"), ("alloc_id", "forged")]),
        resources: Resources {
            cpu: 100,
            memory_mb: 64,
            ..Resources::default()
        },
        ..Task::default()
    };
    let group = TaskGroup {
        name: "g".to_owned(),
        tasks: vec![task],
        ..TaskGroup::default()
    };
    let job = Job {
        name: "a \"job\"\n".to_owned(),
        meta: meta(&[("the-owner", "far"), ("1st", "x")]),
        task_groups: vec![group],
        ..Job::default()
    };
    TaskSpec::of_group(AllocId(1), &Arc::new(job), "g", Authority::Node).remove(0)
}

#[test]
fn dispatched_job_metrics_name_parent_and_dispatch() {
    let labels = |dispatched: bool| {
        let mut job = Job::clone(task().job());
        job.id = "sum/dispatch-17-0a".to_owned();
        (job.parent_id, job.dispatched) = ("sum".to_owned(), dispatched);
        let spec = TaskSpec::of_group(AllocId(1), &Arc::new(job), "g", Authority::Node).remove(0);
        gather::task_labels(&spec, &Metadata::All)
    };
    let child = labels(true);
    assert_eq!(child.get("parent_id").map(String::as_str), Some("sum"));
    assert_eq!(child.get("dispatch_id").map(String::as_str), Some("17-0a"));
    assert_eq!(labels(false).get("parent_id"), None);
}

/// Metrics of a node where everything is known.
fn fixed() -> Metrics {
    let mut metrics = Metrics::default();
    let node = Node {
        datacenter: "dc1".to_owned(),
        pool: "default".to_owned(),
        attributes: [("memory.totalbytes".to_owned(), "1073741824".to_owned())].into(),
        ..Node::default()
    };
    let labels = Labels::new(
        gather::node_labels(&node, Eligibility::Eligible),
        Some("box"),
    );
    let sum = Sum {
        cpu: 100.0,
        memory: 64.0,
        memory_max: 128.0,
        disk: 300.0,
        allocs: [0, 1, 2, 3],
        tasks: [4, 5, 6],
    };
    sum.write(&mut metrics, &labels, &node);
    let group = [
        ("job", "web"),
        ("task_group", "g"),
        ("namespace", "default"),
    ];
    let group = group.map(|(name, value)| (name.into(), value.to_owned()));
    let running = GroupSummary {
        running: 2,
        failed: 1,
        ..GroupSummary::default()
    };
    let jobs = Jobs {
        groups: vec![(group.into(), running)],
        statuses: [1, 2, 3],
        blocked: 1,
    };
    jobs.write(&mut metrics, &labels, Some("box"));
    let counters = Counters {
        steps: 1234,
        stale: 2,
        overdue: 1,
    };
    let timer = Timer::default();
    for micros in [2, 5, 250, 3_000_000] {
        timer.note(Duration::from_micros(micros));
    }
    let core_metrics = CoreMetrics {
        answers: 3,
        steps: timer.timing(),
        ..CoreMetrics::default()
    };
    gather::core(&mut metrics, &labels, counters, &core_metrics);
    gather::broken(&mut metrics, &labels, &[]);
    let task = task();
    let of_task = Labels::new(gather::task_labels(&task, &Metadata::All), Some("box"));
    let mhz = Some(2000.0);
    task_used(&mut metrics, &of_task, &task, Some(&usage()), mhz);
    machine(&mut metrics, &labels, &host());
    metrics
}

#[test]
fn prometheus_metrics_match_snapshot() {
    let metrics = fixed();
    insta::assert_snapshot!("prometheus", text::text(&metrics));
}

#[test]
fn json_metrics_match_snapshot() {
    let metrics = fixed();
    insta::assert_snapshot!("metrics", shown(&json::shape(&metrics, BEGAN)));
}
