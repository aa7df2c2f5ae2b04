//! For tests: a real core behind an agent handle, in a world where everything works at once, and an API in
//! front of it. Its clock jumps to whatever is due next, so nothing is ever waited for.

#[path = "../../tls/tests/authority/mod.rs"]
pub(crate) mod authority;

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use drover_core::agent::{Agent, Input};
use drover_core::config::Config;
use drover_core::effect::{DriverEffect, Effect, HookEffect, Reply, StoreEffect, request};
use drover_core::ids::{AllocId, LaunchId, NodeId, RequestId, TaskKey};
use drover_core::input::{DriverInput, HookInput, HookOutput, StoreInput};
use drover_core::model::alloc::ExitResult;
use drover_core::model::node::{DriverInfo, Node};
use drover_core::model::remote::Remote;
use drover_core::model::value::Value;
use drover_core::store::Saved;
use drover_core::time::{Instant, Now, Timestamp};
use drover_core::work::HookWork;
use drover_io_real::connect::{self, Connect, Connecting};
use drover_io_real::gate::Gate;
use drover_io_real::migrate::Nodes;
use drover_io_real::sampler::Sampler;
use drover_io_real::session::{SessionServer, Sessions};
use drover_io_real::stats::{Disks, HostSampler};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::agent_handle::{AgentHandle, Message, RequestInbox};
use crate::cli::args::Connection;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::screen::Screen;
use crate::config::client::ClientConfig;
use crate::http::dto::{AllocStats, HostStats};
use crate::http::{self, AclSettings, Api, Limits, Listeners, Measures, Settings, TokenServers};

/// When the tests' world began: 2026-11-21T04:43:14Z.
pub(crate) const BEGAN: Timestamp = Timestamp(1_795_236_194_000_000_000);

/// What a real agent answered about an allocation that it had measured.
pub(crate) fn measured_alloc() -> AllocStats {
    serde_json::from_str(include_str!("testing/alloc_stats.json")).unwrap()
}

/// What a real agent answered about its machine.
pub(crate) fn measured_host() -> HostStats {
    serde_json::from_str(include_str!("testing/host_stats.json")).unwrap()
}

/// Who finds no task that could be measured, and only the machine.
pub(crate) fn nothing_measured(dir: &Path) -> Measures {
    let tasks = Sampler::new([], Gate::default());
    Measures::new(tasks, HostSampler::new(Disks::new(dir.to_owned())))
}

/// An agent in its world, and the API that asks it, which reaches others over the simulated network.
pub(crate) fn agent(dir: &Path, http_addr: String) -> (Router, impl Future<Output = ()> + use<>) {
    let (api, agent) = api(dir, http_addr, AclSettings::default(), None);
    let settings = Settings {
        nodes: Nodes::new(Arc::new(Simulated), None),
        ..Settings::clone(&api.settings)
    };
    (http::router_of(api.with_settings(settings)), agent)
}

/// An agent in its world, and what the handlers of its API have at hand.
pub(crate) fn api(
    dir: &Path,
    http_addr: String,
    acl: AclSettings,
    token_servers: Option<Arc<dyn TokenServers>>,
) -> (Api, impl Future<Output = ()> + use<>) {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let root = rustix::fs::open(dir, flags, rustix::fs::Mode::empty()).unwrap();
    let (agent_handle, mut request_inbox) = AgentHandle::new(Arc::new(root));
    let sessions = Sessions::default();
    let agent_handle = agent_handle.with_sessions(sessions.clone());
    let events = http::Events::default();
    let client = ClientConfig::default();
    request_inbox.on_commit(events.recorder(http::agent::NOMAD_VERSION, &client));
    let settings = Settings {
        version: http::agent::VERSION.to_owned(),
        nomad_version: http::agent::NOMAD_VERSION.to_owned(),
        names: http_addr.split(':').take(1).map(str::to_owned).collect(),
        http_addr,
        events,
        acl,
        token_servers,
        ..Settings::default()
    };
    let world = World::new(dir.to_owned(), sessions);
    let api = Api::new(agent_handle, settings, nothing_measured(dir));
    (api, world.own(request_inbox))
}

/// An agent with its API.
pub(crate) struct Rig {
    pub(crate) client: Client,
    pub(crate) api: Api,
    pub(crate) addr: SocketAddr,
    pub(crate) dir: tempfile::TempDir,
    tasks: Vec<JoinHandle<()>>,
}

impl Rig {
    /// Starts everything.
    pub(crate) async fn start() -> Rig {
        Rig::start_within(Limits::default()).await
    }

    /// The same, whose users need tokens.
    pub(crate) async fn start_with_acl() -> Rig {
        let acl = AclSettings {
            enabled: true,
            ..AclSettings::default()
        };
        Rig::start_as(Limits::default(), acl, None).await
    }

    /// The same, as a node of a cluster whose servers know tokens, and are believed for so long.
    pub(crate) async fn start_in_cluster(servers: Arc<dyn TokenServers>, lasts: Duration) -> Rig {
        let acl = AclSettings {
            enabled: true,
            servers_tokens_last: lasts,
            ..AclSettings::default()
        };
        Rig::start_as(Limits::default(), acl, Some(servers)).await
    }

    /// The same, with these limits of connections.
    pub(crate) async fn start_within(limits: Limits) -> Rig {
        Rig::start_as(limits, AclSettings::default(), None).await
    }

    async fn start_as(
        limits: Limits,
        acl: AclSettings,
        servers: Option<Arc<dyn TokenServers>>,
    ) -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let address = format!("http://{addr}");
        let (api, agent) = api(dir.path(), addr.to_string(), acl, servers);
        let router = http::router_of(api.clone());
        let listeners = Listeners {
            network: listener,
            tls: None,
            local: None,
        };
        let tasks = vec![
            tokio::spawn(agent),
            tokio::spawn(http::serve(listeners, router, limits)),
        ];
        let connection = Connection {
            address: Some(address),
            ..Connection::default()
        };
        let client = Client::new(&connection, |_| None).unwrap();
        Rig {
            client,
            api,
            addr,
            dir,
            tasks,
        }
    }

    /// What a command has at hand, and what it says.
    pub(crate) fn context(&self) -> (Context, Captured, Captured) {
        let (out, err) = (Captured::default(), Captured::default());
        let screen = Screen::plain(Box::new(out.clone()), Box::new(err.clone()));
        let cx = Context {
            client: self.client.clone(),
            screen,
            clock: || BEGAN,
        };
        (cx, out, err)
    }

    /// Where the logs of an allocation are.
    pub(crate) fn logs(&self, alloc: &str) -> PathBuf {
        self.dir.path().join(alloc).join("alloc/logs")
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Output that a test reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A job of one group `g` with one task `t`, as the API takes it. Its task ends with `exit`, or
/// runs for ever.
pub(crate) fn job(id: &str, kind: &str, exit: Option<i64>) -> serde_json::Value {
    json!({
        "ID": id,
        "Type": kind,
        "Name": null,
        "Datacenters": ["dc1"],
        "TaskGroups": [{
            "Name": "g",
            "Count": 1,
            "RestartPolicy": { "Attempts": 0, "Mode": "fail" },
            "ReschedulePolicy": { "Attempts": 0, "Unlimited": false },
            "Tasks": [{
                "Name": "t",
                "Driver": "mock_driver",
                "Config": { "exit_code": exit },
                "Resources": { "CPU": 20, "MemoryMB": 16 },
            }],
        }],
    })
}

/// Carries out the core's effects, each at once.
struct World {
    agent: Agent,
    root: PathBuf,
    at: u64,
    waiting: BTreeMap<RequestId, oneshot::Sender<Reply>>,
    requests: u64,
    sessions: Sessions,
    /// Those that were opened: their programs run for ever, and do nothing.
    opened: Vec<SessionServer>,
}

impl World {
    fn new(root: PathBuf, sessions: Sessions) -> World {
        let info = DriverInfo {
            detected: true,
            healthy: true,
            description: "Healthy".to_owned(),
        };
        let node = Node {
            id: NodeId(0xad77_aaa1 << 96),
            name: "box".to_owned(),
            datacenter: "dc1".to_owned(),
            region: "global".to_owned(),
            pool: "default".to_owned(),
            drivers: BTreeMap::from([("mock_driver".to_owned(), info)]),
            dynamic_ports: (20_000, 20_100),
            address: "127.0.0.1".to_owned(),
            ..Node::default()
        };
        let mut config = Config::new(7, node, root.display().to_string());
        // Here time passes at once, to whatever is due.
        config.retention = None;
        let now = Now {
            at: Instant(0),
            wall: BEGAN,
        };
        let agent = Agent::restore(config, Saved::default(), now);
        World {
            agent,
            root,
            at: 0,
            waiting: BTreeMap::new(),
            requests: 0,
            sessions,
            opened: Vec::new(),
        }
    }

    async fn own(mut self, mut request_inbox: RequestInbox) {
        self.settle(&mut request_inbox);
        while let Some(message) = request_inbox.messages.recv().await {
            match message {
                Message::Ask(question) => question(self.agent.view()),
                Message::Request(what, reply) => {
                    let id = self.request(reply);
                    self.agent.handle(self.now(), Input::Request(id, what));
                }
                Message::Shutdown(mode) => self.agent.handle(self.now(), Input::Shutdown(mode)),
            }
            self.settle(&mut request_inbox);
        }
    }

    fn request(&mut self, reply: oneshot::Sender<Reply>) -> RequestId {
        self.requests += 1;
        self.waiting.insert(RequestId(self.requests), reply);
        RequestId(self.requests)
    }

    fn now(&self) -> Now {
        let since = i64::try_from(self.at).unwrap();
        Now {
            at: Instant(self.at),
            wall: Timestamp(BEGAN.0 + since),
        }
    }

    /// Until nothing is due any more, however late that is.
    fn settle(&mut self, request_inbox: &mut RequestInbox) {
        loop {
            while let Some(effect) = self.agent.poll_effect() {
                for input in self.carry_out(effect, request_inbox) {
                    self.agent.handle(self.now(), input);
                }
            }
            let Some((due, _)) = self.agent.poll_timeout() else {
                return;
            };
            self.at = self.at.max(due.0);
            self.agent.handle_timeout(self.now());
        }
    }

    fn carry_out(&mut self, effect: Effect, request_inbox: &mut RequestInbox) -> Vec<Input> {
        match effect {
            Effect::Store(StoreEffect::Commit(id, batch)) => {
                request_inbox.committed(self.agent.view(), &batch);
                vec![Input::Store(StoreInput::Saved(id))]
            }
            Effect::Driver(_, key, effect) => self.drive(&key, effect),
            Effect::Hook(HookEffect::Run {
                op,
                alloc,
                task,
                work,
            }) => {
                let task_dir = task.as_ref().map(|task| task.as_str());
                self.work(alloc, task_dir, &work);
                // Other nodes' allocations are always over.
                let asks = matches!(work, HookWork::AskRemote(_));
                let result = Ok(HookOutput {
                    remote: asks.then_some(Remote::Ended),
                    ..HookOutput::default()
                });
                vec![Input::Hook(HookInput {
                    op,
                    alloc,
                    task,
                    result,
                })]
            }
            Effect::Hook(HookEffect::Cancel { .. })
            | Effect::Check(_)
            | Effect::Node(_)
            | Effect::Server(_)
            | Effect::Forget(..)
            | Effect::Stopped => Vec::new(),
            Effect::Reply(id, reply) => {
                if let Some(waiting) = self.waiting.remove(&id) {
                    let _ = waiting.send(reply);
                }
                Vec::new()
            }
            Effect::Notify(notification) => {
                request_inbox.notify(notification);
                Vec::new()
            }
        }
    }

    fn work(&self, alloc: AllocId, task: Option<&str>, work: &HookWork) {
        let dir = self.root.join(alloc.to_string());
        match work {
            HookWork::BuildAllocDir(_) => std::fs::create_dir_all(dir.join("alloc/logs")).unwrap(),
            HookWork::BuildTaskDir(_) => {
                let secrets = dir.join(task.unwrap()).join("secrets");
                std::fs::create_dir_all(&secrets).unwrap();
                std::fs::write(secrets.join("token"), "secret").unwrap();
            }
            HookWork::RemoveAllocDir(_) => std::fs::remove_dir_all(dir).unwrap(),
            _ => {}
        }
    }

    fn drive(&mut self, key: &TaskKey, effect: DriverEffect) -> Vec<Input> {
        let exited = |launch: LaunchId, code: i32| DriverInput::Exited {
            launch,
            result: ExitResult::code(code),
        };
        let inputs = match effect {
            DriverEffect::Start(request::Start { op, launch, config }) => {
                self.write_logs(key);
                let started = DriverInput::Started {
                    op,
                    launch,
                    network: None,
                };
                match config.config.get("exit_code").and_then(Value::as_int) {
                    Some(code) => vec![started, exited(launch, i32::try_from(code).unwrap())],
                    None => vec![started],
                }
            }
            DriverEffect::Stop(request::Stop { op, launch, .. }) => {
                let stopped = DriverInput::Stopped {
                    op,
                    launch,
                    result: Ok(()),
                };
                vec![stopped, exited(launch, 0)]
            }
            DriverEffect::Signal(request::Signal { op, launch, .. }) => {
                vec![DriverInput::Signaled {
                    op,
                    launch,
                    result: Ok(()),
                }]
            }
            DriverEffect::Exec(request::Exec { op, launch, .. }) => {
                let result = Ok(0);
                let output = String::new();
                vec![DriverInput::Executed {
                    op,
                    launch,
                    result,
                    output,
                }]
            }
            DriverEffect::Health(request::Health { op, launch }) => {
                vec![DriverInput::Executed {
                    op,
                    launch,
                    result: Ok(request::Health::HEALTHY),
                    output: String::new(),
                }]
            }
            DriverEffect::OpenSession(asked) => vec![self.open_session(&asked)],
            DriverEffect::Destroy(request::Destroy { op, launch }) => {
                vec![DriverInput::Destroyed {
                    op,
                    launch,
                    result: Ok(None),
                }]
            }
            DriverEffect::Recover(request::Recover { .. }) => Vec::new(),
        };
        inputs
            .into_iter()
            .map(|input| Input::Driver(key.clone(), input))
            .collect()
    }

    fn open_session(&mut self, asked: &request::OpenSession) -> DriverInput {
        self.opened.extend(self.sessions.take(asked.session));
        let (op, launch, result) = (asked.op, asked.launch, Ok(()));
        DriverInput::SessionOpened { op, launch, result }
    }

    fn write_logs(&self, key: &TaskKey) {
        let logs = self.root.join(key.alloc.to_string()).join("alloc/logs");
        append(
            &logs.join(format!("{}.stdout.0", key.task)),
            "one\ntwo\nthree\n",
        );
        append(&logs.join(format!("{}.stderr.0", key.task)), "trouble\n");
    }
}

/// Writes more to a file.
pub(crate) fn append(path: &Path, text: &str) {
    let mut file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// TCP over the network that turmoil simulates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Simulated;

impl Connect for Simulated {
    fn connect<'a>(&'a self, authority: &'a str) -> Connecting<'a> {
        Box::pin(async move {
            let stream = turmoil::net::TcpStream::connect(authority).await?;
            Ok(Box::new(stream) as Box<dyn connect::Connection>)
        })
    }
}
