//! What the flight recorder costs: beside the core, for each step, and on its own thread.
//!
//! `cargo bench -p drover-io-real`. Compare `not recorded` with `recorded`: the difference is what the
//! core's thread pays; how far `not recorded, again` is from the first tells how much of it is chance.
//! The least tenth is there for machines that others use too: it has least of them in it.
//!
//! The core's own time is that of its steps alone: no clock is read, nothing is carried out, and
//! nothing waits. Two jobs are lived through: a bare one, of which a step is as short as can be, and
//! one as people write them. Timers, starts, ends, saves and hooks come as they do when tasks end and
//! start again; what comes once in a while in production, such as jobs and reports on the machine, is not
//! in it, and neither are statistics, which are no inputs.
//!
//! **Results**, on a busy machine without link-time optimisation. A step of a *usual* job (two tasks with
//! variables, configuration and user) takes the core's thread 4.6 µs, and 2 to 5 % more when it is
//! recorded; one of a *bare* job 3.1 µs, and 10 to 12 % more. Of that two thirds are memory: what is
//! saved is freed 20 ms later and by another thread, so the core finds other memory. An agent's store
//! does the same to it whether it is recorded or not, and this bench has no store; without the pointer
//! to what is saved a step costs 3 to 5 % more. The recorder's thread takes 6 µs a step, and a step takes
//! 23 bytes on the disk.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    missing_docs,
    reason = "a benchmark may panic"
)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use drover_core::agent::requests::Register;
use drover_core::agent::{Agent, Input};
use drover_core::config::Config;
use drover_core::effect::{DriverEffect, Effect, HookEffect, StoreEffect, request};
use drover_core::ids::RequestId;
use drover_core::input::{DriverInput, HookInput, HookOutput, StoreInput};
use drover_core::model::alloc::ExitResult;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::node::{DriverInfo, Node};
use drover_core::model::policy::{RestartMode, RestartPolicy};
use drover_core::model::task::Task;
use drover_core::model::value::Value;
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
        let register = Register {
            job: Arc::new(job.clone()),
            expect_index: None,
            submission: None,
        };
        world
            .inputs
            .push_back(Input::Request(RequestId(1), register.into()));
        world
    }

    /// What comes in so many steps or a few more, found out by living through them.
    fn foresee(&mut self, steps: usize) -> Vec<Turn> {
        let mut dir_locks = Vec::new();
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
            dir_locks.push(turn);
        }
        dir_locks
    }

    /// One turn of an agent's loop.
    fn play(&mut self, turn: Turn, more: bool) {
        for (now, input) in turn {
            self.now = now;
            self.step(input);
        }
        let more = more && !self.at_once;
        self.recorder.hand_over(&self.agent, more);
    }

    /// How long a step of these turns takes the thread of the core, in nanoseconds. The processor's
    /// time, not the wall's: others may be busy too.
    fn time(&mut self, dir_locks: Vec<Turn>) -> f64 {
        let steps: usize = dir_locks.iter().map(Vec::len).sum();
        let mut left = dir_locks.len();
        let begin = processor_time(ClockId::ThreadCPUTime);
        for turn in dir_locks {
            left -= 1;
            self.play(turn, left > 0);
        }
        let spent = processor_time(ClockId::ThreadCPUTime) - begin;
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
            Effect::Driver(_, task, DriverEffect::Start(request::Start { op, launch, .. })) => {
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
            Effect::Driver(_, task, DriverEffect::Destroy(request::Destroy { op, launch })) => {
                let result = Ok(None);
                let destroyed = DriverInput::Destroyed { op, launch, result };
                self.inputs.push_back(Input::Driver(task, destroyed));
            }
            _ => {}
        }
    }
}

/// Of this thread, or of all.
fn processor_time(of: ClockId) -> Duration {
    let time = clock_gettime(of);
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
    Recorder::open(dir, 1 << 30).unwrap()
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
    let (mut steps, mut dir_locks) = (0, 0);
    let all_but_this = || {
        let all = processor_time(ClockId::ProcessCPUTime);
        all.saturating_sub(processor_time(ClockId::ThreadCPUTime))
    };
    let before = all_but_this();
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
        dir_locks += batches.iter().map(Vec::len).sum::<usize>();
        steps += batches.iter().flatten().map(Vec::len).sum::<usize>();
    }
    println!(
        "{what}, {steps} steps in {dir_locks} turns; a step takes, least tenth, median, mean of {} batches:",
        times[0].len()
    );
    std::thread::sleep(Duration::from_millis(500));
    let files = dirs.iter().flat_map(|dir| std::fs::read_dir(dir).unwrap());
    let bytes: u64 = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    let recorded = 2 * steps as u64;
    let spent = (all_but_this() - before).as_nanos() as u64;
    println!(
        "recorder's thread: {} ns a step; on the disk: {:.1} bytes a step",
        spent / recorded,
        bytes as f64 / recorded as f64
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

fn main() {
    steps("50 bare tasks", &job(50, vec![bare("main")]));
    let tasks = ["server", "log-shipper"].map(usual).to_vec();
    steps("2 usual tasks in 25 groups", &job(25, tasks));
}
