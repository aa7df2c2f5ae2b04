//! The driver `mock_driver`: tasks without processes, for demonstrations and tests of the real
//! agent. They run for as long as they are told and end as they are told.
//!
//! Its tasks live in the agent, so they do not outlive it: an agent that comes back finds none.

mod sessions;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::driver::config::{MockCommand, MockConfig, MockOutput};
use drover_core::effect::{DriverEffect, TaskConfig, request};
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::{DriverInput, Found};
use drover_core::model::alloc::{DriverNetwork, ExitResult};
use drover_core::model::node::DriverInfo;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;
use rustix::fs::{Mode, OFlags, openat};
use tokio::sync::watch;
use tokio::time::sleep;

use super::answer::Answer;
use super::session::Opening;
use super::{Driver, Inbox};
use crate::dirs::AllocDirs;

/// The driver. Cheap to clone.
#[derive(Clone)]
pub struct Mock {
    name: &'static str,
    world: Arc<World>,
}

struct World {
    dirs: AllocDirs,
    inbox: Inbox,
    tasks: Mutex<Tasks>,
}

#[derive(Default)]
struct Tasks {
    /// What runs, and how it is told to end.
    running: BTreeMap<LaunchId, Running>,
    /// What must not start, or not again.
    never: BTreeSet<LaunchId>,
}

struct Running {
    stop: watch::Sender<bool>,
    config: Arc<MockConfig>,
}

impl Tasks {
    /// Notes that a launch runs, unless it was decided before that it never will.
    fn claim(&mut self, launch: LaunchId, task: Running) -> bool {
        let first = self.never.insert(launch);
        if first {
            self.running.insert(launch, task);
        }
        first
    }
}

impl Mock {
    /// A driver of this name (`mock_driver` or `mock`) whose tasks write into `dirs`.
    pub fn new(name: &'static str, dirs: AllocDirs, inbox: Inbox) -> Mock {
        Mock {
            name,
            world: Arc::new(World {
                dirs,
                inbox,
                tasks: Mutex::default(),
            }),
        }
    }
}

impl Driver for Mock {
    fn name(&self) -> &str {
        self.name
    }

    fn fingerprint(&self) -> DriverInfo {
        super::healthy()
    }

    fn carry_out(&self, task: TaskKey, effect: DriverEffect) {
        let world = self.world.clone();
        match effect {
            DriverEffect::Start(request::Start { op, launch, config }) => {
                tokio::spawn(world.start(task, op, launch, config));
            }
            DriverEffect::Recover(request::Recover { op, launch, .. }) => {
                world.tasks().never.insert(launch);
                let found = Found::Gone("tasks of the mock driver end with the agent".to_owned());
                let recovered = DriverInput::Recovered {
                    op,
                    launch,
                    found,
                    network: None,
                };
                world.inbox.send(&task, recovered);
            }
            DriverEffect::Stop(request::Stop { op, launch, .. }) => {
                let world = world.clone();
                tokio::spawn(async move {
                    world.stop(launch).await;
                    world.inbox.send(
                        &task,
                        DriverInput::Stopped {
                            op,
                            launch,
                            result: Ok(()),
                        },
                    );
                });
            }
            DriverEffect::Signal(request::Signal { op, launch, .. }) => {
                let result = world.signal(launch);
                world
                    .inbox
                    .send(&task, DriverInput::Signaled { op, launch, result });
            }
            DriverEffect::Exec(request::Exec { op, launch, .. }) => {
                tokio::spawn(async move {
                    let result = world.exec(launch).await;
                    let output = String::new();
                    let ended = DriverInput::Executed {
                        op,
                        launch,
                        result,
                        output,
                    };
                    world.inbox.send(&task, ended);
                });
            }
            DriverEffect::Health(asked) => {
                let (op, launch) = (asked.op, asked.launch);
                let healthy = DriverInput::Executed {
                    op,
                    launch,
                    result: Ok(request::Health::HEALTHY),
                    output: String::new(),
                };
                world.inbox.send(&task, healthy);
            }
            DriverEffect::OpenSession(asked) => {
                let effect = asked.clone().into();
                let owed = Answer::owed(&world.inbox, &task, &effect);
                if let Some((opening, server)) = Opening::take(&world.inbox, &task, owed, &asked) {
                    tokio::spawn(world.open_session(asked, opening, server));
                }
            }
            DriverEffect::Destroy(request::Destroy { op, launch }) => {
                world.tasks().never.insert(launch);
                let running = world.tasks().running.remove(&launch);
                let exit = running.map(|_| killed());
                world.inbox.send(
                    &task,
                    DriverInput::Destroyed {
                        op,
                        launch,
                        result: Ok(exit),
                    },
                );
            }
        }
    }

    fn forget(&self, launch: LaunchId) {
        self.world.tasks().never.remove(&launch);
    }
}

impl World {
    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        // Nothing that holds the lock can panic half way.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn start(
        self: Arc<Self>,
        task: TaskKey,
        op: Op,
        launch: LaunchId,
        config: Arc<TaskConfig>,
    ) {
        let failed = |failure| DriverInput::StartFailed {
            op,
            launch,
            failure,
        };
        let mock = match MockConfig::decode(&config.config) {
            Ok(mock) => Arc::new(mock),
            Err(problems) => {
                let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
                return self
                    .inbox
                    .send(&task, failed(Failure::fatal(texts.join("; "))));
            }
        };
        sleep(duration(mock.start_block_for)).await;
        if let Some(message) = mock.start_error.clone() {
            let recoverable = mock.start_error_recoverable;
            let failure = Failure {
                message,
                recoverable,
            };
            return self.inbox.send(&task, failed(failure));
        }
        let (stop, mut stopped) = watch::channel(false);
        if !self.tasks().claim(
            launch,
            Running {
                stop,
                config: mock.clone(),
            },
        ) {
            let failure = Failure::fatal("the launch was destroyed before it started");
            return self.inbox.send(&task, failed(failure));
        }
        let network = network(&mock);
        self.inbox.send(
            &task,
            DriverInput::Started {
                op,
                launch,
                network,
            },
        );
        tokio::join!(
            self.write(&task, "stdout", &mock.command.stdout),
            self.write(&task, "stderr", &mock.command.stderr),
            async {
                let end = end(&mock, &mut stopped).await;
                if let End::Exit(_) = &end {
                    self.tasks().running.remove(&launch);
                }
                let result = match end {
                    End::Exit(result) => result,
                    // It runs on until somebody destroys it.
                    End::PluginGone => ExitResult::unknown(PLUGIN_GONE),
                };
                self.inbox
                    .send(&task, DriverInput::Exited { launch, result });
            }
        );
    }

    async fn stop(&self, launch: LaunchId) {
        let delay = self
            .tasks()
            .running
            .get(&launch)
            .map(|task| task.config.kill_after);
        sleep(duration(delay.unwrap_or(Span::ZERO))).await;
        if let Some(task) = self.tasks().running.get(&launch) {
            // Nobody listens if it ended meanwhile.
            let _ = task.stop.send(true);
        }
    }

    fn signal(&self, launch: LaunchId) -> Result<(), Failure> {
        let tasks = self.tasks();
        let Some(task) = tasks.running.get(&launch) else {
            return Err(Failure::fatal("task not running"));
        };
        match &task.config.command.signal_error {
            None => Ok(()),
            Some(error) => Err(Failure::fatal(error)),
        }
    }

    /// Runs a pretended command in a task, and returns its exit code.
    async fn exec(&self, launch: LaunchId) -> Result<i32, Failure> {
        let task = self
            .tasks()
            .running
            .get(&launch)
            .map(|task| task.config.clone());
        let task = task.ok_or_else(|| Failure::fatal("task not running"))?;
        let Some(command) = &task.exec_command else {
            return Ok(0);
        };
        sleep(duration(command.run_for)).await;
        match &command.exit_err_msg {
            Some(message) => Err(Failure::fatal(message)),
            None if command.exit_signal != 0 => Ok(128 + command.exit_signal),
            None => Ok(command.exit_code),
        }
    }

    /// Writes what the task is told to say into its log: once, then as often again.
    async fn write(&self, task: &TaskKey, stream: &str, output: &MockOutput) {
        if output.text.is_empty() {
            return;
        }
        for round in 0..=output.repeat {
            if round > 0 {
                sleep(duration(output.gap)).await;
            }
            if let Err(error) = self.append(task, stream, &output.text) {
                return tracing::warn!(%error, task = %task.task, "cannot write a mock task's log");
            }
        }
    }

    fn append(&self, task: &TaskKey, stream: &str, text: &str) -> std::io::Result<()> {
        let dir = self.dirs.open(task.alloc, "alloc/logs")?;
        let flags = OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY | OFlags::NOFOLLOW;
        let name = format!("{}.{stream}.0", task.task);
        let file = openat(
            &dir,
            name,
            flags | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o644),
        )?;
        std::fs::File::from(file).write_all(text.as_bytes())
    }
}

/// What waiting for a task whose plugin is gone says.
const PLUGIN_GONE: &str = "plugin is shut down";

/// How waiting for a task ends.
enum End {
    /// With the task.
    Exit(ExitResult),
    /// Without it: nobody can know what becomes of it.
    PluginGone,
}

async fn end(mock: &MockConfig, stopped: &mut watch::Receiver<bool>) -> End {
    let plugin_gone = async {
        match mock.plugin_exit_after {
            Some(after) => sleep(duration(after)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = sleep(duration(mock.command.run_for)) => End::Exit(exit_of(&mock.command)),
        // The sender lives as long as the task is held; gone, it was destroyed.
        _ = stopped.changed() => End::Exit(killed()),
        () = plugin_gone => End::PluginGone,
    }
}

fn exit_of(command: &MockCommand) -> ExitResult {
    let message = command.exit_err_msg.clone();
    let (code, signal) = (command.exit_code, command.exit_signal);
    ExitResult {
        code: Some(code),
        signal,
        oom_killed: false,
        message,
    }
}

fn killed() -> ExitResult {
    ExitResult {
        code: Some(130),
        signal: 2,
        ..ExitResult::default()
    }
}

fn network(mock: &MockConfig) -> Option<DriverNetwork> {
    if mock.driver_ip.is_none() && mock.driver_port_map.is_none() {
        return None;
    }
    Some(DriverNetwork {
        ip: mock.driver_ip.clone().unwrap_or_default(),
        auto_advertise: mock.driver_advertise,
        port_map: mock.driver_port_map.iter().cloned().collect(),
    })
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(u64::try_from(span.0).unwrap_or(0))
}
