//! Jobs whose tasks follow the tags of their images: what the agent asks of registries, and when, and what it makes of
//! the answers.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test may panic"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::{Machine, destroyed, exited, node_with, now, started};
use drover_core::agent::Input;
use drover_core::agent::requests::{Deregister, RevertJob};
use drover_core::effect::{DriverEffect, Effect, NodeEffect, request};
use drover_core::ids::{JobKey, LaunchId};
use drover_core::input::{DriverInput, Found, ImageDigests, NodeInput};
use drover_core::model::group::TaskGroup;
use drover_core::model::image::ImageUpdate;
use drover_core::model::job::Job;
use drover_core::model::policy::{RestartMode, RestartPolicy, UpdateStrategy};
use drover_core::model::task::Task;
use drover_core::model::value::Value;
use drover_core::op::Failure;
use drover_core::store::image::Look;
use drover_core::time::{Instant, Span};

const MINUTE: Span = Span::secs(60);
const HOUR: Span = Span::secs(3600);

fn hours(number: i64) -> Span {
    Span::secs(3600 * number)
}

fn minutes(number: i64) -> Span {
    Span::secs(60 * number)
}

/// The world begins at 22:13:20 UTC, so the first of its times is 46 minutes and 40 seconds later.
const EACH_HOUR: &str = "0 * * * *";
const IMAGE: &str = "reg.example:5000/web:1";

/// A registry with one tag, and containers that run but for those of `broken` content, which end at once.
struct Registry {
    tag: Result<&'static str, &'static str>,
    broken: &'static str,
    /// What each container that runs was started as.
    running: BTreeMap<LaunchId, String>,
    starts: usize,
    /// When the registry was asked.
    asked: Vec<Instant>,
}

type World = common::World<Registry>;

fn job() -> Job {
    let task = Task {
        name: "t".to_owned(),
        driver: "docker".to_owned(),
        config: [("image".to_owned(), Value::from(IMAGE))].into(),
        image_update: Some(ImageUpdate {
            schedule: EACH_HOUR.to_owned(),
            ..ImageUpdate::default()
        }),
        ..Task::default()
    };
    let group = TaskGroup {
        name: "g".to_owned(),
        tasks: vec![task],
        restart_policy: Some(RestartPolicy {
            attempts: Some(0),
            mode: Some(RestartMode::Fail),
            ..RestartPolicy::default()
        }),
        update: Some(UpdateStrategy {
            auto_revert: true,
            min_healthy_time: Span::secs(10),
            ..UpdateStrategy::default()
        }),
        ..TaskGroup::default()
    };
    Job {
        id: "web".to_owned(),
        task_groups: vec![group],
        ..Job::default()
    }
}

fn key() -> JobKey {
    JobKey::local("web")
}

/// The job runs and is stable.
fn running() -> World {
    let registry = Registry {
        tag: Ok("sha256:a"),
        broken: "none",
        running: BTreeMap::new(),
        starts: 0,
        asked: Vec::new(),
    };
    let mut world = World::with(node_with("docker"), registry);
    world.register(job());
    world.pass(MINUTE);
    assert_eq!((world.starts, world.version()), (1, 0));
    world
}

impl Machine for Registry {
    fn answer(&mut self, at: Instant, effect: Effect) -> Vec<Input> {
        match effect {
            Effect::Driver(_, task, effect) => {
                let of_task = |input| Input::Driver(task.clone(), input);
                self.driven(effect).into_iter().map(of_task).collect()
            }
            Effect::Node(NodeEffect::LookUpImage { op, query }) => {
                assert_eq!((&*query.driver, query.image.as_str()), ("docker", IMAGE));
                self.asked.push(at);
                let used = self.used(&query.launches);
                let tag = self.tag.map(str::to_owned).map_err(Failure::recoverable);
                let result = tag.map(|tag| ImageDigests { tag, used });
                vec![Input::Node(NodeInput::Image { op, result })]
            }
            _ => Vec::new(),
        }
    }
}

impl Registry {
    fn driven(&mut self, effect: DriverEffect) -> Vec<DriverInput> {
        match effect {
            DriverEffect::Start(start) => self.start(&start),
            DriverEffect::Stop(stop) => {
                let ran = self.running.remove(&stop.launch);
                let mut inputs = vec![DriverInput::Stopped {
                    op: stop.op,
                    launch: stop.launch,
                    result: Ok(()),
                }];
                inputs.extend(ran.map(|_| exited(stop.launch, 0)));
                inputs
            }
            DriverEffect::Recover(recover) => vec![DriverInput::Recovered {
                op: recover.op,
                launch: recover.launch,
                found: Found::Running,
                network: None,
            }],
            DriverEffect::Destroy(destroy) => {
                self.running.remove(&destroy.launch);
                vec![destroyed(destroy.op, destroy.launch)]
            }
            _ => Vec::new(),
        }
    }

    fn start(&mut self, start: &request::Start) -> Vec<DriverInput> {
        self.starts += 1;
        let image = start.config.config["image"].as_str().unwrap();
        let tag = self.tag.unwrap_or_default();
        let digest = image.split_once('@').map_or(tag, |(_, digest)| digest);
        assert!(image.starts_with("reg.example:5000/web"), "{image}");
        let mut inputs = vec![started(start.op, start.launch)];
        match digest == self.broken {
            true => inputs.push(exited(start.launch, 1)),
            false => drop(self.running.insert(start.launch, digest.to_owned())),
        }
        inputs
    }

    fn used(&self, launches: &BTreeSet<LaunchId>) -> BTreeSet<String> {
        let running = self.running.iter();
        let of_these = running.filter(|(launch, _)| launches.contains(launch));
        of_these.map(|(_, digest)| digest.clone()).collect()
    }

    fn runs(&self) -> Vec<&str> {
        self.running.values().map(String::as_str).collect()
    }
}

impl World {
    fn restart_after(&mut self, away: Span) {
        self.at = self.at + away;
        self.restart();
    }

    fn version(&self) -> u64 {
        self.agent.view().job(&key()).unwrap().job.version
    }

    fn last(&self) -> Look {
        self.agent.view().images(&key())[0].last.clone()
    }

    /// What is said of the next look.
    fn explained(&self) -> String {
        let view = self.agent.view();
        let found = view.explain_job(now(self.at), &key()).unwrap();
        let lines = found
            .waiting
            .iter()
            .map(|one| format!("{}: {}", one.what, one.then));
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn tag_that_moved_makes_a_version_that_runs_its_digest() {
    let mut world = running();
    world.pass(HOUR);
    assert_eq!((world.asked.len(), world.last()), (1, Look::Unchanged));
    world.tag = Ok("sha256:b");
    world.pass(HOUR);
    assert_eq!((world.version(), world.runs()), (1, vec!["sha256:b"]));
    assert!(
        world.explained().contains("it had, to sha256:b"),
        "{}",
        world.explained()
    );
    world.pass(hours(4));
    assert_eq!(
        (world.version(), world.starts, world.asked.len()),
        (1, 2, 6)
    );
}

#[test]
fn first_look_finds_what_is_older_than_its_tag() {
    let mut world = running();
    world.tag = Ok("sha256:b");
    world.pass(HOUR);
    assert_eq!((world.version(), world.runs()), (1, vec!["sha256:b"]));
}

#[test]
fn failed_roll_out_comes_back_and_is_not_tried_again_until_tag_moves() {
    let mut world = running();
    (world.tag, world.broken) = (Ok("sha256:b"), "sha256:b");
    world.pass(hours(5));
    assert_eq!((world.version(), world.runs()), (2, vec!["sha256:a"]));
    assert_eq!(world.last(), Look::Unchanged);
    assert!(
        world.explained().contains("not tried again"),
        "{}",
        world.explained()
    );
    // So it is for a new agent.
    world.restart_after(HOUR);
    world.pass(hours(2));
    assert_eq!((world.version(), world.runs()), (2, vec!["sha256:a"]));
    world.tag = Ok("sha256:c");
    world.pass(HOUR);
    assert_eq!((world.version(), world.runs()), (3, vec!["sha256:c"]));
}

#[test]
fn registry_that_is_down_is_asked_again_and_nothing_else_follows() {
    let mut world = running();
    world.tag = Err("it is down");
    world.pass(minutes(50));
    assert_eq!(world.last(), Look::Failed("it is down".to_owned()));
    assert!(
        world.explained().contains("it is down"),
        "{}",
        world.explained()
    );
    let pauses = world.asked.windows(2).map(|two| two[1] - two[0]);
    assert_eq!(pauses.collect::<Vec<_>>(), [MINUTE, minutes(2)]);
    // A new agent goes on asking.
    world.restart_after(Span::secs(1));
    world.pass(minutes(5));
    assert_eq!((world.version(), world.starts), (0, 1));
    world.tag = Ok("sha256:b");
    world.pass(minutes(10));
    assert_eq!((world.version(), world.runs()), (1, vec!["sha256:b"]));
    // It answered: what failed before is forgotten.
    world.asked.clear();
    world.tag = Err("it is down again");
    world.pass(HOUR);
    let pauses = world.asked.windows(2).map(|two| two[1] - two[0]);
    assert_eq!(pauses.take(2).collect::<Vec<_>>(), [MINUTE, minutes(2)]);
}

#[test]
fn restart_is_no_reason_to_look_but_a_missed_time_is() {
    let mut world = running();
    world.pass(HOUR);
    world.tag = Ok("sha256:b");
    world.restart_after(MINUTE);
    world.pass(minutes(10));
    assert_eq!(
        (world.asked.len(), world.version()),
        (1, 0),
        "no time of it came"
    );
    world.restart_after(hours(3));
    world.pass(MINUTE);
    assert_eq!((world.asked.len(), world.version()), (2, 1), "three did");
}

#[test]
fn submitted_job_keeps_the_digest_of_the_same_image() {
    let mut world = running();
    world.tag = Ok("sha256:b");
    world.pass(HOUR);
    world.tag = Ok("sha256:c");
    let planned = world.agent.view().with_known_digests(&Arc::new(job()));
    assert_eq!(planned.task_groups[0].tasks[0].image_digest, "sha256:b");
    world.register(job());
    world.pass(minutes(5));
    assert_eq!((world.version(), world.starts), (1, 2), "nothing new");
    let mut other = job();
    let task = &mut other.task_groups[0].tasks[0];
    task.env.insert("A".to_owned(), "1".to_owned());
    task.image_digest = "sha256:mine".to_owned();
    world.register(other);
    world.pass(minutes(5));
    assert_eq!((world.version(), world.runs()), (2, vec!["sha256:b"]));
    let mut without = job();
    without.task_groups[0].tasks[0].image_update = None;
    world.register(without);
    world.pass(minutes(5));
    assert_eq!(
        (world.version(), world.runs()),
        (3, vec!["sha256:c"]),
        "that of the tag"
    );
    let asked = world.asked.len();
    world.pass(hours(3));
    assert_eq!(world.asked.len(), asked);
}

#[test]
fn earlier_version_comes_back_with_what_it_ran_and_stays() {
    let mut world = running();
    world.tag = Ok("sha256:b");
    world.pass(HOUR);
    world.ask(RevertJob {
        job: key(),
        version: 0,
        expect_version: None,
    });
    world.pass(hours(3));
    assert_eq!((world.version(), world.runs()), (2, vec!["sha256:a"]));
    world.ask(RevertJob {
        job: key(),
        version: 1,
        expect_version: None,
    });
    world.pass(hours(3));
    assert_eq!((world.version(), world.runs()), (3, vec!["sha256:b"]));
}

#[test]
fn stopped_job_is_not_looked_at() {
    let mut world = running();
    world.pass(HOUR);
    world.ask(Deregister {
        job: key(),
        purge: false,
        no_shutdown_delay: false,
    });
    world.tag = Ok("sha256:b");
    world.pass(hours(3));
    assert_eq!((world.asked.len(), world.runs()), (1, Vec::new()));
    world.restart_after(HOUR);
    world.pass(HOUR);
    assert_eq!(world.asked.len(), 1);
}
