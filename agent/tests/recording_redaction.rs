//! Secrets at every place where a job, a driver, a hook or the agent's own environment may have
//! one: none of them is in a recording, and the recording plays the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "recording_redaction/planted.rs"]
mod planted;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drover_core::agent::requests::{PutVariable, Register, Signal};
use drover_core::agent::{Agent, Input};
use drover_core::alloc::runner::AllocRunner;
use drover_core::config::Config;
use drover_core::effect::{DriverEffect, Effect, HookEffect, StoreEffect, request};
use drover_core::ids::RequestId;
use drover_core::input::{DriverInput, Found, HookInput, HookOutput, StoreInput};
use drover_core::model::alloc::ExitResult;
use drover_core::model::node::{DriverInfo, Node};
use drover_core::model::submission::Submission;
use drover_core::model::variable::{Items, VariableKey};
use drover_core::op::Failure;
use drover_core::store::{Batch, Key, Record, Saved};
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::{Instant, Now, Span, Timestamp};
use drover_core::work::HookWork;
use drover_io_real::recorder::Recorder;
use drover_io_sim::replay::{Recording, verify};
use drover_recorder::file::{self, End};
use planted::{SECRET, job};

/// An agent in a little world where whatever is asked fails, now and then, with words that have a
/// secret in them.
struct Rig {
    agent: Agent,
    recorder: Recorder,
    now: Now,
    disk: BTreeMap<Key, Record>,
    answers: Vec<Input>,
    /// Ends of tasks: they come when nothing else does.
    ends: Vec<Input>,
    asked: u64,
    steps: u64,
}

fn config() -> Config {
    let works = DriverInfo {
        detected: true,
        healthy: true,
        ..DriverInfo::default()
    };
    let mut node = Node::default();
    node.drivers.insert("custom".to_owned(), works.clone());
    node.drivers.insert("mock_driver".to_owned(), works);
    let mut config = Config::new(7, node, "/alloc");
    let host = ("HOST_TOKEN".to_owned(), "hunter2-host".to_owned());
    config.host_env = vec![host];
    config
}

fn recorder(dir: &Path, size: u64) -> Recorder {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
    let dir = rustix::fs::open(dir, flags, rustix::fs::Mode::empty()).unwrap();
    Recorder::open(dir, size).unwrap()
}

fn words(what: &str) -> String {
    format!("it said \"{SECRET}-{what}\"")
}

/// What a driver answers to the how-manieth that was asked.
fn answer_of(asked: DriverEffect, nth: u64) -> DriverInput {
    let fails = |what| Failure::fatal(words(what));
    match asked {
        DriverEffect::Start(request::Start { op, launch, .. }) if nth.is_multiple_of(5) => {
            let failure = Failure::recoverable(words("start"));
            DriverInput::StartFailed {
                op,
                launch,
                failure,
            }
        }
        DriverEffect::Start(request::Start { op, launch, .. }) => DriverInput::Started {
            op,
            launch,
            network: None,
        },
        DriverEffect::Recover(request::Recover { op, launch, .. }) => DriverInput::Recovered {
            op,
            launch,
            found: Found::Gone(words("gone")),
            network: None,
        },
        DriverEffect::Stop(request::Stop { op, launch, .. }) => DriverInput::Stopped {
            op,
            launch,
            result: Err(fails("stop")),
        },
        DriverEffect::Signal(request::Signal { op, launch, .. }) => DriverInput::Signaled {
            op,
            launch,
            result: Err(fails("signal")),
        },
        DriverEffect::Exec(request::Exec { op, launch, .. }) => DriverInput::Executed {
            op,
            launch,
            result: if nth.is_multiple_of(2) {
                Err(fails("script"))
            } else {
                Ok(3)
            },
            output: String::new(),
        },
        DriverEffect::Health(request::Health { op, launch }) => DriverInput::Executed {
            op,
            launch,
            result: Err(fails("health")),
            output: String::new(),
        },
        DriverEffect::OpenSession(request::OpenSession { op, launch, .. }) => {
            DriverInput::SessionOpened {
                op,
                launch,
                result: if nth.is_multiple_of(2) {
                    Err(fails("session"))
                } else {
                    Ok(())
                },
            }
        }
        DriverEffect::Destroy(request::Destroy { op, launch }) => DriverInput::Destroyed {
            op,
            launch,
            result: match nth % 7 {
                0 => Err(Failure::recoverable(words("destroy"))),
                _ => Ok(None),
            },
        },
    }
}

impl Rig {
    /// An agent that begins with what the disk holds.
    fn begin(disk: BTreeMap<Key, Record>, mut recorder: Recorder, now: Now) -> Rig {
        let saved = Saved::from_records(disk.clone());
        recorder.begin(&config(), &saved, now);
        let agent = Agent::restore(config(), saved, now);
        let mut rig = Rig {
            agent,
            recorder,
            now,
            disk,
            answers: Vec::new(),
            ends: Vec::new(),
            asked: 0,
            steps: 0,
        };
        rig.drain();
        rig
    }

    fn feed(&mut self, input: Option<Input>) {
        self.steps += 1;
        self.recorder.step(self.now, input.as_ref());
        match input {
            Some(input) => self.agent.handle(self.now, input),
            None => self.agent.handle_timeout(self.now),
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(effect) = self.agent.poll_effect() {
            self.recorder.effect(&effect);
            self.carry_out(effect);
        }
        self.recorder.hand_over(&self.agent, false);
    }

    /// Answers come in order, and time passes where there are none.
    fn live(&mut self, steps: u64) {
        let until = self.steps + steps;
        while self.steps < until {
            if self.answers.is_empty() {
                self.answers.append(&mut self.ends);
            }
            if self.answers.is_empty() {
                let Some((at, _)) = self.agent.poll_timeout() else {
                    return;
                };
                let passed = at - self.now.at;
                self.now.at = at;
                self.now.wall = self.now.wall + passed;
                self.feed(None);
            } else {
                let answer = self.answers.remove(0);
                self.now.at = self.now.at + Span::millis(1);
                self.feed(Some(answer));
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        self.asked += 1;
        let nth = self.asked;
        match effect {
            Effect::Store(StoreEffect::Commit(id, batch)) => {
                self.save(Arc::unwrap_or_clone(batch));
                self.answers.push(Input::Store(StoreInput::Saved(id)));
            }
            Effect::Hook(HookEffect::Run {
                op,
                alloc,
                task,
                work,
            }) => {
                let renders = matches!(work, HookWork::RenderTemplates(_));
                let env = [("FROM_HOOK".to_owned(), format!("{SECRET}-hook"))];
                let result = match nth % 31 {
                    0 => Err(Failure::recoverable(words("hook"))),
                    _ => Ok(HookOutput {
                        env: env.into(),
                        message: words("message"),
                        rendered: vec!["1".into(); usize::from(renders)],
                        ..HookOutput::default()
                    }),
                };
                self.answers.push(Input::Hook(HookInput {
                    op,
                    alloc,
                    task,
                    result,
                }));
            }
            Effect::Driver(_, key, asked) => {
                let answer = answer_of(asked, nth);
                if let DriverInput::Started { launch, .. } = answer {
                    let result = ExitResult {
                        code: Some(1),
                        message: Some(words("exit")),
                        ..ExitResult::default()
                    };
                    let end = DriverInput::Exited { launch, result };
                    self.ends.push(Input::Driver(key.clone(), end));
                }
                self.answers.push(Input::Driver(key, answer));
            }
            _ => {}
        }
    }

    fn save(&mut self, batch: Batch) {
        for (key, record) in batch {
            match record {
                Some(record) => self.disk.insert(key, record),
                None => self.disk.remove(&key),
            };
        }
    }
}

/// What is in the recording.
fn text_of(dir: &Path) -> String {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let (lines, end) = file::read(&fs::read(path).unwrap());
            assert_eq!(end, End::Whole, "{}", path.display());
            String::from_utf8(lines).unwrap()
        })
        .collect()
}

/// Whether the disk says of a task that it may be alive.
fn is_alive(record: &Record) -> bool {
    let Record::Task(task) = record else {
        return false;
    };
    let launch = task.launch.as_ref();
    launch.is_some_and(|launch| launch.exit.is_none() && launch.start_failed.is_none())
}

/// How many files the recording has.
fn files(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

/// A life with this size of recording, and another that goes on from what it saved.
fn two_lives(dir: &Path, size: u64, steps: u64, segments: usize) {
    let now = Now {
        at: Instant(1_000_000_000),
        wall: Timestamp(1_700_000_000_000_000_000),
    };
    let mut first = Rig::begin(BTreeMap::new(), recorder(dir, size), now);
    let register = Register {
        job: Arc::new(job()),
        expect_index: None,
        submission: Some(Arc::new(Submission {
            source: format!("env {{ TOKEN = \"{SECRET}-source\" }}").into(),
            format: "hcl2".into(),
            variable_flags: BTreeMap::from([(format!("{SECRET}-name"), format!("{SECRET}-flag"))]),
            variables: format!("token = \"{SECRET}-variables\"").into(),
        })),
    };
    first.feed(Some(Input::Request(RequestId(1), register.into())));
    let put = PutVariable {
        key: VariableKey {
            namespace: "default".into(),
            path: "nomad/jobs/job".into(),
        },
        items: Items::new(BTreeMap::from([(
            format!("{SECRET}-key"),
            format!("{SECRET}-item"),
        )]))
        .unwrap(),
        expect: Some(0),
    };
    first.feed(Some(Input::Request(RequestId(3), put.clone().into())));
    // Refused: it is there already.
    first.feed(Some(Input::Request(RequestId(4), put.into())));
    live_slowly(&mut first, dir, steps);
    while files(dir) < segments {
        live_slowly(&mut first, dir, 100);
    }
    // A task runs, and an operator sends it a signal; it still runs when the agent dies.
    let runs = |task: &TaskRunner| matches!(task.phase(), Phase::Running);
    while !first
        .agent
        .view()
        .allocs()
        .flat_map(AllocRunner::tasks)
        .any(runs)
    {
        first.live(1);
    }
    let alloc = first.agent.view().allocs().next().unwrap().record().id;
    let signal = Signal {
        alloc,
        task: None,
        signal: "SIGHUP".to_owned(),
    };
    first.feed(Some(Input::Request(RequestId(2), signal.into())));
    let answer = |input: &Input| matches!(input, Input::Driver(_, DriverInput::Signaled { .. }));
    assert!(first.answers.iter().any(answer), "no signal was sent");
    while first.answers.iter().any(answer) {
        first.live(1);
    }
    while !first.disk.values().any(is_alive) {
        first.live(1);
    }
    let (disk, now) = (first.disk.clone(), first.now);
    drop(first);
    let mut second = Rig::begin(disk, recorder(dir, size), now);
    live_slowly(&mut second, dir, steps);
}

/// The core waits for no recorder, and here it has nothing else to wait for: so that no steps are
/// left out, some are written before more are made.
fn live_slowly(rig: &mut Rig, dir: &Path, steps: u64) {
    let timeout = std::time::Instant::now() + std::time::Duration::from_secs(60);
    for _ in 0..steps / 50 {
        let before = last_file(dir);
        rig.live(50);
        while last_file(dir) == before {
            assert!(std::time::Instant::now() < timeout, "nothing is written");
            std::thread::yield_now();
        }
    }
}

/// The latest file of the recording, and how long it is.
fn last_file(dir: &Path) -> Option<(PathBuf, u64)> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let last = entries.max()?;
    // It may have been dropped by now.
    let length = fs::metadata(&last).map_or(0, |metadata| metadata.len());
    Some((last, length))
}

#[test]
fn recording_contains_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    two_lives(dir.path(), 128 << 10, 500, 3);
    let text = text_of(dir.path());
    let found = text
        .find(SECRET)
        .map(|at| &text[at.saturating_sub(120)..at + 60]);
    assert_eq!(found, None);
    assert!(
        !text.contains("20241121"),
        "numbers of others' data are hidden too"
    );
    for shown in [
        "\"Snapshot\"",
        "\"Restore\"",
        "FROM_HOOK",
        "HOST_TOKEN",
        "PutVariable",
        "redacted:",
        "90s",
    ] {
        assert!(text.contains(shown), "{shown:?} is not there");
    }
    for what in [
        "StartFailed",
        "Exited",
        "Gone",
        "Signaled",
        "Executed",
        "Destroyed",
        "\"Err\"",
    ] {
        assert!(text.contains(what), "no {what} was recorded");
    }
}

#[test]
fn redacted_recording_replays_identically() {
    let dir = tempfile::tempdir().unwrap();
    two_lives(dir.path(), 16 << 20, 2_000, 1);
    let verdict = verify(&Recording::open(dir.path()).unwrap());
    let difference = verdict
        .difference
        .map(|(interval, what)| format!("{interval:?}: {what}"));
    assert_eq!(difference, None);
    assert!(verdict.steps > 4_000, "{}", verdict.steps);
    assert_eq!((verdict.lives, verdict.gaps), (2, 0));
}

#[test]
fn recording_without_oldest_segment_replays() {
    let dir = tempfile::tempdir().unwrap();
    let size = 48 << 10;
    two_lives(dir.path(), size, 2_000, 2);
    let files = fs::read_dir(dir.path()).unwrap();
    let lengths = files.map(|file| file.unwrap().metadata().unwrap().len());
    let length: u64 = lengths.sum();
    assert!(length <= size, "{length} bytes");
    let recording = Recording::open(dir.path()).unwrap();
    assert!(
        recording.segments()[0].name.as_str() > "00000001.rec",
        "nothing was dropped"
    );
    let verdict = verify(&recording);
    let difference = verdict
        .difference
        .map(|(interval, what)| format!("{interval:?}: {what}"));
    assert_eq!(difference, None);
}
