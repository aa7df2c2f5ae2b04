//! What it costs to say what one allocation uses: two tasks with two devices each, on a small
//! machine and on a large one.
//!
//! `cargo bench -p drover-core --bench stats`

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark may panic")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use drover_core::device::reported_stats::{ReportedInstance, ReportedStats};
use drover_core::ids::{AllocId, LaunchId, TaskKey, TaskName};
use drover_core::model::device::{AssignedDevices, GroupId};
use drover_core::stats::board::Board;
use drover_core::stats::running::Running;
use drover_core::stats::usage::{Cpu, Memory, TaskUsage, Usage};
use drover_core::time::Timestamp;

/// The allocation that is asked for.
const ASKED: AllocId = AllocId(0);

fn devices(count: usize) -> Vec<ReportedStats> {
    let name = |number: usize| format!("device-{number:04}");
    let instances = (0..count).map(|number| (name(number), ReportedInstance::default()));
    let instances: BTreeMap<_, _> = instances.collect();
    // Ten groups, if there are so many devices.
    let mut groups = Vec::new();
    let mut rest = instances.into_iter().peekable();
    while rest.peek().is_some() {
        groups.push(ReportedStats {
            vendor: "acme".to_owned(),
            kind: "gpu".to_owned(),
            name: format!("model-{}", groups.len()),
            instances: rest.by_ref().take((count / 10).max(4)).collect(),
        });
    }
    groups
}

fn running(alloc: AllocId, name: &str) -> Running {
    let task = TaskName::from(name);
    Running {
        task: TaskKey { alloc, task },
        launch: LaunchId(1),
        driver: "mock_driver".into(),
    }
}

fn board(tasks: u128, devices: Vec<ReportedStats>) -> Board {
    let mut board = Board::default();
    board.devices.report("acme", devices).unwrap();
    let some = Some(1);
    let usage = TaskUsage {
        usage: Usage {
            memory: Memory {
                rss: some,
                cache: some,
                swap: some,
                usage: some,
                ..Memory::default()
            },
            cpu: Cpu {
                percent: Some(1.0),
                ..Cpu::default()
            },
        },
        at: Timestamp(1),
        ..TaskUsage::default()
    };
    for number in 0..tasks {
        let name = if number % 2 == 0 { "main" } else { "side" };
        let one = running(AllocId(number / 2), name);
        board.note(one.task, one.launch, Arc::new(usage.clone()));
    }
    board
}

fn held() -> Vec<AssignedDevices> {
    let held = |task: &str, first: usize| AssignedDevices {
        task: task.to_owned(),
        plugin: "acme".to_owned(),
        group: GroupId {
            vendor: "acme".to_owned(),
            kind: "gpu".to_owned(),
            name: "model-0".to_owned(),
        },
        ids: vec![
            format!("device-{first:04}"),
            format!("device-{:04}", first + 1),
        ],
    };
    vec![held("main", 0), held("side", 2)]
}

fn one_allocation(c: &mut Criterion) {
    let held = held();
    let runs = ["main", "side"].map(|name| running(ASKED, name));
    for (tasks, host_devices) in [(2, 4), (1000, 4), (2, 1000), (1000, 1000)] {
        let board = board(tasks, devices(host_devices));
        let instances = board.of(ASKED, &held, &runs).devices.groups()[0]
            .instances
            .len();
        assert_eq!(instances, 4);
        let name = format!("one allocation of {tasks} tasks, {host_devices} devices");
        c.bench_function(&name, |b| {
            b.iter(|| black_box(&board).of(black_box(ASKED), black_box(&held), &runs));
        });
    }
}

criterion_group!(benches, one_allocation);
criterion_main!(benches);
