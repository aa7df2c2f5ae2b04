//! What the lives and ends of launches ask of the machine.
//!
//! Starts, stops, ends by force and watchers of one launch meet each other, dying shims and dying agents in any order.
//! All that they do about it goes through these traits and through [`super::held`], so that a test can put a machine of
//! its own behind them and try every order (`races/`).

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use drover_core::effect::TaskConfig;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::task::LogConfig;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use tokio::task::JoinError;

use super::is_gone;
use super::launch::{LaunchDependencies, LaunchError};
use crate::driver::shims;
use crate::shim::record::State;
use crate::shim::{self, ExitRecord, Live, Outcome, Process, Recovered, StartError};

/// Where launches run.
pub(super) trait Machine: Send + Sync + Sized + 'static {
    /// A shim that runs here, or did.
    type Shim: Shim;

    /// Starts a launch under a shim of its own.
    fn start(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        config: &TaskConfig,
    ) -> Result<Self::Shim, LaunchError>;

    /// Gives a launch whose shim was killed another one.
    fn take_over(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        lost: &Self::Shim,
        logs: LogConfig,
    ) -> Result<Self::Shim, StartError>;

    /// Finds out what became of a launch. One that did not start never will.
    fn recover(&self, launch: LaunchId) -> io::Result<Recovered<Self::Shim>>;

    /// What the record of a launch says, if there is one.
    fn state(&self, launch: LaunchId) -> io::Result<Option<State>>;

    /// Removes the record of a launch.
    fn forget(&self, launch: LaunchId) -> io::Result<()>;

    /// Removes a launch's control group unless processes are in it; true if there is none then.
    fn remove_empty_group(&self, launch: LaunchId) -> io::Result<bool>;

    /// Kills what is in a launch's control group; true if all of it died within this time.
    fn kill_group(&self, launch: LaunchId, within: Duration) -> io::Result<bool>;

    /// Removes a launch's control group.
    fn remove_group(&self, launch: LaunchId) -> io::Result<()>;

    /// The limit of memory of a launch, and how much was used at most, if that is known.
    fn memory_marks(&self, launch: LaunchId) -> Option<(u64, u64)>;

    /// Kills a process that was proved to be ours, and only that one.
    fn kill(&self, process: Process) -> io::Result<()>;

    /// Does work that blocks where it hurts nobody.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, JoinError>> + Send;

    /// Waits until a shim is gone, and says what it left.
    fn outcome(&self, shim: &Arc<Self::Shim>) -> impl Future<Output = io::Result<Outcome>> + Send;

    /// Waits until the main process under a shim has ended, or cannot be watched.
    fn task_ended(&self, shim: &Self::Shim) -> impl Future<Output = ()> + Send;

    /// Waits for so long.
    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// The shim of a launch: see [`Live`].
pub(super) trait Shim: fmt::Debug + Send + Sync + 'static {
    /// The task's main process.
    fn task(&self) -> Process;

    /// What became of the launch; `None` while the shim runs.
    fn outcome(&self) -> io::Result<Option<Outcome>>;

    /// How the task ended, if a shim saw that.
    fn last_exit(&self) -> io::Result<Option<ExitRecord>>;

    /// Asks it to kill the task and everything that this started.
    fn kill(&self) -> io::Result<()>;

    /// Sends a signal to the task's main process.
    fn signal(&self, signal: i32) -> io::Result<()>;

    /// Whether it is gone, after waiting for that for so long.
    fn is_gone_within(&self, within: Duration) -> io::Result<bool>;

    /// Continues it if a signal stopped it; true if one did.
    fn continue_if_stopped(&self) -> bool;

    /// Whether it had to be continued. True once.
    fn take_continued(&self) -> bool;

    /// Kills it, and nothing else, and waits for its end for so long; true if it is gone.
    fn end(&self, within: Duration) -> io::Result<bool>;
}

impl Machine for LaunchDependencies {
    type Shim = Live;

    fn start(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        config: &TaskConfig,
    ) -> Result<Live, LaunchError> {
        LaunchDependencies::start(self, task, launch, config)
    }

    fn take_over(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        lost: &Live,
        logs: LogConfig,
    ) -> Result<Live, StartError> {
        LaunchDependencies::take_over(self, task, launch, lost, logs)
    }

    fn recover(&self, launch: LaunchId) -> io::Result<Recovered> {
        self.home.recover(&launch.to_string())
    }

    fn state(&self, launch: LaunchId) -> io::Result<Option<State>> {
        let record = self.home.read_record(&launch.to_string())?;
        Ok(record.map(|record| record.state))
    }

    fn forget(&self, launch: LaunchId) -> io::Result<()> {
        self.home.forget(&launch.to_string())
    }

    fn remove_empty_group(&self, launch: LaunchId) -> io::Result<bool> {
        let groups = self.cgroups.as_ref();
        groups.map_or(Ok(true), |groups| groups.remove_empty(&launch.to_string()))
    }

    fn kill_group(&self, launch: LaunchId, within: Duration) -> io::Result<bool> {
        let groups = self.cgroups.as_ref();
        groups.map_or(Ok(true), |groups| groups.kill(&launch.to_string(), within))
    }

    fn remove_group(&self, launch: LaunchId) -> io::Result<()> {
        let groups = self.cgroups.as_ref();
        groups.map_or(Ok(()), |groups| groups.remove(&launch.to_string()))
    }

    fn memory_marks(&self, launch: LaunchId) -> Option<(u64, u64)> {
        self.cgroups.as_ref()?.memory_marks(&launch.to_string())
    }

    fn kill(&self, process: Process) -> io::Result<()> {
        match shim::open_process(process) {
            Ok(handle) => match pidfd_send_signal(handle, Signal::KILL) {
                Ok(()) | Err(Errno::SRCH) => Ok(()),
                Err(errno) => Err(errno.into()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if is_gone(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, JoinError>> + Send {
        self.gate.run(work)
    }

    fn outcome(&self, shim: &Arc<Live>) -> impl Future<Output = io::Result<Outcome>> + Send {
        shims::outcome(shim, &self.gate)
    }

    fn task_ended(&self, shim: &Live) -> impl Future<Output = ()> + Send {
        shims::task_ended(shim)
    }

    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(time)
    }
}

impl Shim for Live {
    fn task(&self) -> Process {
        Live::task(self)
    }

    fn outcome(&self) -> io::Result<Option<Outcome>> {
        Live::outcome(self)
    }

    fn last_exit(&self) -> io::Result<Option<ExitRecord>> {
        Live::last_exit(self)
    }

    fn kill(&self) -> io::Result<()> {
        Live::kill(self)
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        Live::signal(self, signal)
    }

    fn is_gone_within(&self, within: Duration) -> io::Result<bool> {
        Live::is_gone_within(self, within)
    }

    fn continue_if_stopped(&self) -> bool {
        Live::continue_if_stopped(self)
    }

    fn take_continued(&self) -> bool {
        Live::take_continued(self)
    }

    fn end(&self, within: Duration) -> io::Result<bool> {
        self.end_shim(within)
    }
}
