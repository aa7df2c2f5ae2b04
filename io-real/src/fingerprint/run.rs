//! Runs a program that should say a line and end, and holds it to that.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// How much of what it says is kept.
const MOST: usize = 4096;

/// How long a killed program may take to be gone.
const LAST: Duration = Duration::from_secs(1);

/// Runs a program without arguments, environment or input. Answers what it said, on either of its
/// outputs, until it ended or `deadline` came; then it and whatever is left of its group is killed.
///
/// # Errors
/// It cannot be started or watched, or did not end in time.
pub(super) fn output(program: &Path, deadline: Instant) -> io::Result<Vec<u8>> {
    let (reader, writer) = io::pipe()?;
    let child = Command::new(program)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .spawn()?;
    let running = Running::new(child)?;
    let mut reported = File::from(OwnedFd::from(reader));
    fcntl_setfl(&reported, OFlags::NONBLOCK)?;
    let mut bytes = Vec::new();
    loop {
        let ended = running.ended_or_said(&reported, deadline)?;
        let open = read_some(&mut reported, &mut bytes)?;
        match ended {
            true => return Ok(bytes),
            false if open && bytes.len() < MOST => {}
            // It has said enough. It still has to end.
            false => return running.ended(deadline).map(|()| bytes),
        }
    }
}

/// Reads what there is. False when nothing can follow.
fn read_some(from: &mut File, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 1024];
    while bytes.len() < MOST {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(length) => bytes.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A program that runs. It does not outlive this.
struct Running {
    child: Child,
    pidfd: OwnedFd,
}

impl Running {
    fn new(mut child: Child) -> io::Result<Running> {
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Running { child, pidfd }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }

    /// Waits until it ended (true) or said something (false).
    fn ended_or_said(&self, reported: &File, deadline: Instant) -> io::Result<bool> {
        let pidfd = PollFd::new(&self.pidfd, PollFlags::IN);
        let mut both = [pidfd, PollFd::new(reported, PollFlags::IN)];
        wait(&mut both, deadline)?;
        Ok(!both[0].revents().is_empty())
    }

    fn ended(&self, deadline: Instant) -> io::Result<()> {
        wait(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], deadline)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nobody waited for it yet, so its number is still its own, and its group's too.
        let _ = pidfd_send_signal(self.pidfd.as_fd(), Signal::KILL);
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        // One that even this does not end hangs in the kernel. It stays, rather than us with it.
        if self.ended(Instant::now() + LAST).is_ok() {
            let _ = self.child.wait();
        }
    }
}

/// Waits until one of them is ready.
fn wait(fds: &mut [PollFd<'_>], deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(fds, Some(&left)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
