//! What the flight recorder costs: beside the core, for each step, and on its own thread.
//!
//! `cargo bench -p drover-io-real`. Compare `a step, not recorded` with `a step, recorded`: the
//! difference is what the core's thread pays. `hiding and encoding a step` is what the recorder's
//! own thread pays for it, besides one write for many steps.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    missing_docs,
    reason = "a benchmark may panic"
)]

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::effect::{DriverEffect, Effect, HookEffect, StoreEffect};
use drover_core::input::{
    DriverInput, HookInput, HookOutput, Input, LocalInput, RequestId, StoreInput,
};
use drover_core::model::alloc::ExitResult;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::node::{DriverInfo, Node};
use drover_core::model::policy::{RestartMode, RestartPolicy};
use drover_core::model::task::Task;
use drover_core::record::redact::{How, Redacted, TokenKey};
use drover_core::record::{Mark, Step};
use drover_core::store::Saved;
use drover_core::time::{Now, Span};
use drover_io_real::recorder::Recorder;
use rustix::time::{ClockId, clock_gettime};

/// Steps between two pauses.
const BATCH: u32 = 64;

/// An agent whose tasks end as soon as they run, and are started again for ever.
struct World {
    agent: Agent,
    recorder: Recorder,
    now: Now,
    inputs: VecDeque<Input>,
    effects: Vec<Effect>,
}

impl World {
    fn new(tasks: i64, mut recorder: Recorder) -> World {
        let mut node = Node::default();
        let works = DriverInfo {
            detected: true,
            healthy: true,
            ..DriverInfo::default()
        };
        node.drivers.insert("bench".to_owned(), works);
        let (config, saved, now) = (
            Config::new(1, node, "/alloc"),
            Saved::default(),
            Now::default(),
        );
        recorder.begin(&config, &saved, now);
        let mut world = World {
            agent: Agent::restore(config, saved, now),
            recorder,
            now,
            inputs: VecDeque::new(),
            effects: Vec::new(),
        };
        let register = LocalInput::Register {
            job: Arc::new(job(tasks)),
            expect_index: None,
        };
        world.inputs.push_back(Input::Local(RequestId(1), register));
        // Until everything is under way.
        world.steps(200);
        world
    }

    /// How long so many steps take the thread of the core: a mean over as many batches. The
    /// processor's time, not the wall's: others may be busy too.
    fn steps(&mut self, count: u32) -> Duration {
        let (mut steps, mut spent) = (0, Duration::ZERO);
        for _ in 0..count {
            let mut batch = 0;
            while batch < BATCH {
                let begin = processor_time();
                batch += self.turn();
                spent += processor_time() - begin;
                for effect in core::mem::take(&mut self.effects) {
                    self.answer(effect);
                }
            }
            steps += batch;
            // As in a real agent, whose steps do not follow each other without a pause, the
            // recorder's thread keeps up.
            std::thread::sleep(Duration::from_millis(1));
        }
        spent / steps * count
    }

    /// One turn of an agent's loop: all that came, or that a time has come. Returns its steps.
    fn turn(&mut self) -> u32 {
        let mut steps = 0;
        while let Some(input) = self.inputs.pop_front() {
            self.step(Some(input));
            steps += 1;
        }
        if steps == 0 {
            self.now.at = self.agent.poll_timeout().unwrap().0;
            self.step(None);
            steps = 1;
        }
        self.recorder.hand_over(&self.agent, self.now);
        steps
    }

    fn step(&mut self, input: Option<Input>) {
        self.recorder.step(self.now, input.as_ref());
        match input {
            Some(input) => self.agent.handle(self.now, input),
            None => self.agent.handle_timeout(self.now),
        }
        while let Some(effect) = self.agent.poll_effect() {
            self.recorder.effect(&effect);
            self.effects.push(effect);
        }
    }

    fn answer(&mut self, effect: Effect) {
        match effect {
            Effect::Store(StoreEffect::Commit(id, _)) => {
                self.inputs.push_back(Input::Store(StoreInput::Saved(id)));
            }
            Effect::Hook(HookEffect::Run {
                op, alloc, task, ..
            }) => {
                let result = Ok(HookOutput::default());
                let answer = HookInput {
                    op,
                    alloc,
                    task,
                    result,
                };
                self.inputs.push_back(Input::Hook(answer));
            }
            Effect::Driver(_, task, DriverEffect::Start { op, launch, .. }) => {
                let network = None;
                let started = DriverInput::Started {
                    op,
                    launch,
                    network,
                };
                self.inputs.push_back(Input::Driver(task.clone(), started));
                let result = ExitResult::code(1);
                let exited = DriverInput::Exited { launch, result };
                self.inputs.push_back(Input::Driver(task, exited));
            }
            Effect::Driver(_, task, DriverEffect::Destroy { op, launch }) => {
                let result = Ok(None);
                let destroyed = DriverInput::Destroyed { op, launch, result };
                self.inputs.push_back(Input::Driver(task, destroyed));
            }
            _ => {}
        }
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
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
        name: "main".to_owned(),
        driver: "bench".to_owned(),
        ..Task::default()
    };
    let group = TaskGroup {
        name: "group".to_owned(),
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

fn recorder(dir: &tempfile::TempDir) -> Recorder {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
    let dir = rustix::fs::open(dir.path(), flags, rustix::fs::Mode::empty()).unwrap();
    Recorder::open(dir, 16 << 20).unwrap()
}

fn steps(c: &mut Criterion) {
    let mut group = c.benchmark_group("50 tasks");
    let mut off = World::new(50, Recorder::off());
    group.bench_function("a step, not recorded", |b| {
        b.iter_custom(|times| off.steps(u32::try_from(times).unwrap()));
    });
    let dir = tempfile::tempdir().unwrap();
    let mut on = World::new(50, recorder(&dir));
    group.bench_function("a step, recorded", |b| {
        b.iter_custom(|times| on.steps(u32::try_from(times).unwrap()));
    });
    group.finish();
}

fn encoding(c: &mut Criterion) {
    let mut world = World::new(50, Recorder::off());
    let mut told = Vec::new();
    while told.len() < 1000 {
        let input = world.inputs.pop_front();
        if input.is_none() {
            let (at, _) = world.agent.poll_timeout().unwrap();
            world.now.at = at;
        }
        world.step(input.clone());
        let effects = core::mem::take(&mut world.effects);
        effects
            .iter()
            .for_each(|effect| world.answer(effect.clone()));
        told.push((world.now, input, effects));
    }
    let how = How::Token(TokenKey::new(1));
    let mut next = told.iter().cycle();
    c.bench_function("hiding and encoding a step", |b| {
        b.iter(|| {
            let (now, input, effects) = next.next().unwrap();
            let step = Step {
                now: *now,
                input: input.clone(),
                marks: effects.iter().map(Mark::of).collect(),
            };
            black_box(serde_json::to_vec(&Redacted::new(&step, how)).unwrap())
        });
    });
}

criterion_group!(benches, steps, encoding);
criterion_main!(benches);
