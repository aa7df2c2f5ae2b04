//! A plugin's process: started, watched, distinguished from foreign ones, ended.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, setsid, waitid,
};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use super::program::Program;
use crate::facts::boot_id;
use crate::proc_stat::Stat;

/// Who a process is, also after the agent or the machine restarted: pids are used again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub pid: i32,
    /// When it started, in the kernel's ticks since the boot.
    pub start_time: u64,
    /// Which boot of the machine it belongs to.
    pub boot_id: String,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody can know: it was started by an earlier agent.
    Unknown,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
            Exit::Unknown => f.write_str("unknown exit"),
        }
    }
}

/// A plugin's process. Dropping it leaves the process alone.
#[derive(Debug)]
pub(super) struct Process {
    identity: Identity,
    handle: OwnedFd,
    /// Whether its number may be given to another: it was reaped, or somebody else reaps it.
    reaped: Arc<Mutex<bool>>,
    exit: watch::Receiver<Option<Exit>>,
}

impl Process {
    /// Executes a program by its handle, in a session of its own: with these arguments and no
    /// other environment than this, no input, and no other descriptors than `output`.
    pub(super) fn spawn(
        program: &Program,
        args: &[String],
        env: &BTreeMap<String, String>,
        output: [OwnedFd; 2],
    ) -> io::Result<Process> {
        let handle = program.as_fd().as_raw_fd();
        let [stdout, stderr] = output;
        let mut command = Command::new(format!("/proc/self/fd/{handle}"));
        command
            .arg0(program.path())
            .args(args)
            .env_clear()
            .envs(env)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr));
        let leaky = inheritable()?;
        let kept = program.is_script().then_some(handle);
        // SAFETY: between fork and exec only system calls are made, on descriptors that are open
        // in the copy; nothing allocates or locks.
        unsafe {
            command.pre_exec(move || {
                setsid()?;
                for fd in &leaky {
                    // SAFETY: at worst it is closed, which is an error that does not matter.
                    let fd = BorrowedFd::borrow_raw(*fd);
                    let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
                }
                if let Some(kept) = kept {
                    // The interpreter opens the script by this number.
                    // SAFETY: the program's handle outlives the fork.
                    fcntl_setfd(BorrowedFd::borrow_raw(kept), FdFlags::empty())?;
                }
                Ok(())
            });
        }
        let mut child = command.spawn()?;
        Process::of(&child).inspect_err(|_| {
            // Without a handle nobody could end it later.
            let _ = child.kill();
            let _ = child.wait();
        })
    }

    /// The process of a child that was not waited for, so that its number is its own.
    fn of(child: &Child) -> io::Result<Process> {
        let pid = Pid::from_child(child);
        let handle = pidfd_open(pid, PidfdFlags::empty())?;
        Process::watched(identity(pid)?, handle, true)
    }

    /// Finds a process of an earlier agent again. `None` if it is gone, whoever has its number now.
    pub(super) fn find(identity: &Identity) -> io::Result<Option<Process>> {
        let Some(pid) = Pid::from_raw(identity.pid).filter(|pid| pid.as_raw_pid() > 1) else {
            return Ok(None);
        };
        if boot_id()? != identity.boot_id {
            return Ok(None);
        }
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // The handle first: from here on the number cannot be given to another unnoticed.
        match Stat::of(identity.pid) {
            Ok(stat) if stat.start_time == identity.start_time => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        Process::watched(identity.clone(), handle, false).map(Some)
    }

    fn watched(identity: Identity, handle: OwnedFd, ours: bool) -> io::Result<Process> {
        let own = handle.try_clone()?;
        // SAFETY: the descriptor is owned by the registration, which never replaces it.
        let ready = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) }?;
        let (sender, exit) = watch::channel(None);
        let reaped = Arc::new(Mutex::new(!ours));
        let reaping = reaped.clone();
        tokio::spawn(async move {
            let _ = ready.readable().await;
            let exit = {
                let mut reaped = reaping.lock().unwrap_or_else(PoisonError::into_inner);
                *reaped = true;
                reap(ready.get_ref())
            };
            // Nobody may care any more; it is reaped all the same.
            let _ = sender.send(Some(exit));
        });
        Ok(Process {
            identity,
            handle: own,
            reaped,
            exit,
        })
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Waits until it has ended. Can be asked again.
    pub(super) async fn exited(&self) -> Exit {
        let mut exit = self.exit.clone();
        let known = exit
            .wait_for(Option::is_some)
            .await
            .map(|exit| exit.clone());
        match known {
            Ok(exit) => exit.unwrap_or(Exit::Unknown),
            // Its watcher is gone: the runtime ends.
            Err(_) => std::future::pending().await,
        }
    }

    /// How it ended; `None` while it runs.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.exit.borrow().clone()
    }

    /// Kills it; with `family`, also what it started and left in its group, if we are its parent:
    /// only then its number is proved not to be another's. What is dead already stays so.
    pub(super) fn kill(&self, family: bool) {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if family
            && !*reaped
            && let Some(pid) = Pid::from_raw(self.identity.pid)
        {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }

    /// One of its outputs, to be read on by another agent than the one that started it.
    pub(super) fn output(&self, number: u8) -> Option<OwnedFd> {
        let path = format!("/proc/{}/fd/{number}", self.identity.pid);
        reopen(&path, rustix::fs::OFlags::RDONLY)
            .ok()
            .filter(|_| self.exit().is_none())
    }
}

/// A pipe for one output of a process: our end, and an end for the process that never breaks,
/// since it holds a reading end itself. A plugin outlives the agent, and must not be killed by
/// what it prints meanwhile.
pub(super) fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::pipe::{PipeFlags, pipe_with};
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    let path = format!("/proc/self/fd/{}", write.as_raw_fd());
    let both = reopen(&path, rustix::fs::OFlags::RDWR)?;
    rustix::io::ioctl_fionbio(&both, false)?;
    Ok((read, both))
}

/// Opens a pipe again by a path of `/proc`, without waiting for anybody.
fn reopen(path: &str, access: rustix::fs::OFlags) -> io::Result<OwnedFd> {
    use rustix::fs::{FileType, Mode, OFlags, fstat, open};
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = open(path, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&fd)?.st_mode) == FileType::Fifo {
        Ok(fd)
    } else {
        Err(io::Error::from(io::ErrorKind::InvalidInput))
    }
}

fn reap(handle: &OwnedFd) -> Exit {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    match waitid(WaitId::PidFd(handle.as_fd()), options) {
        Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Unknown,
        },
        // Not our child.
        Ok(None) | Err(_) => Exit::Unknown,
    }
}

/// Descriptors that a program would inherit from us, beside the first three.
fn inheritable() -> io::Result<Vec<i32>> {
    let mut leaky = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // SAFETY: a number that was closed meanwhile is an error and nothing more.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        if number > 2 && fcntl_getfd(fd).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC)) {
            leaky.push(number);
        }
    }
    Ok(leaky)
}

/// From now on no program that this process starts inherits a descriptor, beside the first three.
pub(crate) fn pass_nothing_on() -> io::Result<()> {
    for number in inheritable()? {
        // SAFETY: nobody closes descriptors meanwhile; one that is closed is an error and nothing more.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    }
    Ok(())
}

fn identity(pid: Pid) -> io::Result<Identity> {
    Ok(Identity {
        pid: pid.as_raw_pid(),
        start_time: Stat::of(pid.as_raw_pid())?.start_time,
        boot_id: boot_id()?,
    })
}
