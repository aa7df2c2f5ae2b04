//! Ending a launch by force.
//!
//! The launch's own record goes only with `Forget`, which leaves when it is saved that the launch
//! is over: until then its end can be reported again after a crash.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use drover_core::ids::LaunchId;
use drover_core::model::alloc::ExitResult;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use super::launch::Means;
use super::{Held, exit_result};
use crate::shim::record::State;
use crate::shim::{self, ExitRecord, Live, Outcome, Process, Recovered};

/// How long killing one launch may take before it is tried again.
const KILL_TIME: Duration = Duration::from_secs(10);

/// Ends whatever of a launch is alive and removes its control group. Its record stays: it is how
/// its end can be told again. Tells how it ended, if that is known.
pub(super) fn destroy(
    means: &Means,
    held: &Held,
    launch: LaunchId,
) -> io::Result<Option<ExitResult>> {
    let name = launch.to_string();
    let exit = match held.live(launch) {
        Some(live) => end(&live)?,
        None => match means.home.recover(&name)? {
            Recovered::Running(live) => end(&live)?,
            Recovered::Exited(exit) => Some(exit),
            Recovered::Vanished { task, exit } => {
                task.map_or(Ok(()), kill)?;
                exit
            }
            Recovered::Failed { .. } | Recovered::NeverStarted => None,
        },
    };
    remove_group(means, launch)?;
    held.destroyed(launch);
    Ok(exit.as_ref().map(exit_result))
}

/// Removes the record of a launch that is over. That of one which never started stays: it is what
/// keeps a shim that is late from starting it after all.
pub(super) fn forget(means: &Means, launch: LaunchId) -> io::Result<()> {
    let name = launch.to_string();
    // One that cannot be read says nothing that could be needed.
    match means.home.read_record(&name) {
        Ok(Some(record)) if record.state == State::Abandoned => Ok(()),
        Ok(_) | Err(_) => means.home.forget(&name),
    }
}

/// Kills what is left in a launch's control group, and removes it.
pub(super) fn remove_group(means: &Means, launch: LaunchId) -> io::Result<()> {
    let Some(cgroups) = &means.cgroups else {
        return Ok(());
    };
    let name = launch.to_string();
    if cgroups.remove_empty(&name)? {
        return Ok(());
    }
    if !cgroups.kill(&name, KILL_TIME)? {
        return Err(io::Error::other("processes of the task do not die"));
    }
    cgroups.remove(&name)
}

/// Kills a launch and waits for its shim's last word. Kept apart from the shim's own end: what a
/// killed shim left is for the control group.
pub(super) fn end(live: &Live) -> io::Result<Option<ExitRecord>> {
    if let Some(outcome) = live.outcome()? {
        return exited(live, outcome);
    }
    // It may end between the look and the word.
    let killed = live.kill();
    wait(live, KILL_TIME)?;
    match live.outcome()? {
        Some(outcome) => exited(live, outcome),
        None => {
            killed?;
            let kind = io::ErrorKind::TimedOut;
            Err(io::Error::new(kind, "the task does not die"))
        }
    }
}

fn exited(live: &Live, outcome: Outcome) -> io::Result<Option<ExitRecord>> {
    match outcome {
        Outcome::Exited(exit) => Ok(Some(exit)),
        // What the shim left alive has no other owner, where there are no control groups.
        Outcome::ShimLost => kill(live.task()).map(|()| None),
    }
}

fn wait(live: &Live, within: Duration) -> io::Result<()> {
    let time = Timespec {
        tv_sec: i64::try_from(within.as_secs()).unwrap_or(10),
        tv_nsec: 0,
    };
    let fd = live.as_fd();
    loop {
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&time)) {
            Err(Errno::INTR) => {}
            result => return result.map(|_| ()).map_err(io::Error::from),
        }
    }
}

/// Kills a process that was proved to be ours, and only that one.
fn kill(process: Process) -> io::Result<()> {
    match shim::open_process(process) {
        Ok(handle) => match pidfd_send_signal(handle, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(errno.into()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if super::is_gone(&error) => Ok(()),
        Err(error) => Err(error),
    }
}
