//! What one input costs the core, with many tasks held; and what a duplicate write costs.
//!
//! `cargo bench -p drover-core`

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a benchmark may panic, and looks at a clock"
)]

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use drover_core::agent::requests::Register;
use drover_core::agent::{Agent, Input};
use drover_core::config::Config;
use drover_core::effect::{DriverEffect, Effect, HookEffect, StoreEffect, request};
use drover_core::ids::{AllocId, LaunchId, RequestId, TaskKey};
use drover_core::input::{DriverInput, HookInput, HookOutput, StoreInput};
use drover_core::ledger::Ledger;
use drover_core::model::alloc::ExitResult;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::{Job, JobType};
use drover_core::model::node::{DriverInfo, Node};
use drover_core::model::policy::{RestartMode, RestartPolicy};
use drover_core::model::task::Task;
use drover_core::store::record::AllocRecord;
use drover_core::store::{Key, Record, Saved};
use drover_core::time::{Now, Span, Timestamp};

/// An agent, and a world that does at once what it is asked.
struct World {
    agent: Agent,
    now: Now,
    inputs: VecDeque<Input>,
    running: Vec<(TaskKey, LaunchId)>,
}

impl World {
    fn with_job(job: Job) -> World {
        let mut node = Node {
            datacenter: "dc1".to_owned(),
            ..Node::default()
        };
        let driver = DriverInfo {
            detected: true,
            healthy: true,
            ..DriverInfo::default()
        };
        node.drivers.insert("bench".to_owned(), driver);
        let now = Now::default();
        let mut config = Config::new(1, node, "/alloc");
        config.keep_terminal = usize::MAX;
        let agent = Agent::restore(config, Saved::default(), now);
        let mut world = World {
            agent,
            now,
            inputs: VecDeque::new(),
            running: Vec::new(),
        };
        let count = job.task_groups[0].wanted();
        let register = Register {
            job: Arc::new(job),
            expect_index: None,
            submission: None,
        };
        world
            .inputs
            .push_back(Input::Request(RequestId(1), register.into()));
        world.settle();
        assert_eq!(world.running.len(), usize::try_from(count).unwrap());
        world
    }

    /// Handles inputs until none is left. Returns how many, and how long the core took.
    fn settle(&mut self) -> (u32, Duration) {
        let (mut steps, mut spent) = (0, Duration::ZERO);
        while let Some(input) = self.inputs.pop_front().or_else(|| self.timeout()) {
            let start = Instant::now();
            self.agent.handle(self.now, input);
            spent += start.elapsed();
            steps += 1;
            while let Some(effect) = self.agent.poll_effect() {
                self.answer(effect);
            }
        }
        (steps, spent)
    }

    /// Lets time pass to the next timer.
    fn timeout(&mut self) -> Option<Input> {
        while let Some((at, _)) = self.agent.poll_timeout() {
            self.now.wall = self.now.wall + (at - self.now.at);
            self.now.at = at;
            self.agent.handle_timeout(self.now);
            while let Some(effect) = self.agent.poll_effect() {
                self.answer(effect);
            }
            if let Some(input) = self.inputs.pop_front() {
                return Some(input);
            }
        }
        None
    }

    fn answer(&mut self, effect: Effect) {
        let input = match effect {
            Effect::Store(StoreEffect::Commit(id, _)) => Input::Store(StoreInput::Saved(id)),
            Effect::Hook(HookEffect::Run {
                op, alloc, task, ..
            }) => Input::Hook(HookInput {
                op,
                alloc,
                task,
                result: Ok(HookOutput::default()),
            }),
            Effect::Driver(_, task, DriverEffect::Start(request::Start { op, launch, .. })) => {
                self.running.push((task.clone(), launch));
                Input::Driver(
                    task,
                    DriverInput::Started {
                        op,
                        launch,
                        network: None,
                    },
                )
            }
            Effect::Driver(_, task, DriverEffect::Destroy(request::Destroy { op, launch })) => {
                Input::Driver(
                    task,
                    DriverInput::Destroyed {
                        op,
                        launch,
                        result: Ok(None),
                    },
                )
            }
            _ => return,
        };
        self.inputs.push_back(input);
    }
}

fn job(count: i64) -> Job {
    let restart = RestartPolicy {
        attempts: Some(i64::MAX),
        interval: Some(Span::secs(1_000_000_000)),
        delay: Some(Span::millis(1)),
        mode: Some(RestartMode::Fail),
        render_templates: None,
    };
    let task = Task {
        name: "t".to_owned(),
        driver: "bench".to_owned(),
        ..Task::default()
    };
    let group = TaskGroup {
        name: "g".to_owned(),
        count: Some(count),
        restart_policy: Some(restart),
        tasks: vec![task],
        ..TaskGroup::default()
    };
    Job {
        id: "bench".to_owned(),
        task_groups: vec![group],
        ..Job::default()
    }
}

fn one_input(c: &mut Criterion) {
    let mut world = World::with_job(job(1000));
    c.bench_function("one input of a task's restart, 1000 tasks held", |b| {
        b.iter_custom(|iterations| {
            let (mut steps, mut spent) = (0_u64, Duration::ZERO);
            while steps < iterations {
                let (task, launch) = world.running.swap_remove(0);
                let result = ExitResult::code(1);
                world
                    .inputs
                    .push_back(Input::Driver(task, DriverInput::Exited { launch, result }));
                let (more, time) = world.settle();
                steps += u64::from(more);
                spent += time;
            }
            spent * u32::try_from(iterations).unwrap() / u32::try_from(steps).unwrap()
        });
    });
    let late = (world.running[0].0.clone(), LaunchId(7));
    c.bench_function("one late answer, 1000 tasks held", |b| {
        b.iter(|| {
            let result = ExitResult::code(0);
            let input = DriverInput::Exited {
                launch: late.1,
                result,
            };
            world
                .agent
                .handle(world.now, Input::Driver(late.0.clone(), black_box(input)));
            world.agent.poll_effect()
        });
    });
}

/// Each of them ends once, in turn, and its record stays.
fn end_of_a_copy(c: &mut Criterion) {
    for count in [100, 1000] {
        let mut batch = job(count);
        batch.job_type = JobType::Batch;
        let name = format!("the end of a copy of a batch job, {count} copies");
        c.bench_function(&name, |b| {
            b.iter_custom(|iterations| {
                let mut spent = Duration::ZERO;
                for _ in 0..iterations {
                    let mut world = World::with_job(batch.clone());
                    for (task, launch) in core::mem::take(&mut world.running) {
                        let result = ExitResult::code(0);
                        let ended = DriverInput::Exited { launch, result };
                        world.inputs.push_back(Input::Driver(task, ended));
                        spent += world.settle().1;
                    }
                }
                spent / u32::try_from(count).unwrap()
            });
        });
    }
}

fn duplicate_write(c: &mut Criterion) {
    let mut ledger = Ledger::default();
    let record = |index: u128| {
        let create_time = Timestamp(i64::try_from(index).unwrap());
        Arc::new(AllocRecord {
            id: AllocId(index),
            create_time,
            ..AllocRecord::default()
        })
    };
    let (same, equal) = (record(500), record(500));
    for index in 0..1000 {
        let record = if index == 500 {
            same.clone()
        } else {
            record(index)
        };
        ledger.put(Key::Alloc(AllocId(index)), Record::Alloc(record));
    }
    c.bench_function("a duplicate write, the same record", |b| {
        b.iter(|| {
            ledger.put(
                Key::Alloc(AllocId(500)),
                Record::Alloc(black_box(same.clone())),
            )
        });
    });
    c.bench_function("a duplicate write, an equal record", |b| {
        b.iter(|| {
            ledger.put(
                Key::Alloc(AllocId(500)),
                Record::Alloc(black_box(equal.clone())),
            )
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = one_input, end_of_a_copy, duplicate_write
}
criterion_main!(benches);
