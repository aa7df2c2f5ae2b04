//! A container runs on while its engine is away: that nobody can say what became of it is no end of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::requests::Register;
use drover_core::agent::{Agent, Input};
use drover_core::config::Config;
use drover_core::effect::{DriverEffect, Effect, HookEffect, StoreEffect};
use drover_core::ids::{LaunchId, RequestId, TaskKey};
use drover_core::input::{DriverInput, Found, HookInput, HookOutput, StoreInput};
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::node::{DriverInfo, Node};
use drover_core::model::task::Task;
use drover_core::model::value::Value;
use drover_core::op::Op;
use drover_core::store::{Key, Record, Saved};
use drover_core::time::{Instant, Now, Span, Timestamp};

/// An agent, and a world that does at once what it is asked; but nobody says what became of a task.
struct World {
    agent: Agent,
    config: Config,
    disk: BTreeMap<Key, Record>,
    at: Instant,
    starts: usize,
    destroyed: usize,
    sought: Option<(Op, TaskKey, LaunchId)>,
}

fn now(at: Instant) -> Now {
    let since = Span(i64::try_from(at.0).unwrap());
    let wall = Timestamp(1_700_000_000_000_000_000) + since;
    Now { at, wall }
}

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

impl World {
    /// A task of this driver runs, and the agent begins again.
    fn restarted_with(driver: &str) -> World {
        let info = DriverInfo {
            detected: true,
            healthy: true,
            ..DriverInfo::default()
        };
        let node = Node {
            drivers: [(driver.to_owned(), info)].into(),
            datacenter: "dc1".to_owned(),
            ..Node::default()
        };
        let config = Config::new(7, node, "/alloc");
        let at = Instant(0);
        let mut world = World {
            agent: Agent::restore(config.clone(), Saved::default(), now(at)),
            config,
            disk: BTreeMap::new(),
            at,
            starts: 0,
            destroyed: 0,
            sought: None,
        };
        let register = Register {
            job: Arc::new(job(driver)),
            expect_index: None,
            submission: None,
        };
        let request = Input::Request(RequestId(1), register.into());
        world.agent.handle(now(at), request);
        // Long enough for it to be healthy.
        world.pass(Span::secs(120));
        assert_eq!(world.starts, 1, "it runs");
        let saved = Saved::from_records(world.disk.clone());
        world.agent = Agent::restore(world.config.clone(), saved, now(world.at));
        world.pass(Span::secs(1));
        assert!(world.sought.is_some(), "it is looked for");
        world
    }

    fn pass(&mut self, span: Span) {
        let until = self.at + span;
        loop {
            while let Some(effect) = self.agent.poll_effect() {
                if let Some(input) = self.answer(effect) {
                    self.agent.handle(now(self.at), input);
                }
            }
            match self.agent.poll_timeout() {
                Some((due, _)) if due <= until => self.at = self.at.max(due),
                Some(_) | None => break,
            }
            self.agent.handle_timeout(now(self.at));
        }
        self.at = until;
    }

    fn answer(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Store(StoreEffect::Commit(id, batch)) => {
                for (key, record) in batch.iter() {
                    match record {
                        Some(record) => drop(self.disk.insert(key.clone(), record.clone())),
                        None => drop(self.disk.remove(key)),
                    }
                }
                Some(Input::Store(StoreInput::Saved(id)))
            }
            Effect::Hook(HookEffect::Run {
                op, alloc, task, ..
            }) => Some(Input::Hook(HookInput {
                op,
                alloc,
                task,
                result: Ok(HookOutput::default()),
            })),
            Effect::Driver(_, task, effect) => {
                let answer = self.driven(&task, effect)?;
                Some(Input::Driver(task, answer))
            }
            _ => None,
        }
    }

    fn driven(&mut self, task: &TaskKey, effect: DriverEffect) -> Option<DriverInput> {
        match effect {
            DriverEffect::Start(start) => {
                self.starts += 1;
                Some(DriverInput::Started {
                    op: start.op,
                    launch: start.launch,
                    network: None,
                })
            }
            DriverEffect::Recover(recover) => {
                self.sought = Some((recover.op, task.clone(), recover.launch));
                None
            }
            DriverEffect::Destroy(destroy) => {
                self.destroyed += 1;
                Some(DriverInput::Destroyed {
                    op: destroy.op,
                    launch: destroy.launch,
                    result: Ok(None),
                })
            }
            _ => None,
        }
    }
}

#[test]
fn container_is_not_given_up_while_its_engine_is_away() {
    let mut world = World::restarted_with("docker");
    world.pass(Span::secs(3600));
    assert_eq!(world.destroyed, 0);
    let (op, task, launch) = world.sought.clone().unwrap();
    let found = DriverInput::Recovered {
        op,
        launch,
        found: Found::Running,
        network: None,
    };
    world
        .agent
        .handle(now(world.at), Input::Driver(task, found));
    world.pass(Span::secs(3600));
    assert_eq!((world.starts, world.destroyed), (1, 0), "it ran on");
}

#[test]
fn task_of_which_its_driver_says_nothing_is_given_up() {
    let mut world = World::restarted_with("test");
    world.pass(Span::secs(3600));
    assert_eq!(world.destroyed, 1);
}
