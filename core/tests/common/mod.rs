//! An agent in a world that does at once what it is asked: what is saved is kept over restarts, and every hook
//! succeeds. The rest, tasks above all, is up to each program's machine.

#![allow(dead_code, reason = "each program uses a part")]

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use drover_core::agent::requests::{Register, Request};
use drover_core::agent::{Agent, Input};
use drover_core::config::Config;
use drover_core::effect::{Effect, HookEffect, Reply, StoreEffect};
use drover_core::ids::{LaunchId, RequestId};
use drover_core::input::{DriverInput, HookInput, HookOutput, StoreInput};
use drover_core::model::alloc::ExitResult;
use drover_core::model::job::Job;
use drover_core::model::node::{DriverInfo, Node};
use drover_core::op::Op;
use drover_core::store::{Key, Record, Saved};
use drover_core::time::{Instant, Now, Span, Timestamp};

/// What carries out effects.
pub(crate) trait Machine {
    /// Does what the agent asks for, besides saving, replying and hooks; what comes of it at once.
    fn answer(&mut self, at: Instant, effect: Effect) -> Vec<Input>;
}

/// An agent, and its world. What the machine has is at hand as the world's own.
pub(crate) struct World<M> {
    pub(crate) agent: Agent,
    pub(crate) at: Instant,
    machine: M,
    config: Config,
    disk: BTreeMap<Key, Record>,
    requests: u64,
}

impl<M> Deref for World<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.machine
    }
}

impl<M> DerefMut for World<M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.machine
    }
}

/// The clocks.
pub(crate) fn now(at: Instant) -> Now {
    let wall = Timestamp(1_700_000_000_000_000_000) + (at - Instant(0));
    Now { at, wall }
}

/// A node on which tasks of this driver run.
pub(crate) fn node_with(driver: &str) -> Config {
    let works = DriverInfo {
        detected: true,
        healthy: true,
        ..DriverInfo::default()
    };
    let node = Node {
        drivers: [(driver.to_owned(), works)].into(),
        datacenter: "dc1".to_owned(),
        ..Node::default()
    };
    Config::new(7, node, "/alloc")
}

impl<M: Machine> World<M> {
    pub(crate) fn with(config: Config, machine: M) -> World<M> {
        let at = Instant(0);
        World {
            agent: Agent::restore(config.clone(), Saved::default(), now(at)),
            at,
            machine,
            config,
            disk: BTreeMap::new(),
            requests: 0,
        }
    }

    pub(crate) fn register(&mut self, job: Job) -> Reply {
        let reply = self.ask(Register {
            job: Arc::new(job),
            ..Register::default()
        });
        assert!(matches!(reply, Reply::Registered { .. }), "{reply:?}");
        reply
    }

    pub(crate) fn ask(&mut self, what: impl Into<Request>) -> Reply {
        self.requests += 1;
        let request = RequestId(self.requests);
        let replies = self.take(Input::Request(request, what.into()));
        let own = replies.into_iter().find(|(id, _)| *id == request);
        let Some((_, reply)) = own else {
            panic!("nothing is answered");
        };
        reply
    }

    /// Something happens. The replies that leave.
    pub(crate) fn take(&mut self, input: Input) -> Vec<(RequestId, Reply)> {
        self.agent.handle(now(self.at), input);
        self.settle()
    }

    /// Another agent begins with what was saved.
    pub(crate) fn restart(&mut self) {
        // Each life of an agent draws other ids.
        self.config.seed += 1;
        let saved = Saved::from_records(self.disk.clone());
        self.agent = Agent::restore(self.config.clone(), saved, now(self.at));
        self.settle();
    }

    pub(crate) fn pass(&mut self, span: Span) {
        let until = self.at + span;
        loop {
            self.settle();
            match self.agent.poll_timeout() {
                Some((due, _)) if due <= until => self.at = self.at.max(due),
                Some(_) | None => break,
            }
            self.agent.handle_timeout(now(self.at));
        }
        self.at = until;
    }

    /// Does what the agent asks for, until that is nothing. The replies.
    fn settle(&mut self) -> Vec<(RequestId, Reply)> {
        let mut replies = Vec::new();
        while let Some(effect) = self.agent.poll_effect() {
            let inputs = match effect {
                Effect::Reply(id, reply) => {
                    replies.push((id, reply));
                    continue;
                }
                Effect::Store(StoreEffect::Commit(id, batch)) => {
                    for (key, record) in batch.iter() {
                        match record {
                            Some(record) => drop(self.disk.insert(key.clone(), record.clone())),
                            None => drop(self.disk.remove(key)),
                        }
                    }
                    vec![Input::Store(StoreInput::Saved(id))]
                }
                Effect::Hook(HookEffect::Run {
                    op, alloc, task, ..
                }) => {
                    let result = Ok(HookOutput::default());
                    vec![Input::Hook(HookInput {
                        op,
                        alloc,
                        task,
                        result,
                    })]
                }
                other => self.machine.answer(self.at, other),
            };
            for input in inputs {
                self.agent.handle(now(self.at), input);
            }
        }
        replies
    }
}

pub(crate) fn started(op: Op, launch: LaunchId) -> DriverInput {
    DriverInput::Started {
        op,
        launch,
        network: None,
    }
}

pub(crate) fn exited(launch: LaunchId, code: i32) -> DriverInput {
    DriverInput::Exited {
        launch,
        result: ExitResult::code(code),
    }
}

pub(crate) fn destroyed(op: Op, launch: LaunchId) -> DriverInput {
    DriverInput::Destroyed {
        op,
        launch,
        result: Ok(None),
    }
}
