//! A node that had jobs of its own becomes one of a cluster: they go on, and no new one begins.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::requests::{
    Deregister, DispatchJob, Register, Request, RevertJob, ScaleJob, TakeOver,
};
use drover_core::agent::{Agent, Input};
use drover_core::config::{ClusterConfig, Config};
use drover_core::effect::{Effect, Refusal, Reply, StoreEffect};
use drover_core::ids::{JobKey, NodeId, RequestId};
use drover_core::input::StoreInput;
use drover_core::model::dispatch::{Dispatch, ParameterizedJob};
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::node::Node;
use drover_core::model::task::Task;
use drover_core::model::value::Value;
use drover_core::store::{Key, Record, Saved};

use drover_core::time::{Instant, Now, Timestamp};

const NOW: Now = Now {
    at: Instant(0),
    wall: Timestamp(0),
};

/// A node, and what it saved.
struct World {
    agent: Agent,
    disk: BTreeMap<Key, Record>,
    asked: u64,
}

impl World {
    fn new() -> World {
        World {
            agent: Agent::restore(config(None), Saved::default(), NOW),
            disk: BTreeMap::new(),
            asked: 0,
        }
    }

    /// The next agent has servers.
    fn joins(&mut self) {
        let records = self.disk.iter().map(|(k, v)| (k.clone(), v.clone()));
        let saved = Saved::from_records(records);
        let cluster = ClusterConfig {
            version: "2.0.5".into(),
            only_jobs_of_servers: true,
        };
        self.agent = Agent::restore(config(Some(cluster)), saved, NOW);
        self.answer();
    }

    fn ask(&mut self, what: impl Into<Request>) -> Reply {
        self.asked += 1;
        let request = RequestId(self.asked);
        self.agent.handle(NOW, Input::Request(request, what.into()));
        let replies = self.answer();
        replies
            .into_iter()
            .find(|(id, _)| *id == request)
            .unwrap()
            .1
    }

    /// Saves what is to be saved; returns the answers that leave.
    fn answer(&mut self) -> Vec<(RequestId, Reply)> {
        let mut replies = Vec::new();
        while let Some(effect) = self.agent.poll_effect() {
            match effect {
                Effect::Store(StoreEffect::Commit(id, batch)) => {
                    for (key, record) in batch.iter() {
                        match record {
                            Some(record) => drop(self.disk.insert(key.clone(), record.clone())),
                            None => drop(self.disk.remove(key)),
                        }
                    }
                    while let Some(effect) = self.agent.poll_effect() {
                        if let Effect::Reply(id, reply) = effect {
                            replies.push((id, reply));
                        }
                    }
                    self.agent.handle(NOW, Input::Store(StoreInput::Saved(id)));
                }
                Effect::Reply(id, reply) => replies.push((id, reply)),
                _ => {}
            }
        }
        replies
    }

    fn refuses(&mut self, what: impl Into<Request>) -> bool {
        match self.ask(what) {
            Reply::Refused(Refusal::Forbidden(why)) => {
                why.contains("submit the job to one of them")
            }
            _ => false,
        }
    }
}

fn config(cluster: Option<ClusterConfig>) -> Config {
    let node = Node {
        id: NodeId(7),
        name: "n1".to_owned(),
        datacenter: "dc1".to_owned(),
        ..Node::default()
    };
    let mut config = Config::new(1, node, "/alloc");
    config.cluster = cluster;
    config
}

fn job(id: &str, count: i64) -> Job {
    let task = Task {
        name: "t".to_owned(),
        driver: "test".to_owned(),
        ..Task::default()
    };
    let group = TaskGroup {
        name: "g".to_owned(),
        count: Some(count),
        tasks: vec![task],
        ..TaskGroup::default()
    };
    Job {
        id: id.to_owned(),
        task_groups: vec![group],
        ..Job::default()
    }
}

fn register(job: Job) -> Register {
    Register {
        job: Arc::new(job),
        ..Register::default()
    }
}

fn scale(count: i64) -> ScaleJob {
    ScaleJob {
        job: key("web"),
        group: "g".into(),
        count: Some(count),
        message: "".into(),
        error: false,
        meta: Value::default(),
        expect_index: None,
    }
}

fn key(id: &str) -> JobKey {
    job(id, 1).key()
}

fn parameterized(id: &str) -> Job {
    Job {
        parameterized_job: Some(ParameterizedJob::default()),
        ..job(id, 1)
    }
}

fn joined() -> World {
    let mut world = World::new();
    for job in [job("web", 2), job("web", 3), parameterized("batch")] {
        let reply = world.ask(register(job));
        assert!(matches!(reply, Reply::Registered { .. }), "{reply:?}");
    }
    world.joins();
    world
}

#[test]
fn no_job_of_its_own_begins_or_grows_on_a_node_of_a_cluster() {
    let mut world = joined();
    assert!(world.refuses(register(job("new", 1))));
    assert!(world.refuses(register(job("web", 1))));
    assert!(world.refuses(register(parameterized("batch"))));
    // A job that is registered begins, whatever it says of itself.
    let stopped = Job {
        stop: true,
        ..job("new", 1)
    };
    assert!(world.refuses(register(stopped)));
    assert!(world.refuses(scale(4)));
    assert!(world.refuses(RevertJob {
        job: key("web"),
        version: 0,
        expect_version: None,
    }));
    assert!(world.refuses(TakeOver {
        job: Arc::new(job("moved", 1)),
        from: Vec::new(),
    }));
    assert!(world.agent.view().job(&key("new")).is_none());
    let web = world.agent.view().job(&key("web")).unwrap();
    assert_eq!(web.job.task_groups[0].count, Some(3));
}

#[test]
fn jobs_of_its_own_go_on_get_smaller_and_end_on_a_node_of_a_cluster() {
    let mut world = joined();
    assert!(!world.agent.view().job(&key("web")).unwrap().job.stop);
    let reply = world.ask(DispatchJob {
        job: key("batch"),
        dispatch: Arc::new(Dispatch::default()),
    });
    assert!(matches!(reply, Reply::Dispatched { .. }), "{reply:?}");
    let reply = world.ask(scale(1));
    assert!(matches!(reply, Reply::Registered { .. }), "{reply:?}");
    let reply = world.ask(Deregister {
        job: key("web"),
        purge: false,
        no_shutdown_delay: false,
    });
    assert!(matches!(reply, Reply::Stopping { .. }), "{reply:?}");
    assert!(world.agent.view().job(&key("web")).unwrap().job.stop);
}
