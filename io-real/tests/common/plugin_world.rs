//! The driver that is a plugin, with all that it needs, and the core's side of it.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use crate::plugins::{Plugins, configure, kill, map, soon};
use drover_core::agent::Input;
use drover_core::effect::{DriverEffect, Program, TaskConfig, request};
use drover_core::ids::{AllocId, LaunchId, Run, TaskKey};
use drover_core::input::{DriverInput, Found};
use drover_core::model::alloc::ExitResult;
use drover_core::model::task::LogConfig;
use drover_core::model::value::Value;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;
use drover_io_real::data_dir::DataDir;
use drover_io_real::dirs::AllocDirs;
use drover_io_real::driver::external::{Collectors, Handles, PluginDriver};
use drover_io_real::driver::{Driver, Inbox, Orphans};
use drover_io_real::plugin::{Limits, Plugin, PluginKind, Reattach};
use drover_io_real::shim::ShimHome;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const ALLOC: AllocId = AllocId(0xa110c);

/// One life of an agent's driver.
pub struct World {
    pub plugins: Plugins,
    pub driver: PluginDriver,
    pub reported: UnboundedReceiver<Input>,
    data: DataDir,
    dir: TempDir,
    ops: u64,
}

pub fn key() -> TaskKey {
    TaskKey {
        alloc: ALLOC,
        task: "web".into(),
    }
}

/// What to start: a shell script.
pub fn sh(script: &str) -> TaskConfig {
    let args = Value::List(vec![Value::from("-c"), Value::from(script)]);
    let config = map([("command", Value::from("/bin/sh")), ("args", args)]);
    let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    TaskConfig {
        run: Run(1),
        job: "job".to_owned(),
        group: "group".to_owned(),
        config: config.as_map().unwrap().clone(),
        env: [path].into(),
        cpu_shares: 100,
        memory_limit: 256 << 20,
        ..TaskConfig::default()
    }
}

impl World {
    /// With the example.
    pub fn new() -> Self {
        Self::of(Plugins::example("driver_plugin"))
    }

    /// With this plugin.
    pub fn of(plugins: Plugins) -> Self {
        let dir = TempDir::new().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = DataDir::open(&dir.path().join("data")).unwrap();
        let dirs = AllocDirs::new(data.allocs());
        dirs.build_alloc(ALLOC).unwrap();
        dirs.build_task(ALLOC, "web", None).unwrap();
        let (driver, reported) = driver(&data);
        Self {
            plugins,
            driver,
            reported,
            data,
            dir,
            ops: 0,
        }
    }

    /// The agent dies, and another begins.
    pub fn begin_again(&mut self) {
        (self.driver, self.reported) = driver(&self.data);
    }

    /// Starts a plugin and attaches it.
    pub async fn attach(&self, mischief: &str) -> Arc<Plugin> {
        let plugin = self.launch(mischief).await;
        self.use_it(plugin).await
    }

    /// Starts a plugin.
    pub async fn launch(&self, mischief: &str) -> Arc<Plugin> {
        let plugin = self.plugins.launch(mischief).await.unwrap();
        assert_eq!(plugin.info().await.unwrap().kind, PluginKind::Driver);
        configure(&plugin, map([])).await.unwrap();
        plugin.init().await.unwrap();
        Arc::new(plugin)
    }

    /// Attaches a plugin of an earlier agent.
    pub async fn reattach(&self, from: &Reattach) -> Arc<Plugin> {
        let plugin = soon(Plugin::reattach(from, Limits::default())).await;
        self.use_it(Arc::new(plugin.unwrap())).await
    }

    /// Attaches a plugin.
    pub async fn use_it(&self, plugin: Arc<Plugin>) -> Arc<Plugin> {
        let schema = plugin.task_schema().await.unwrap();
        self.driver.attach(plugin.clone(), schema);
        plugin
    }

    /// The next that the driver answers, or tells of an end.
    pub async fn receive(&mut self) -> DriverInput {
        loop {
            let input = self.next_input().await;
            if !matches!(input, DriverInput::Event { .. }) {
                return input;
            }
        }
    }

    /// What the driver says of its own accord until this launch has ended.
    pub async fn message_of(&mut self, of: u128) -> Option<String> {
        let mut reported = None;
        loop {
            match self.next_input().await {
                DriverInput::Event {
                    launch, message, ..
                } if launch == LaunchId(of) => reported = Some(message),
                DriverInput::Exited { launch, .. } if launch == LaunchId(of) => return reported,
                _ => {}
            }
        }
    }

    async fn next_input(&mut self) -> DriverInput {
        match soon(self.reported.recv()).await {
            Some(Input::Driver(task, input)) => {
                assert_eq!(task, key());
                input
            }
            other => panic!("{other:?}"),
        }
    }

    fn op(&mut self) -> Op {
        self.ops += 1;
        Op(self.ops)
    }

    pub fn ask_start(&mut self, launch: u128, config: TaskConfig) -> Op {
        let (op, config) = (self.op(), Arc::new(config));
        let launch = LaunchId(launch);
        let effect = DriverEffect::Start(request::Start { op, launch, config });
        self.driver.carry_out(key(), effect);
        op
    }

    pub async fn start(&mut self, launch: u128, config: TaskConfig) -> Result<(), Failure> {
        let asked = self.ask_start(launch, config);
        match self.receive().await {
            DriverInput::Started { op, .. } if op == asked => Ok(()),
            DriverInput::StartFailed { op, failure, .. } if op == asked => Err(failure),
            other => panic!("{other:?}"),
        }
    }

    pub fn ask_destroy(&mut self, launch: u128) -> Op {
        let op = self.op();
        let launch = LaunchId(launch);
        self.driver.carry_out(
            key(),
            DriverEffect::Destroy(request::Destroy { op, launch }),
        );
        op
    }

    pub async fn destroy(&mut self, launch: u128) -> Result<Option<ExitResult>, Failure> {
        let asked = self.ask_destroy(launch);
        match self.receive().await {
            DriverInput::Destroyed { op, result, .. } if op == asked => result,
            other => panic!("{other:?}"),
        }
    }

    pub async fn recover(&mut self, launch: u128) -> Found {
        let asked = self.op();
        let effect = DriverEffect::Recover(request::Recover {
            op: asked,
            launch: LaunchId(launch),
            logs: LogConfig::default(),
        });
        self.driver.carry_out(key(), effect);
        match self.receive().await {
            DriverInput::Recovered { op, found, .. } if op == asked => found,
            other => panic!("{other:?}"),
        }
    }

    pub fn ask_stop(&mut self, launch: u128, signal: &str, grace: Span) -> Op {
        let op = self.op();
        let effect = DriverEffect::Stop(request::Stop {
            op,
            launch: LaunchId(launch),
            signal: signal.to_owned(),
            grace,
        });
        self.driver.carry_out(key(), effect);
        op
    }

    pub async fn signal(&mut self, launch: u128, signal: &str) -> Result<(), Failure> {
        let asked = self.op();
        let effect = DriverEffect::Signal(request::Signal {
            op: asked,
            launch: LaunchId(launch),
            signal: signal.to_owned(),
        });
        self.driver.carry_out(key(), effect);
        match self.receive().await {
            DriverInput::Signaled { op, result, .. } if op == asked => result,
            other => panic!("{other:?}"),
        }
    }

    pub async fn exec(&mut self, launch: u128, script: &str, time: Span) -> Result<i32, Failure> {
        let asked = self.op();
        let effect = DriverEffect::Exec(request::Exec {
            op: asked,
            launch: LaunchId(launch),
            program: Arc::new(Program {
                command: "/bin/sh".to_owned(),
                args: vec!["-c".to_owned(), script.to_owned()],
                timeout: time,
                task: sh(script),
            }),
            output: false,
        });
        self.driver.carry_out(key(), effect);
        match self.receive().await {
            DriverInput::Executed { op, result, .. } if op == asked => result,
            other => panic!("{other:?}"),
        }
    }

    pub async fn exit(&mut self, wanted: u128) -> ExitResult {
        match self.receive().await {
            DriverInput::Exited { launch, result } if launch == LaunchId(wanted) => result,
            other => panic!("{other:?}"),
        }
    }

    pub fn forget(&self, launch: u128) {
        self.driver.forget(LaunchId(launch));
    }

    /// What the task wrote.
    pub fn log(&self, name: &str) -> String {
        let path = self.data.alloc_root().join(ALLOC.to_string());
        fs::read_to_string(path.join("alloc/logs").join(name)).unwrap()
    }

    /// Waits until the task wrote this, and nothing else.
    pub async fn wrote(&self, name: &str, text: &str) {
        let read = async {
            while self.log(name) != text {
                tokio::task::yield_now().await;
            }
        };
        soon(read).await;
    }

    /// The log files, by their names.
    pub fn logs(&self) -> Vec<String> {
        let path = self.data.alloc_root().join(ALLOC.to_string());
        let logs = fs::read_dir(path.join("alloc/logs")).unwrap();
        let mut names: Vec<_> = logs
            .map(|log| log.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The files of those who collect output.
    pub fn collecting(&self) -> usize {
        let dir = self.data.path().join("plugin-logs");
        fs::read_dir(dir).unwrap().count()
    }

    /// The process that collects the output of a launch.
    pub fn collector(&self, launch: u128) -> i32 {
        let home = ShimHome::open(self.data.path()).unwrap();
        let home = home.beside(self.data.path(), "plugin-logs").unwrap();
        let record = home.read_record(&LaunchId(launch).to_string());
        record.unwrap().unwrap().shim.pid
    }

    /// The number that the task wrote first, as soon as it has.
    pub async fn pid(&self, log: &str) -> i32 {
        let read = async {
            loop {
                if let Some((pid, _)) = self.log(log).split_once('\n') {
                    return pid.parse().unwrap();
                }
                tokio::task::yield_now().await;
            }
        };
        soon(read).await
    }

    /// Files of remembered launches.
    pub fn remembered(&self) -> usize {
        fs::read_dir(self.data.path().join("plugin-tasks"))
            .unwrap()
            .count()
    }
}

impl Drop for World {
    /// Tasks outlive their plugins, but not their tests.
    fn drop(&mut self) {
        let logs = self.data.alloc_root().join(ALLOC.to_string());
        for log in fs::read_dir(logs.join("alloc/logs")).unwrap() {
            let text = fs::read_to_string(log.unwrap().path()).unwrap_or_default();
            let pid: Option<i32> = text.lines().next().and_then(|line| line.parse().ok());
            let Some(pid) = pid else { continue };
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if line == b"sleep\x001000\0" {
                kill(pid);
            }
        }
        collectors(&self.data)
            .end_unknown(&BTreeSet::new(), Orphans::End)
            .unwrap();
    }
}

fn collectors(data: &DataDir) -> Collectors {
    let home = ShimHome::open(data.path()).unwrap();
    Collectors::open(&home, data.path(), AllocDirs::new(data.allocs())).unwrap()
}

fn driver(data: &DataDir) -> (PluginDriver, UnboundedReceiver<Input>) {
    let (inbox, reported) = unbounded_channel();
    let handles = Handles::new(data.own("plugin-tasks", None).unwrap());
    let driver = PluginDriver::new(
        "example_exec".to_owned(),
        handles,
        collectors(data),
        data.alloc_root(),
        Inbox::new(inbox),
    );
    (driver, reported)
}
