//! What an allocation uses, against a reference that adds up the slow way.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::cx::Rng;
use drover_core::device::said_stats::{SaidInstance, SaidStats, SaidValue};
use drover_core::ids::{AllocId, TaskKey, TaskName};
use drover_core::model::device::{AssignedDevices, GroupId};
use drover_core::stats::board::Board;
use drover_core::stats::devices::DeviceUsage;
use drover_core::stats::usage::{Cpu, Memory, TaskUsage, Usage};
use drover_core::time::Timestamp;

const SEEDS: u64 = 300;

/// A machine in which allocations of some tasks hold some devices, drawn from a seed.
struct Machine {
    board: Board,
    /// What was said of each device: its group, its id, a number.
    said: BTreeMap<(GroupId, String), i64>,
    allocs: BTreeMap<AllocId, Alloc>,
}

#[derive(Default)]
struct Alloc {
    tasks: BTreeMap<TaskName, (bool, TaskUsage)>,
    held: Vec<AssignedDevices>,
}

fn below(rng: &mut Rng, bound: u64) -> u64 {
    rng.next_u64() % bound
}

fn group(number: u64) -> GroupId {
    GroupId {
        vendor: "acme".to_owned(),
        kind: "gpu".to_owned(),
        name: format!("model{number}"),
    }
}

fn maybe(rng: &mut Rng) -> Option<u64> {
    (below(rng, 3) > 0).then(|| below(rng, 5))
}

fn usage(rng: &mut Rng) -> TaskUsage {
    let memory = Memory {
        rss: maybe(rng),
        cache: maybe(rng),
        swap: maybe(rng),
        usage: maybe(rng),
        max_usage: maybe(rng),
        ..Memory::default()
    };
    let cpu = Cpu {
        percent: maybe(rng).map(|percent| percent as f64),
        throttled_time: maybe(rng),
        ..Cpu::default()
    };
    TaskUsage {
        usage: Usage { memory, cpu },
        at: Timestamp(i64::try_from(below(rng, 100)).unwrap()),
        ..TaskUsage::default()
    }
}

impl Machine {
    fn of(seed: u64) -> Machine {
        let rng = &mut Rng::new(seed);
        let mut said = BTreeMap::new();
        let mut free = BTreeSet::new();
        for number in 0..1 + below(rng, 3) {
            for device in 0..below(rng, 6) {
                let key = (group(number), format!("device{device}"));
                // Not of every device something is said.
                if below(rng, 5) > 0 {
                    said.insert(key.clone(), i64::try_from(below(rng, 9)).unwrap());
                }
                free.insert(key);
            }
        }
        let mut machine = Machine {
            board: Board::default(),
            said,
            allocs: BTreeMap::new(),
        };
        for number in 0..1 + below(rng, 4) {
            machine.add_alloc(rng, AllocId(u128::from(number)), &mut free);
        }
        let words = machine.words();
        machine.board.devices.say("acme", words).unwrap();
        machine
    }

    fn add_alloc(&mut self, rng: &mut Rng, id: AllocId, free: &mut BTreeSet<(GroupId, String)>) {
        let mut alloc = Alloc::default();
        for number in 0..1 + below(rng, 3) {
            let task = TaskName::from(format!("task{number}").as_str());
            let usage = usage(rng);
            let key = TaskKey {
                alloc: id,
                task: task.clone(),
            };
            self.board.note(key, Arc::new(usage.clone()));
            alloc.tasks.insert(task.clone(), (below(rng, 4) > 0, usage));
            for _ in 0..below(rng, 3) {
                if let Some((group, device)) = free.pop_first() {
                    alloc.held.push(AssignedDevices {
                        task: task.to_string(),
                        plugin: "acme".to_owned(),
                        group,
                        ids: vec![device],
                    });
                }
            }
        }
        self.allocs.insert(id, alloc);
    }

    fn words(&self) -> Vec<SaidStats> {
        let mut groups: BTreeMap<&GroupId, SaidStats> = BTreeMap::new();
        for ((id, device), number) in &self.said {
            let group = groups.entry(id).or_insert_with(|| SaidStats {
                vendor: id.vendor.clone(),
                kind: id.kind.clone(),
                name: id.name.clone(),
                instances: BTreeMap::new(),
            });
            group.instances.insert(device.clone(), instance(*number));
        }
        groups.into_values().collect()
    }

    /// The devices that running tasks hold and of which something is known, by looking at all.
    fn expected_devices(&self, alloc: &Alloc) -> BTreeMap<GroupId, BTreeMap<String, i64>> {
        let mut expected: BTreeMap<GroupId, BTreeMap<String, i64>> = BTreeMap::new();
        for held in &alloc.held {
            let known = self.said.keys().any(|(group, _)| *group == held.group);
            if !known || !alloc.tasks[&TaskName::from(held.task.as_str())].0 {
                continue;
            }
            let instances = expected.entry(held.group.clone()).or_default();
            for ((group, device), number) in &self.said {
                if *group == held.group && held.ids.contains(device) {
                    instances.insert(device.clone(), *number);
                }
            }
        }
        expected
    }
}

fn instance(number: i64) -> SaidInstance {
    SaidInstance {
        summary: Some(SaidValue {
            int_numerator: Some(number),
            ..SaidValue::default()
        }),
        ..SaidInstance::default()
    }
}

fn listed(usage: &DeviceUsage) -> BTreeMap<GroupId, BTreeMap<String, i64>> {
    let number = |it: &SaidInstance| it.summary.as_ref().unwrap().int_numerator.unwrap();
    let groups = usage.groups().iter().map(|group| {
        let instances = group.instances.iter();
        let instances = instances.map(|(id, it)| (id.to_string(), number(it)));
        ((*group.group).clone(), instances.collect())
    });
    groups.collect()
}

#[test]
fn each_device_group_is_listed_once() {
    let mut shared = 0;
    for seed in 0..SEEDS {
        let machine = Machine::of(seed);
        for (id, alloc) in &machine.allocs {
            let sum = machine
                .board
                .of(*id, &alloc.held, |name| alloc.tasks[name].0);
            let expected = machine.expected_devices(alloc);
            assert_eq!(sum.devices.groups().len(), expected.len(), "seed {seed}");
            assert_eq!(listed(&sum.devices), expected, "seed {seed}");
            let of_tasks = sum.tasks.values().map(|task| task.devices.groups().len());
            shared += usize::from(of_tasks.sum::<usize>() > expected.len());
        }
    }
    assert!(shared > 20, "only {shared} allocations share a group");
}

#[test]
fn an_allocation_uses_what_its_running_tasks_use() {
    type Part = (&'static str, fn(&Usage) -> Option<f64>);
    let parts: [Part; 7] = [
        ("rss", |it| it.memory.rss.map(|n| n as f64)),
        ("cache", |it| it.memory.cache.map(|n| n as f64)),
        ("swap", |it| it.memory.swap.map(|n| n as f64)),
        ("usage", |it| it.memory.usage.map(|n| n as f64)),
        ("max usage", |it| it.memory.max_usage.map(|n| n as f64)),
        ("percent", |it| it.cpu.percent),
        ("throttled", |it| it.cpu.throttled_time.map(|n| n as f64)),
    ];
    for seed in 0..SEEDS {
        let machine = Machine::of(seed);
        for (id, alloc) in &machine.allocs {
            let sum = machine
                .board
                .of(*id, &alloc.held, |name| alloc.tasks[name].0);
            let running = || alloc.tasks.values().filter(|(runs, _)| *runs);
            for (name, part) in parts {
                let set: Vec<f64> = running().filter_map(|(_, it)| part(&it.usage)).collect();
                let expected = (!set.is_empty()).then(|| set.iter().sum::<f64>());
                assert_eq!(part(&sum.usage), expected, "{name}, seed {seed}");
            }
            let latest = running().map(|(_, it)| it.at).max();
            assert_eq!(sum.at, latest.unwrap_or_default(), "seed {seed}");
        }
    }
}
