//! A container runs on while its engine is away: that nobody can say what became of it is no end of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod common;

use std::collections::BTreeMap;

use common::{Machine, destroyed, node_with, started};
use drover_core::agent::Input;
use drover_core::effect::{DriverEffect, Effect};
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::{DriverInput, Found};
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::task::Task;
use drover_core::model::value::Value;
use drover_core::op::Op;
use drover_core::time::{Instant, Span};

/// Tasks of which nobody says what became of them.
#[derive(Default)]
struct Tasks {
    starts: usize,
    destroyed: usize,
    sought: Option<(Op, TaskKey, LaunchId)>,
}

type World = common::World<Tasks>;

fn job(driver: &str) -> Job {
    let image = ("image".to_owned(), Value::String("web:1".to_owned()));
    let task = Task {
        name: "t".to_owned(),
        driver: driver.to_owned(),
        config: match driver {
            "docker" => [image].into(),
            _ => BTreeMap::new(),
        },
        ..Task::default()
    };
    let group = TaskGroup {
        name: "g".to_owned(),
        tasks: vec![task],
        ..TaskGroup::default()
    };
    Job {
        id: "web".to_owned(),
        task_groups: vec![group],
        ..Job::default()
    }
}

/// A task of this driver runs, and the agent begins again.
fn restarted_with(driver: &str) -> World {
    let mut world = World::with(node_with(driver), Tasks::default());
    world.register(job(driver));
    // Long enough for it to be healthy.
    world.pass(Span::secs(120));
    assert_eq!(world.starts, 1, "it runs");
    world.restart();
    world.pass(Span::secs(1));
    assert!(world.sought.is_some(), "it is looked for");
    world
}

impl Machine for Tasks {
    fn answer(&mut self, _: Instant, effect: Effect) -> Vec<Input> {
        let Effect::Driver(_, task, effect) = effect else {
            return Vec::new();
        };
        let answer = match effect {
            DriverEffect::Start(start) => {
                self.starts += 1;
                started(start.op, start.launch)
            }
            DriverEffect::Recover(recover) => {
                self.sought = Some((recover.op, task, recover.launch));
                return Vec::new();
            }
            DriverEffect::Destroy(destroy) => {
                self.destroyed += 1;
                destroyed(destroy.op, destroy.launch)
            }
            _ => return Vec::new(),
        };
        vec![Input::Driver(task, answer)]
    }
}

#[test]
fn container_is_not_given_up_while_its_engine_is_away() {
    let mut world = restarted_with("docker");
    world.pass(Span::secs(3600));
    assert_eq!(world.destroyed, 0);
    let (op, task, launch) = world.sought.clone().unwrap();
    let found = DriverInput::Recovered {
        op,
        launch,
        found: Found::Running,
        network: None,
    };
    world.take(Input::Driver(task, found));
    world.pass(Span::secs(3600));
    assert_eq!((world.starts, world.destroyed), (1, 0), "it ran on");
}

#[test]
fn task_of_which_its_driver_says_nothing_is_given_up() {
    let mut world = restarted_with("test");
    world.pass(Span::secs(3600));
    assert_eq!(world.destroyed, 1);
}
