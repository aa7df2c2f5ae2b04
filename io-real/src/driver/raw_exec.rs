//! The driver `raw_exec`: runs a program as it is, under a shim of its own.

mod launch;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::effect::{DriverEffect, TaskConfig};
use drover_core::ids::LaunchId;
use drover_core::input::{DriverInput, Found, TaskKey};
use drover_core::model::alloc::ExitResult;
use drover_core::model::node::DriverInfo;
use drover_core::model::task::LogConfig;
use drover_core::op::{Failure, Op};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::spawn_blocking;

use super::{Driver, Inbox, signal};
use crate::cgroup::Cgroups;
use crate::dirs::AllocDirs;
use crate::shim::{ExitRecord, Live, Outcome, Recovered, ShimHome, StartError};

/// How long killing one launch may take before it is tried again.
const KILL_TIME: Duration = Duration::from_secs(10);

/// The driver. Cheap to clone.
#[derive(Clone)]
pub struct RawExec {
    world: Arc<World>,
}

/// What all launches share.
struct World {
    home: ShimHome,
    dirs: AllocDirs,
    cgroups: Option<Cgroups>,
    inbox: Inbox,
    live: Mutex<BTreeMap<LaunchId, Arc<Live>>>,
}

impl RawExec {
    /// A driver whose shims live in `home` and whose tasks work in `dirs`.
    pub fn new(home: ShimHome, dirs: AllocDirs, cgroups: Option<Cgroups>, inbox: Inbox) -> RawExec {
        let live = Mutex::default();
        RawExec {
            world: Arc::new(World {
                home,
                dirs,
                cgroups,
                inbox,
                live,
            }),
        }
    }
}

impl Driver for RawExec {
    fn name(&self) -> &'static str {
        "raw_exec"
    }

    fn fingerprint(&self) -> DriverInfo {
        super::healthy()
    }

    fn carry_out(&self, task: TaskKey, effect: DriverEffect) {
        let world = self.world.clone();
        match effect {
            DriverEffect::Start { op, launch, config } => {
                tokio::spawn(world.start(task, op, launch, config));
            }
            DriverEffect::Recover { op, launch, logs } => {
                tokio::spawn(world.recover(task, op, launch, logs));
            }
            DriverEffect::Stop {
                op, launch, signal, ..
            } => {
                tokio::spawn(async move {
                    let result = world.clone().signal(launch, signal).await;
                    let result = match result {
                        // What is over cannot be asked to end; it did.
                        Err(error) if is_gone(&error) => Ok(()),
                        result => result.map_err(|error| failure(&error)),
                    };
                    world
                        .inbox
                        .say(&task, DriverInput::Stopped { op, launch, result });
                });
            }
            DriverEffect::Signal { op, launch, signal } => {
                tokio::spawn(async move {
                    let result = world.clone().signal(launch, signal).await;
                    let result = result.map_err(|error| failure(&error));
                    world
                        .inbox
                        .say(&task, DriverInput::Signaled { op, launch, result });
                });
            }
            DriverEffect::Destroy { op, launch } => {
                tokio::spawn(async move {
                    let work = world.clone();
                    let result = blocking(move || work.destroy(launch)).await;
                    let result = result.map_err(|error| failure(&error));
                    world
                        .inbox
                        .say(&task, DriverInput::Destroyed { op, launch, result });
                });
            }
        }
    }
}

impl World {
    fn live(&self) -> MutexGuard<'_, BTreeMap<LaunchId, Arc<Live>>> {
        // Nothing that holds the lock can panic half way.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn start(
        self: Arc<Self>,
        task: TaskKey,
        op: Op,
        launch: LaunchId,
        config: Arc<TaskConfig>,
    ) {
        let (world, key, logs) = (self.clone(), task.clone(), config.logs);
        let started = spawn_blocking(move || {
            let started = launch::start(
                &world.home,
                &world.dirs,
                world.cgroups.as_ref(),
                &key,
                launch,
                &config,
            );
            started.map(|live| world.hold(launch, live))
        });
        match started.await {
            Ok(Ok(live)) => {
                self.inbox.say(
                    &task,
                    DriverInput::Started {
                        op,
                        launch,
                        network: None,
                    },
                );
                self.watch(task, launch, live, logs).await;
            }
            Ok(Err(error)) => {
                let failure = start_failure(&error);
                self.inbox.say(
                    &task,
                    DriverInput::StartFailed {
                        op,
                        launch,
                        failure,
                    },
                );
            }
            Err(lost) => {
                let failure = Failure::recoverable(format!("the start was lost: {lost}"));
                self.inbox.say(
                    &task,
                    DriverInput::StartFailed {
                        op,
                        launch,
                        failure,
                    },
                );
            }
        }
    }

    fn hold(&self, launch: LaunchId, live: Live) -> Arc<Live> {
        let live = Arc::new(live);
        self.live().insert(launch, live.clone());
        live
    }

    async fn recover(self: Arc<Self>, task: TaskKey, op: Op, launch: LaunchId, logs: LogConfig) {
        let world = self.clone();
        let recovered = blocking(move || world.home.recover(&launch.to_string())).await;
        let (found, live) = match recovered {
            Ok(Recovered::Running(live)) => (Found::Running, Some(self.hold(launch, live))),
            Ok(
                Recovered::Exited(exit)
                | Recovered::Vanished {
                    exit: Some(exit), ..
                },
            ) => (Found::Exited(exit_result(&exit)), None),
            Ok(Recovered::Failed { step, errno }) => {
                let error = io::Error::from_raw_os_error(errno);
                let message = format!("the program could not be started ({step:?}): {error}");
                (Found::Exited(ExitResult::unknown(message)), None)
            }
            Ok(Recovered::NeverStarted) => (Found::NeverStarted, None),
            Ok(Recovered::Vanished { exit: None, .. }) => {
                let why = "its shim was killed, or the machine restarted, while nobody looked";
                (Found::Gone(why.to_owned()), None)
            }
            // The answer that is missing is made up for by the core's deadline, and force.
            Err(error) => return tracing::warn!(%launch, %error, "cannot recover a task"),
        };
        self.inbox
            .say(&task, DriverInput::Recovered { op, launch, found });
        if let Some(live) = live {
            self.watch(task, launch, live, logs).await;
        }
    }

    /// Waits for the end of a launch and tells it. A shim that is killed gets a successor, which
    /// goes on where it was.
    async fn watch(
        self: Arc<Self>,
        task: TaskKey,
        launch: LaunchId,
        mut live: Arc<Live>,
        logs: LogConfig,
    ) {
        loop {
            match outcome(&live).await {
                Ok(Outcome::Exited(exit)) => {
                    let result = exit_result(&exit);
                    return self
                        .inbox
                        .say(&task, DriverInput::Exited { launch, result });
                }
                // Destroyed, with its record: whoever did that says how it ended.
                Ok(Outcome::ShimLost) if !self.live().contains_key(&launch) => return,
                Ok(Outcome::ShimLost) => {
                    match self.clone().take_over(&task, launch, &live, logs).await {
                        Ok(successor) => live = successor,
                        Err(error) => {
                            let why = format!("its shim was killed and has no successor: {error}");
                            let result = ExitResult::unknown(why);
                            return self
                                .inbox
                                .say(&task, DriverInput::Exited { launch, result });
                        }
                    }
                }
                Err(error) => return tracing::error!(%launch, %error, "cannot watch a task"),
            }
        }
    }

    async fn take_over(
        self: Arc<Self>,
        task: &TaskKey,
        launch: LaunchId,
        live: &Arc<Live>,
        logs: LogConfig,
    ) -> io::Result<Arc<Live>> {
        tracing::warn!(%launch, task = %task.task, "a task's shim was killed; another takes over");
        let (world, task, live) = (self.clone(), task.clone(), live.clone());
        let successor = blocking(move || {
            let group = world.cgroups.as_ref();
            launch::take_over(&world.home, &world.dirs, group, &task, launch, &live, logs)
        });
        Ok(self.hold(launch, successor.await?))
    }

    async fn signal(self: Arc<Self>, launch: LaunchId, name: String) -> io::Result<()> {
        let Some(number) = signal::number(&name, signal::INTERRUPT) else {
            let message = format!("there is no signal {name:?}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        let live = self.live().get(&launch).cloned();
        let live = live.ok_or_else(|| io::Error::from(rustix::io::Errno::SRCH))?;
        blocking(move || live.signal(number)).await
    }

    /// Ends whatever of a launch is alive and removes what it left.
    fn destroy(&self, launch: LaunchId) -> io::Result<Option<ExitResult>> {
        let name = launch.to_string();
        let held = self.live().get(&launch).cloned();
        let mut started = true;
        let exit = match held {
            Some(live) => end(&live)?,
            None => match self.home.recover(&name)? {
                Recovered::Running(live) => end(&live)?,
                Recovered::Exited(exit) => Some(exit),
                Recovered::Vanished { task, exit } => {
                    if let Some(task) = task {
                        launch::kill_process(task)?;
                    }
                    exit
                }
                Recovered::Failed { .. } => None,
                Recovered::NeverStarted => {
                    started = false;
                    None
                }
            },
        };
        self.live().remove(&launch);
        if let Some(cgroups) = &self.cgroups {
            if !cgroups.kill(&name, KILL_TIME)? {
                return Err(io::Error::other("processes of the task do not die"));
            }
            cgroups.remove(&name)?;
        }
        // The record of a launch that never started stays: it is what keeps a shim that is late
        // from starting it after all.
        if started {
            self.home.forget(&name)?;
        }
        Ok(exit.as_ref().map(exit_result))
    }
}

/// Kills a launch and waits for its shim's last word. Kept apart from the shim's own end: what a
/// killed shim left is for the control group.
fn end(live: &Live) -> io::Result<Option<ExitRecord>> {
    if let Some(outcome) = live.outcome()? {
        return Ok(exited(outcome));
    }
    // It may end between the look and the word.
    let killed = live.kill();
    let timeout = rustix::event::Timespec {
        tv_sec: i64::try_from(KILL_TIME.as_secs()).unwrap_or(10),
        tv_nsec: 0,
    };
    let fd = live.as_fd();
    let mut fds = [rustix::event::PollFd::new(
        &fd,
        rustix::event::PollFlags::IN,
    )];
    rustix::event::poll(&mut fds, Some(&timeout))?;
    match live.outcome()? {
        Some(outcome) => Ok(exited(outcome)),
        None => {
            killed?;
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the task does not die",
            ))
        }
    }
}

fn exited(outcome: Outcome) -> Option<ExitRecord> {
    match outcome {
        Outcome::Exited(exit) => Some(exit),
        Outcome::ShimLost => None,
    }
}

/// A launch as a descriptor that the runtime can wait for.
struct Watched(Arc<Live>);

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

async fn outcome(live: &Arc<Live>) -> io::Result<Outcome> {
    // SAFETY: the descriptor is the launch's pidfd, which it owns, never replaces, and closes only
    // when it is dropped; `Watched` keeps it alive for as long as this registration lives.
    let registered =
        unsafe { AsyncFd::register_with_interest(Watched(live.clone()), Interest::READABLE) };
    let watched = registered?;
    loop {
        let mut ready = watched.readable().await?;
        let live = live.clone();
        // Reading the record touches the disk.
        if let Some(outcome) = blocking(move || live.outcome()).await? {
            return Ok(outcome);
        }
        ready.clear_ready();
    }
}

/// Runs work that blocks where it hurts nobody.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work)
        .await
        .unwrap_or_else(|lost| Err(io::Error::other(lost)))
}

fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

fn failure(error: &io::Error) -> Failure {
    Failure::recoverable(error.to_string())
}

fn start_failure(error: &launch::LaunchError) -> Failure {
    match error {
        launch::LaunchError::Invalid(why) => Failure::fatal(why.clone()),
        launch::LaunchError::Io(error) => Failure::recoverable(error.to_string()),
        launch::LaunchError::Shim(error @ StartError::Spawn(_)) => {
            Failure::recoverable(error.to_string())
        }
        launch::LaunchError::Shim(error) => Failure::fatal(error.to_string()),
    }
}

/// An exit as the core knows it: a signal's code is 128 and its number.
fn exit_result(exit: &ExitRecord) -> ExitResult {
    let signal = exit.signal.unwrap_or(0);
    let code = exit.code.or(exit.signal.map(|signal| 128 + signal));
    let message = match (exit.known, exit.output_lost) {
        (false, _) => Some("nobody saw how the process ended".to_owned()),
        (true, true) => Some("the end of its output could not be written".to_owned()),
        (true, false) => None,
    };
    ExitResult {
        code,
        signal,
        oom_killed: exit.oom,
        message,
    }
}
