//! The driver `docker` with all that it needs, and the core's side of it.

#![allow(
    dead_code,
    unused_macros,
    reason = "every test has its own copy of it, and uses a part"
)]

#[path = "engine.rs"]
pub mod engine;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drover_core::agent::Input;
use drover_core::driver::config::DockerConfig;
use drover_core::driver::docker::DockerPolicy;
use drover_core::effect::{DriverEffect, TaskConfig, request};
use drover_core::ids::{AllocId, LaunchId, Run, TaskKey};
use drover_core::input::{DriverHealth, DriverInput, DriverReport, Found, NodeInput};
use drover_core::model::alloc::ExitResult;
use drover_core::model::task::LogConfig;
use drover_core::model::value::Value;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;
use drover_io_real::cgroup::Cgroups;
use drover_io_real::data_dir::DataDir;
use drover_io_real::dirs::AllocDirs;
use drover_io_real::driver::docker::{Docker, DockerSettings, Inventory, Pins, Records};
use drover_io_real::driver::{Driver, DriverStream, Inbox, Orphans};
use drover_io_real::session::Sessions;
use engine::{Engine, IMAGE};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// An engine and an agent's driver; none where there is no engine, which the test says and passes.
macro_rules! world {
    () => {
        world!(false)
    };
    ($live_restore:expr) => {
        match docker_world::engine::Engine::start($live_restore) {
            Some(engine) => docker_world::World::new(engine),
            None => return,
        }
    };
}

pub const ALLOC: AllocId = AllocId(0xa110c);

/// One life of an agent: a driver, and what it says.
pub struct Life {
    pub runtime: Runtime,
    pub driver: Docker,
    pub reported: UnboundedReceiver<Input>,
    pub sessions: Sessions,
    ops: u64,
    health: Option<DriverHealth>,
}

/// A data directory with a task's directory, and an engine.
pub struct World {
    pub life: Option<Life>,
    data: DataDir,
    pub engine: Engine,
    /// What the next life is configured with; its socket is the engine's.
    pub settings: DockerSettings,
    /// With whose tasks the containers of the next life share cores.
    pub groups: Option<Cgroups>,
    /// What people were told of tasks.
    pub events: Vec<String>,
    _dir: TempDir,
}

pub fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

pub fn list(texts: &[&str]) -> Value {
    Value::List(texts.iter().map(|it| text(it)).collect())
}

pub fn with(mut config: TaskConfig, key: &str, value: Value) -> TaskConfig {
    config.config.insert(key.to_owned(), value);
    let policy = DockerPolicy::default();
    let asked = DockerConfig::decode(&config.config).unwrap();
    // What the policy would refuse is the engine's to refuse here.
    config.container = policy.container(&asked, &[]).ok().or(config.container);
    config
}

pub fn sh(script: &str) -> TaskConfig {
    command(&["/bin/sh", "-c", script])
}

pub fn command(words: &[&str]) -> TaskConfig {
    let config = [
        ("image".to_owned(), text(IMAGE)),
        ("command".to_owned(), text(words[0])),
    ];
    let config = TaskConfig {
        run: Run(1),
        job: "job".to_owned(),
        group: "group".to_owned(),
        config: config.into(),
        cpu_shares: 100,
        memory_limit: 64 << 20,
        ..TaskConfig::default()
    };
    with(config, "args", list(&words[1..]))
}

pub fn key() -> TaskKey {
    TaskKey {
        alloc: ALLOC,
        task: "web".into(),
    }
}

impl World {
    pub fn new(engine: Engine) -> Self {
        let dir = TempDir::new().unwrap();
        let data = DataDir::open(&dir.path().join("data")).unwrap();
        let dirs = AllocDirs::new(data.allocs());
        dirs.build_alloc(ALLOC).unwrap();
        dirs.private_task(ALLOC, "web", 1, false).unwrap();
        let mut world = Self {
            life: None,
            data,
            engine,
            settings: DockerSettings::default(),
            groups: None,
            events: Vec::new(),
            _dir: dir,
        };
        world.begin();
        world
    }

    /// Begins a new life of the agent. The one before ends as if it was killed.
    pub fn begin(&mut self) {
        drop(self.life.take());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (inbox, reported) = unbounded_channel();
        let inbox = Inbox::new(inbox);
        let sessions = inbox.sessions().clone();
        let settings = DockerSettings {
            socket: self.engine.socket(),
            ..self.settings.clone()
        };
        let own = |name: &str| self.data.own(name, None).unwrap();
        let records = Records::new(own("docker")).unwrap();
        let pins = Pins::new(own("docker-mounts"), self.data.path().join("docker-mounts")).unwrap();
        let dirs = AllocDirs::new(self.data.allocs());
        let root = self.data.alloc_root().to_owned();
        let driver = Docker::new(
            settings,
            records,
            pins,
            (dirs, root),
            (None, PathBuf::new()),
            self.groups.clone(),
            inbox.clone(),
        );
        let entered = runtime.enter();
        driver.watch(DriverStream::new(Op(1 << 40), "docker", inbox));
        drop(entered);
        self.life = Some(Life {
            runtime,
            driver,
            reported,
            sessions,
            ops: 0,
            health: None,
        });
    }

    pub fn life(&mut self) -> &mut Life {
        self.life.as_mut().unwrap()
    }

    pub fn alloc_dir(&self) -> PathBuf {
        self.data.alloc_root().join(ALLOC.to_string())
    }

    /// All that a stream said.
    pub fn log(&self, stream: &str) -> String {
        let path = |index| {
            self.alloc_dir()
                .join(format!("alloc/logs/web.{stream}.{index}"))
        };
        let files = (0..).map_while(|index| fs::read_to_string(path(index)).ok());
        files.collect()
    }

    /// The files in which it is remembered what was made and brought.
    pub fn records(&self) -> PathBuf {
        self.data.path().join("docker")
    }

    /// What is remembered of a launch is of another boot of the machine.
    pub fn note_earlier_boot(&self, launch: u128) {
        let file = self.records().join(LaunchId(launch).to_string());
        let mut bytes = fs::read(&file).unwrap();
        let boot = drover_io_real::facts::boot_id().unwrap();
        let mut parts = bytes.windows(boot.len());
        let at = parts.position(|part| part == boot.as_bytes()).unwrap();
        bytes[at..at + boot.len()].reverse();
        fs::write(&file, bytes).unwrap();
    }

    /// The names of those that begin like this.
    pub fn remembered(&self, begin: &str) -> Vec<String> {
        let files = fs::read_dir(self.records()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(begin)).collect()
    }

    /// What looks for containers and images while no agent runs.
    pub fn lone_inventory(&self) -> Inventory {
        let records = Records::new(self.data.own("docker", None).unwrap()).unwrap();
        Inventory::of_records(records, Some(self.engine.socket()))
    }

    /// How many places there are at which something is mounted for the engine.
    pub fn pins(&self) -> usize {
        fs::read_dir(self.data.path().join("docker-mounts"))
            .unwrap()
            .count()
    }

    pub fn end_unknown(&mut self, known: &[u128]) {
        let known = known.iter().map(|it| LaunchId(*it)).collect();
        let life = self.life();
        life.driver.end_unknown(&known, Orphans::End).unwrap();
    }

    pub fn ask(&mut self, effect: impl FnOnce(Op) -> DriverEffect) -> Op {
        let life = self.life();
        life.ops += 1;
        let op = Op(life.ops);
        let _runtime = life.runtime.enter();
        life.driver.carry_out(key(), effect(op));
        op
    }

    fn next(&mut self) -> Input {
        let life = self.life();
        let next =
            async { tokio::time::timeout(Duration::from_secs(60), life.reported.recv()).await };
        life.runtime
            .block_on(next)
            .expect("nothing is said")
            .unwrap()
    }

    /// Notes what the driver says of itself.
    fn note(&mut self, input: Input) -> Option<DriverInput> {
        match input {
            Input::Driver(task, input) => {
                assert_eq!(task, key());
                if let DriverInput::Event { message, .. } = &input {
                    self.events.push(message.clone());
                }
                Some(input)
            }
            Input::Node(NodeInput::Driver { report, .. }) => {
                if let DriverReport::Fingerprint(found) = report {
                    self.life().health = Some(found.health);
                }
                None
            }
            other => panic!("{other:?}"),
        }
    }

    /// Waits until people are told this of a task, or were; nothing else may be said meanwhile.
    pub fn until_event(&mut self, words: &str) {
        while !self.events.iter().any(|events| events.contains(words)) {
            let input = self.next();
            let noted = self.note(input);
            let is_event = matches!(noted, None | Some(DriverInput::Event { .. }));
            assert!(is_event, "{noted:?}");
        }
    }

    /// The next thing that is said of a task; what people may want to know is left out.
    pub fn receive(&mut self) -> DriverInput {
        loop {
            let input = self.next();
            match self.note(input) {
                Some(DriverInput::Event { .. }) | None => {}
                Some(input) => return input,
            }
        }
    }

    /// The next thing that the driver says of itself, before anything of a task.
    pub fn health(&mut self) -> DriverHealth {
        loop {
            if let Some(health) = self.life().health.take() {
                return health;
            }
            let input = self.next();
            let noted = self.note(input);
            assert!(
                matches!(noted, None | Some(DriverInput::Event { .. })),
                "{noted:?}"
            );
        }
    }

    /// Waits until the driver works; before anything of a task.
    pub fn until_healthy(&mut self) {
        while self.health() != DriverHealth::Healthy {}
    }

    pub fn ask_start(&mut self, launch: u128, config: TaskConfig) -> Op {
        let (launch, config) = (LaunchId(launch), Arc::new(config));
        self.ask(|op| DriverEffect::Start(request::Start { op, launch, config }))
    }

    pub fn start(&mut self, launch: u128, config: TaskConfig) -> Result<(), Failure> {
        let asked = self.ask_start(launch, config);
        match self.receive() {
            DriverInput::Started { op, .. } if op == asked => Ok(()),
            DriverInput::StartFailed { op, failure, .. } if op == asked => Err(failure),
            other => panic!("{other:?}"),
        }
    }

    pub fn exited(&mut self) -> ExitResult {
        match self.receive() {
            DriverInput::Exited { result, .. } => result,
            other => panic!("{other:?}"),
        }
    }

    pub fn run(&mut self, launch: u128, config: TaskConfig) -> ExitResult {
        self.start(launch, config).unwrap();
        self.exited()
    }

    pub fn recover(&mut self, launch: u128) -> Found {
        let asked = self.ask_recover(launch);
        self.recovered(asked)
    }

    pub fn ask_recover(&mut self, launch: u128) -> Op {
        let (launch, logs) = (LaunchId(launch), LogConfig::default());
        self.ask(|op| DriverEffect::Recover(request::Recover { op, launch, logs }))
    }

    /// What is said of one that was asked for.
    pub fn recovered(&mut self, asked: Op) -> Found {
        match self.receive() {
            DriverInput::Recovered { op, found, .. } if op == asked => found,
            other => panic!("{other:?}"),
        }
    }

    /// Asks a task to end that does so.
    pub fn stop(&mut self, launch: u128, signal: &str) -> ExitResult {
        let (launch, signal) = (LaunchId(launch), signal.to_owned());
        let grace = Span::secs(5);
        self.ask(|op| {
            DriverEffect::Stop(request::Stop {
                op,
                launch,
                signal,
                grace,
            })
        });
        let (mut stopped, mut exit) = (false, None);
        while !stopped || exit.is_none() {
            match self.receive() {
                DriverInput::Stopped { result, .. } => stopped = result.is_ok(),
                DriverInput::Exited { result, .. } => exit = Some(result),
                other => panic!("{other:?}"),
            }
        }
        exit.unwrap()
    }

    pub fn signal(&mut self, launch: u128, signal: &str) -> Result<(), Failure> {
        let (launch, signal) = (LaunchId(launch), signal.to_owned());
        self.ask(|op| DriverEffect::Signal(request::Signal { op, launch, signal }));
        match self.receive() {
            DriverInput::Signaled { result, .. } => result,
            other => panic!("{other:?}"),
        }
    }

    /// Destroys a launch that ended already, or never began.
    pub fn destroy(&mut self, launch: u128) -> Result<Option<ExitResult>, Failure> {
        let launch = LaunchId(launch);
        let asked = self.ask(|op| DriverEffect::Destroy(request::Destroy { op, launch }));
        match self.receive() {
            DriverInput::Destroyed { op, result, .. } if op == asked => result,
            other => panic!("{other:?}"),
        }
    }

    /// Destroys a launch that runs: how it ended is told once.
    pub fn end(&mut self, launch: u128) -> ExitResult {
        let launch = LaunchId(launch);
        self.ask(|op| DriverEffect::Destroy(request::Destroy { op, launch }));
        let mut exits = Vec::new();
        loop {
            match self.receive() {
                DriverInput::Exited { result, .. } => exits.push(result),
                DriverInput::Destroyed { result, .. } => {
                    exits.extend(result.unwrap());
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(exits.len(), 1, "{exits:?}");
        exits.remove(0)
    }

    /// Destroys a launch, whatever became of it.
    pub fn end_quietly(&mut self, launch: u128) {
        let launch = LaunchId(launch);
        let asked = self.ask(|op| DriverEffect::Destroy(request::Destroy { op, launch }));
        loop {
            match self.receive() {
                DriverInput::Destroyed { op, result, .. } if op == asked => {
                    return drop(result.unwrap());
                }
                DriverInput::Exited { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn forget(&mut self, launch: u128) {
        let life = self.life();
        let entered = life.runtime.enter();
        life.driver.forget(LaunchId(launch));
        drop(entered);
        let record = self
            .data
            .path()
            .join("docker")
            .join(LaunchId(launch).to_string());
        self.until(|_| !record.exists());
    }

    /// Lets the driver work for so many turns.
    pub fn turns(&mut self, turns: usize) {
        self.life().runtime.block_on(async {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Lets the driver work until something has come to pass.
    pub fn until(&mut self, mut come: impl FnMut(&Self) -> bool) {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while !come(self) {
            assert!(
                std::time::Instant::now() < until,
                "what was awaited never came"
            );
            self.turns(100);
        }
    }

    pub fn until_log(&mut self, text: &str) {
        self.until(|world| world.log("stdout") == text);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.life.take());
        // The secrets are mounted, and the directory is removed after this.
        let _ = AllocDirs::new(self.data.allocs()).remove(ALLOC);
    }
}
