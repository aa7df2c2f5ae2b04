//! Logs of tasks that are sent elsewhere, as a daemon on this machine gets them.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::effect::Notification;
use drover_core::ids::{AllocId, JobKey, TaskName};
use drover_core::model::alloc::{TaskLife, TaskState};
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::node::Node;
use drover_core::model::task::Task;
use drover_core::store::Saved;
use drover_core::store::record::{AllocRecord, JobRecord, TaskRecord};
use drover_core::time::{Instant, Now, Timestamp};
use drover_io_real::agent_handle::{AgentHandle, Message, RequestInbox};
use drover_io_real::dirs::AllocDirs;
use drover_io_real::forward::{Address, Destination, ForwardSettings, Forwarders};
use tempfile::TempDir;
use tokio::net::UnixDatagram;
use tokio::time::timeout;

const ALLOC: AllocId = AllocId(7);

/// The daemon, and the agent whose logs it gets.
struct World {
    dir: TempDir,
    agent: Agent,
    requests: RequestInbox,
    daemon: UnixDatagram,
    _forwarders: Forwarders,
}

/// An agent that was restored from this.
fn agent(saved: Saved) -> Agent {
    let now = Now {
        at: Instant(1),
        wall: Timestamp(1),
    };
    Agent::restore(Config::new(1, Node::default(), "/alloc"), saved, now)
}

/// An allocation of these tasks.
fn alloc_of(tasks: &[(&str, TaskLife)]) -> Saved {
    let task = |(name, _): &(&str, TaskLife)| Task {
        name: (*name).to_owned(),
        ..Task::default()
    };
    let job = Job {
        id: "web".to_owned(),
        task_groups: vec![TaskGroup {
            name: "g".to_owned(),
            tasks: tasks.iter().map(task).collect(),
            ..TaskGroup::default()
        }],
        ..Job::default()
    };
    let job = JobRecord {
        job: Arc::new(job),
        ..JobRecord::default()
    };
    let alloc = AllocRecord {
        id: ALLOC,
        job: JobKey::local("web"),
        group: "g".into(),
        ..AllocRecord::default()
    };
    let record = |(name, state): &(&str, TaskLife)| {
        let state = TaskState {
            state: *state,
            started_at: Some(Timestamp(1)),
            ..TaskState::default()
        };
        let record = TaskRecord {
            state,
            ..TaskRecord::default()
        };
        ((ALLOC, TaskName::from(*name)), Arc::new(record))
    };
    Saved {
        allocs: [(ALLOC, Arc::new(alloc))].into(),
        tasks: tasks.iter().map(record).collect(),
        jobs: [(JobKey::local("web"), Arc::new(job))].into(),
        ..Saved::default()
    }
}

impl World {
    /// Without any allocations.
    fn new() -> World {
        let dir = TempDir::new().unwrap();
        let [root, home] = ["allocs", "home"].map(|name| dir.path().join(name));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&home).unwrap();
        let allocs = Arc::new(File::open(&root).unwrap().into());
        AllocDirs::new(Arc::clone(&allocs))
            .build_alloc(ALLOC)
            .unwrap();
        let (handle, requests) = AgentHandle::new(allocs);
        let socket = dir.path().join("socket");
        let daemon = UnixDatagram::bind(&socket).unwrap();
        let settings = ForwardSettings {
            name: "ops".to_owned(),
            jobs: Vec::new(),
            labels: BTreeMap::new(),
            to: Destination::Syslog(Address::Unix(socket), 16),
        };
        let home = || Ok(File::open(&home)?.into());
        World {
            agent: agent(Saved::default()),
            requests,
            daemon,
            _forwarders: Forwarders::start(vec![settings], &handle, &home, "node").unwrap(),
            dir,
        }
    }

    fn log(&self, task: &str) -> PathBuf {
        let own = self.dir.path().join("allocs").join(ALLOC.to_string());
        own.join(format!("alloc/logs/{task}.stdout.0"))
    }

    fn write(&self, task: &str, line: &str) {
        let mut log = File::options();
        let mut log = log.append(true).create(true).open(self.log(task)).unwrap();
        writeln!(log, "{line}").unwrap();
    }

    /// Answers the next question about tasks.
    async fn answer(&mut self) {
        answer(&self.agent, &mut self.requests).await;
    }

    /// The text of the next line that comes.
    async fn receive(&mut self) -> String {
        let mut line = vec![0; 4096];
        let received = async {
            loop {
                tokio::select! {
                    length = self.daemon.recv(&mut line) => return length.unwrap(),
                    () = answer(&self.agent, &mut self.requests) => {}
                }
            }
        };
        let received = timeout(Duration::from_secs(30), received).await;
        let length = received.expect("nothing is sent any more");
        let line = String::from_utf8_lossy(&line[..length]);
        line.rsplit("] ").next().unwrap().to_owned()
    }
}

async fn answer(agent: &Agent, requests: &mut RequestInbox) {
    match requests.messages.recv().await.unwrap() {
        Message::Ask(question) => question(agent.view()),
        _ => panic!("only questions are asked"),
    }
}

#[tokio::test]
async fn log_is_followed_after_other_task_of_its_alloc_ended() {
    let mut world = World::new();
    // What was written before the first look would not be sent.
    world.answer().await;
    world.write("init", "last words");
    world.write("web", "one");
    world.agent = agent(alloc_of(&[
        ("init", TaskLife::Dead),
        ("web", TaskLife::Running),
    ]));
    world.requests.notify(Notification::Index(1));
    let mut lines = [world.receive().await, world.receive().await];
    lines.sort_unstable();
    assert_eq!(lines, ["last words", "one"]);
    // By now it is known that no more comes of the first task.
    world.write("web", "two");
    assert_eq!(world.receive().await, "two");
}
