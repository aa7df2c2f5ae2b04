//! The driver `raw_exec` with all that it needs, and the core's side of it.

use super::groups::Groups;
use drover_core::agent::Input;
use drover_core::effect::{DriverEffect, Program, TaskConfig, request};
use drover_core::ids::{AllocId, LaunchId, Run, TaskKey};
use drover_core::input::{DriverInput, Found};
use drover_core::model::alloc::ExitResult;
use drover_core::model::task::LogConfig;
use drover_core::model::value::Value;
use drover_core::op::{Failure, Op};
use drover_io_real::data_dir::DataDir;
use drover_io_real::dirs::AllocDirs;
use drover_io_real::driver::exec::{Exec, ExecSettings};
use drover_io_real::driver::raw_exec::RawExec;
use drover_io_real::driver::{Driver, Inbox};
use drover_io_real::network::Networks;
use drover_io_real::session::Sessions;
use drover_io_real::shim::ShimHome;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const ALLOC: AllocId = AllocId(0xa110c);

/// One life of an agent: a driver, and what it says.
pub struct Life {
    pub runtime: Runtime,
    pub driver: RawExec,
    pub reported: UnboundedReceiver<Input>,
    pub sessions: Sessions,
    ops: u64,
}

/// A data directory with its tasks' directory, and control groups where there are any.
pub struct World {
    pub life: Option<Life>,
    pub groups: Option<Groups>,
    /// The networks of allocations, from the next life on.
    pub networks: Option<Networks>,
    pub data: DataDir,
    pub dir: TempDir,
}

/// What to start: a shell script with defaults that suit most tests.
pub fn sh(script: &str) -> TaskConfig {
    command("/bin/sh", &["-c", script])
}

pub fn command(command: &str, args: &[&str]) -> TaskConfig {
    let args = args.iter().map(|arg| Value::String((*arg).to_owned()));
    let config = [
        ("command".to_owned(), Value::String(command.to_owned())),
        ("args".to_owned(), Value::List(args.collect())),
    ];
    let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    TaskConfig {
        run: Run(1),
        job: "job".to_owned(),
        group: "group".to_owned(),
        config: config.into(),
        env: [path].into(),
        cpu_shares: 100,
        memory_limit: 256 << 20,
        ..TaskConfig::default()
    }
}

pub fn with(mut config: TaskConfig, key: &str, value: Value) -> TaskConfig {
    config.config.insert(key.to_owned(), value);
    config
}

pub fn key() -> TaskKey {
    TaskKey {
        alloc: ALLOC,
        task: "web".into(),
    }
}

impl World {
    /// `name` tells the control groups of this test from those of others.
    pub fn new(name: &str) -> Self {
        let dir = TempDir::new().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = DataDir::open(&dir.path().join("data")).unwrap();
        let dirs = AllocDirs::new(data.allocs());
        dirs.build_alloc(ALLOC).unwrap();
        dirs.build_task(ALLOC, "web", None).unwrap();
        let mut world = Self {
            life: None,
            groups: Groups::new(name),
            networks: None,
            data,
            dir,
        };
        world.begin();
        world
    }

    /// The same, where isolated tasks can run; says why where they cannot.
    pub fn isolated(name: &str) -> Option<Self> {
        let mut world = Self::new(name);
        let health = Exec::beside(&world.life().driver).fingerprint();
        if !health.healthy {
            eprintln!("skipped: {}", health.description);
            return None;
        }
        Some(world)
    }

    /// Begins a new life of the agent. The one before ends as if it was killed.
    pub fn begin(&mut self) {
        self.begin_with(512);
    }

    /// The same with so many threads for work of the runtime that blocks.
    pub fn begin_with(&mut self, threads: usize) {
        if let Some(Life {
            runtime, reported, ..
        }) = self.life.take()
        {
            drop(reported);
            drop(runtime);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(threads)
            .build()
            .unwrap();
        let (inbox, reported) = unbounded_channel();
        let home = ShimHome::open(self.data.path()).unwrap();
        let groups = self.groups.as_ref().map(|groups| groups.groups.clone());
        let dirs = AllocDirs::new(self.data.allocs());
        let inbox = Inbox::new(inbox);
        let sessions = inbox.sessions().clone();
        let (settings, networks) = (ExecSettings::default(), self.networks.clone());
        let driver = RawExec::isolating(home, dirs, groups, Some(1024), inbox, settings, networks);
        let life = Life {
            runtime,
            driver,
            reported,
            sessions,
            ops: 0,
        };
        self.life = Some(life);
    }

    pub fn life(&mut self) -> &mut Life {
        self.life.as_mut().unwrap()
    }

    pub fn task_dir(&self) -> PathBuf {
        self.data.alloc_root().join(ALLOC.to_string()).join("web")
    }

    pub fn log_dir(&self) -> PathBuf {
        let own = self.data.alloc_root().join(ALLOC.to_string());
        own.join("alloc/logs")
    }

    pub fn run_dir(&self) -> PathBuf {
        self.data.path().join("run")
    }

    pub fn stdout(&self) -> String {
        fs::read_to_string(self.log_dir().join("web.stdout.0")).unwrap()
    }

    /// A named pipe in the task's directory.
    pub fn fifo(&self, name: &str) -> PathBuf {
        let path = self.task_dir().join(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        rustix::fs::chmod(&path, mode).unwrap();
        path
    }

    /// Asks for a start and does not wait.
    pub fn ask(&mut self, effect: impl FnOnce(Op) -> DriverEffect) -> Op {
        let life = self.life();
        life.ops += 1;
        let op = Op(life.ops);
        let _runtime = life.runtime.enter();
        life.driver.carry_out(key(), effect(op));
        op
    }

    /// The next thing that is said.
    pub fn receive(&mut self) -> DriverInput {
        let life = self.life();
        let next =
            async { tokio::time::timeout(Duration::from_secs(60), life.reported.recv()).await };
        match life.runtime.block_on(next) {
            Ok(Some(Input::Driver(task, input))) => {
                assert_eq!(task, key());
                input
            }
            other => panic!("nothing is said: {other:?}"),
        }
    }

    pub fn ask_start(&mut self, launch: u128, config: TaskConfig) -> Op {
        let (launch, config) = (LaunchId(launch), Arc::new(config));
        self.ask(|op| DriverEffect::Start(request::Start { op, launch, config }))
    }

    /// Asks for a program beside a launch and does not wait.
    pub fn ask_exec(&mut self, launch: u128, program: Program) -> Op {
        let (launch, program) = (LaunchId(launch), Arc::new(program));
        self.ask(|op| {
            DriverEffect::Exec(request::Exec {
                op,
                launch,
                program,
                output: false,
            })
        })
    }

    pub fn start(&mut self, launch: u128, config: TaskConfig) -> Result<(), Failure> {
        let asked = self.ask_start(launch, config);
        match self.receive() {
            DriverInput::Started { op, .. } if op == asked => Ok(()),
            DriverInput::StartFailed { op, failure, .. } if op == asked => Err(failure),
            other => panic!("{other:?}"),
        }
    }

    pub fn refused(&mut self, launch: u128, config: TaskConfig) -> Failure {
        self.start(launch, config).unwrap_err()
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
        let (launch, logs) = (LaunchId(launch), LogConfig::default());
        let asked = self.ask(|op| DriverEffect::Recover(request::Recover { op, launch, logs }));
        match self.receive() {
            DriverInput::Recovered { op, found, .. } if op == asked => found,
            other => panic!("{other:?}"),
        }
    }

    pub fn stop(&mut self, launch: u128, signal: &str) {
        let (launch, signal) = (LaunchId(launch), signal.to_owned());
        let grace = drover_core::time::Span::secs(5);
        self.ask(|op| {
            DriverEffect::Stop(request::Stop {
                op,
                launch,
                signal,
                grace,
            })
        });
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

    /// Destroys a launch that may run: how it ended is told then, and perhaps before.
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
        exits.dedup();
        assert_eq!(exits.len(), 1, "{exits:?}");
        self.assert_silence();
        exits.remove(0)
    }

    /// Destroys a launch, whatever became of it, and lets whoever tells its end do so.
    pub fn end_quietly(&mut self, launch: u128) {
        let launch = LaunchId(launch);
        let asked = self.ask(|op| DriverEffect::Destroy(request::Destroy { op, launch }));
        while !matches!(self.receive(), DriverInput::Destroyed { op, .. } if op == asked) {}
    }

    /// Lets the driver work until something has come to pass.
    pub fn until(&mut self, mut come: impl FnMut(&Self) -> bool) {
        while !come(self) {
            self.ask(|op| {
                DriverEffect::Destroy(request::Destroy {
                    op,
                    launch: LaunchId(u128::MAX),
                })
            });
            let received = self.receive();
            assert!(
                matches!(received, DriverInput::Destroyed { .. }),
                "{received:?}"
            );
        }
    }

    /// What the kernel holds to be a launch's limit of memory; `None` without control groups.
    pub fn memory_limit(&self, launch: u128) -> Option<String> {
        let parent = &self.groups.as_ref()?.parent;
        let name = LaunchId(launch);
        let v1 = format!("/sys/fs/cgroup/memory/{parent}/{name}/memory.limit_in_bytes");
        let v2 = format!("/sys/fs/cgroup/{parent}/{name}/memory.max");
        Some(
            fs::read_to_string(v1)
                .or_else(|_| fs::read_to_string(v2))
                .unwrap(),
        )
    }

    /// Nothing more is said, and nobody is left who could.
    pub fn assert_silence(&mut self) {
        // What is under way finds its end in the answer to something that comes after.
        self.ask(|op| {
            DriverEffect::Destroy(request::Destroy {
                op,
                launch: LaunchId(u128::MAX),
            })
        });
        let received = self.receive();
        assert!(matches!(received, DriverInput::Destroyed { launch, .. } if launch.0 == u128::MAX));
        assert!(self.life().reported.try_recv().is_err());
    }

    /// Once it is forgotten, nothing of a launch is left outside of the allocation's directory.
    pub fn assert_gone(&mut self, launch: u128) {
        let name = LaunchId(launch).to_string();
        let life = self.life();
        let runtime = life.runtime.enter();
        life.driver.forget(LaunchId(launch));
        drop(runtime);
        self.until(|world| {
            let left = |suffix| world.run_dir().join(format!("{name}.{suffix}")).exists();
            !left("r") && !left("s")
        });
        self.assert_no_group(launch);
    }

    pub fn assert_no_group(&self, launch: u128) {
        if let Some(groups) = &self.groups {
            let name = LaunchId(launch).to_string();
            assert!(!groups.groups.list().unwrap().contains(&name));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.life.take());
        let _end = super::Rig::at_data(self.data.path().to_owned());
    }
}
