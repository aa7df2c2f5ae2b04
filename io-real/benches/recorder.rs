//! What the flight recorder costs: beside the core, for each step, and on its own thread.
//!
//! `cargo bench -p drover-io-real`. Compare `not recorded` with `recorded`: the difference is what the
//! core's thread pays; how far `not recorded, again` is from the first tells how much of it is chance.
//! The least tenth is there for machines that others use too: it has least of them in it.
//!
//! The core's own time is that of its steps alone: no clock is read, nothing is carried out, and
//! nothing waits. Two jobs are lived through: a bare one, of which a step is as short as can be, and
//! one as people write them. Timers, starts, ends, saves and hooks come as they do when tasks end and
//! start again; what comes once in a while in production, such as jobs and news of the machine, is not
//! in it, and neither are statistics, which are no inputs.
//! `hiding and encoding a step` is what the recorder's own thread pays, besides one write for many
//! steps.
//!
//! **Results.** Tasks end and start without a pause, in 60 rounds in which worlds with and without
//! a recorder take turns, in an order that changes, so that each finds the processor's memory as
//! another one left it. Three runs, of the least tenth of each: a step of a *bare* job takes the
//! core's thread 1.7 µs, and 4.1 to 5.1 % more when it is recorded; a step of a *usual* job (two
//! tasks with variables, configuration and user) 2.4 µs, and 3.4 to 4.1 % more. That is 70 to 90
//! ns. Both worlds without a recorder differ by 0.3 % at most. Medians of steps, which have more of
//! what others do in them, say 1 to 9 and 3 to 6 %, where those differ by 2 %. The recorder's
//! thread takes 7 µs a step, and a step takes 250 to 450 bytes on the disk.
//!
//! **In an agent** as it is released, but with its line tables, 40 tasks of a bare or usual job run
//! `/bin/true` with pauses of a millisecond, about a thousand steps a second; its main thread is
//! sampled 5,000 times a second of its own time, with the calls that led there, for 15 to 25 s
//! (`perf record -e cpu-clock --call-graph dwarf`). Each sample outside the kernel goes to the
//! innermost of three that its calling functions name: the core with what it allocates and frees,
//! the recorder, the rest of the loop. Of the core's part the recorder's is 6.2 and 6.3 % with bare
//! tasks and 5.1 and 4.7 % with usual ones. That is more than in the bench, because after each wait
//! nothing is in the processor's fast memory; but of all that the thread does it is under 2 %: the
//! core is less than a third, the kernel more than two fifths.

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

use criterion::{Criterion, criterion_group};
use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::effect::{DriverEffect, Effect, HookEffect, StoreEffect};
use drover_core::ids::RequestId;
use drover_core::input::{DriverInput, HookInput, HookOutput, Input, LocalInput, StoreInput};
use drover_core::model::alloc::ExitResult;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::node::{DriverInfo, Node};
use drover_core::model::policy::{RestartMode, RestartPolicy};
use drover_core::model::task::Task;
use drover_core::model::value::Value;
use drover_core::record::redact::{How, Redacted, TokenKey};
use drover_core::record::{Mark, Step};
use drover_core::store::Saved;
use drover_core::time::{Now, Span};
use drover_io_real::recorder::Recorder;
use rustix::time::{ClockId, clock_gettime};

/// Steps that are timed at once.
const BATCH: usize = 64;

/// Batches of one world in a row; the first, which finds cold caches, does not count.
const ROW: usize = 20;

/// Rows of each world, and the pause after each.
const ROWS: usize = 60;
const PAUSE: Duration = Duration::from_millis(20);

/// What the core is told in one turn of an agent's loop.
type Turn = Vec<(Now, Option<Input>)>;

/// An agent whose tasks end as soon as they run, and are started again for ever.
struct World {
    agent: Agent,
    recorder: Recorder,
    /// Whether each turn is handed over by itself, as if nothing followed.
    at_once: bool,
    now: Now,
    inputs: VecDeque<Input>,
    effects: Vec<Effect>,
}

impl World {
    fn new(job: &Job, mut recorder: Recorder) -> World {
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
            at_once: true,
            now,
            inputs: VecDeque::new(),
            effects: Vec::new(),
        };
        let register = LocalInput::Register {
            job: Arc::new(job.clone()),
            expect_index: None,
        };
        world.inputs.push_back(Input::Local(RequestId(1), register));
        world
    }

    /// What comes in so many steps or a few more, found out by living through them.
    fn foresee(&mut self, steps: usize) -> Vec<Turn> {
        let mut turns = Vec::new();
        let mut left = steps;
        while left > 0 {
            let mut turn: Turn = self
                .inputs
                .drain(..)
                .map(|input| (self.now, Some(input)))
                .collect();
            if turn.is_empty() {
                self.now.at = self.agent.poll_timeout().unwrap().0;
                turn.push((self.now, None));
            }
            left = left.saturating_sub(turn.len());
            self.play(turn.clone(), false);
            for effect in core::mem::take(&mut self.effects) {
                self.answer(effect);
            }
            turns.push(turn);
        }
        turns
    }

    /// One turn of an agent's loop.
    fn play(&mut self, turn: Turn, more: bool) {
        for (now, input) in turn {
            self.now = now;
            self.step(input);
        }
        let more = more && !self.at_once;
        self.recorder.hand_over(&self.agent, self.now, more);
    }

    /// How long a step of these turns takes the thread of the core, in nanoseconds. The processor's
    /// time, not the wall's: others may be busy too.
    fn time(&mut self, turns: Vec<Turn>) -> f64 {
        let steps: usize = turns.iter().map(Vec::len).sum();
        let mut left = turns.len();
        let begin = processor_time();
        for turn in turns {
            left -= 1;
            self.play(turn, left > 0);
        }
        let spent = processor_time() - begin;
        self.effects.clear();
        spent.as_nanos() as f64 / steps as f64
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

/// Copies of one group whose tasks are started again for ever.
fn job(count: i64, tasks: Vec<Task>) -> Job {
    let restart = RestartPolicy {
        attempts: Some(i64::MAX),
        interval: Some(Span::secs(1_000_000_000)),
        delay: Some(Span::millis(1)),
        mode: Some(RestartMode::Fail),
        render_templates: None,
    };
    let group = TaskGroup {
        name: "group".to_owned(),
        count: Some(count),
        restart_policy: Some(restart),
        tasks,
        ..TaskGroup::default()
    };
    Job {
        id: "bench".to_owned(),
        task_groups: vec![group],
        ..Job::default()
    }
}

/// A task of which nothing is said.
fn bare(name: &str) -> Task {
    Task {
        name: name.to_owned(),
        driver: "bench".to_owned(),
        ..Task::default()
    }
}

/// A task with what people usually say of one.
fn usual(name: &str) -> Task {
    let texts = |pairs: &[(&str, &str)]| {
        let owned = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        owned.collect()
    };
    let config = [
        ("command", "/usr/local/bin/server"),
        ("pid_mode", "private"),
        ("work_dir", "${NOMAD_TASK_DIR}"),
    ];
    let config = config.map(|(key, value)| (key.to_owned(), Value::from(value)));
    Task {
        user: "nobody".to_owned(),
        config: config.into(),
        env: texts(&[
            ("LISTEN", "127.0.0.1:8080"),
            ("DATA_DIR", "${NOMAD_ALLOC_DIR}/data"),
            ("CACHE_DIR", "${NOMAD_TASK_DIR}/cache"),
            ("INSTANCE", "${NOMAD_ALLOC_INDEX}"),
            ("LOG_LEVEL", "info"),
            ("REGION", "${meta.region}"),
        ]),
        meta: texts(&[("owner", "platform"), ("tier", "web")]),
        kill_timeout: Some(Span::secs(20)),
        ..bare(name)
    }
}

fn recorder(dir: &tempfile::TempDir) -> Recorder {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
    let dir = rustix::fs::open(dir.path(), flags, rustix::fs::Mode::empty()).unwrap();
    Recorder::open(dir, 16 << 20).unwrap()
}

/// The worlds take turns, so that what else the machine does meets all of them alike. All of them
/// live through the same.
fn steps(what: &str, job: &Job) {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut pilot = World::new(job, Recorder::off());
    let [one, other] = [0, 1].map(|nth| World::new(job, recorder(&dirs[nth])));
    let together = World {
        at_once: false,
        ..other
    };
    let [off, again] = [(); 2].map(|()| World::new(job, Recorder::off()));
    let mut worlds = [off, one, together, again];
    let mut times: [Vec<f64>; 4] = Default::default();
    let (mut steps, mut turns) = (0, 0);
    for row in 0..=ROWS {
        let batches: Vec<Vec<Turn>> = (0..ROW).map(|_| pilot.foresee(BATCH)).collect();
        // Each world is first in turn, and finds the caches as one or the other neighbour left them.
        let many = worlds.len();
        let step = if row % 2 == 0 { 1 } else { many - 1 };
        for nth in (0..many).map(|nth| (row + nth * step) % many) {
            let (world, times) = (&mut worlds[nth], &mut times[nth]);
            let mut row_times: Vec<f64> = Vec::new();
            for batch in batches.clone() {
                row_times.push(world.time(batch));
            }
            // As in a real agent, whose steps do not follow each other for ever without a pause,
            // the recorder's thread keeps up.
            std::thread::sleep(PAUSE);
            // The first row is until everything is under way.
            if row > 0 {
                times.extend(&row_times[1..]);
            }
        }
        turns += batches.iter().map(Vec::len).sum::<usize>();
        steps += batches.iter().flatten().map(Vec::len).sum::<usize>();
    }
    println!(
        "{what}, {steps} steps in {turns} turns; a step takes, least tenth, median, mean of {} batches:",
        times[0].len()
    );
    let [off, ..] = times.each_mut().map(|times| of_all(times));
    let names = [
        "not recorded",
        "recorded, each turn handed over by itself",
        "recorded, turns following each other",
        "not recorded, again",
    ];
    for (name, times) in names.into_iter().zip(&mut times) {
        let words = of_all(times).into_iter().zip(off).map(|(time, off)| {
            let part = 100.0 * (time - off) / off;
            format!("{time:5.0} ns {part:+5.1} %")
        });
        println!("{name:42} {}", words.collect::<Vec<_>>().join(", "));
    }
}

/// The least tenth, the median and the mean.
fn of_all(times: &mut [f64]) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    [times[times.len() / 10], times[times.len() / 2], mean]
}

fn encoding(c: &mut Criterion) {
    let mut world = World::new(&job(50, vec![bare("main")]), Recorder::off());
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

criterion_group!(benches, encoding);

fn main() {
    steps("50 bare tasks", &job(50, vec![bare("main")]));
    let tasks = ["server", "log-shipper"].map(usual).to_vec();
    steps("2 usual tasks in 25 groups", &job(25, tasks));
    benches();
}
