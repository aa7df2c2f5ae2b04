//! A program that is run beside the agent and has a deadline. It does not outlive whoever waits for it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// How long one that was killed may take to be gone.
const LAST: Duration = Duration::from_secs(1);

/// A program that runs, in a process group of its own. Unless somebody waited for its end ([`TimedChild::wait`]), it is
/// killed with what is in its group when this is dropped.
pub(crate) struct TimedChild {
    child: Child,
    pidfd: OwnedFd,
    is_reaped: bool,
}

impl TimedChild {
    /// Runs it.
    ///
    /// # Errors
    /// It cannot be started or watched.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<TimedChild> {
        let mut child = command.process_group(0).spawn()?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(TimedChild {
                child,
                pidfd,
                is_reaped: false,
            }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }

    /// The process.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until it is over (true), or says something (false).
    ///
    /// # Errors
    /// Neither comes in time, or it is not over when the time is.
    pub(crate) fn is_over_or_says(&self, printed: &File, deadline: Instant) -> io::Result<bool> {
        let pidfd = PollFd::new(&self.pidfd, PollFlags::IN);
        let mut both = [pidfd, PollFd::new(printed, PollFlags::IN)];
        wait(&mut both, deadline)?;
        in_time(!both[0].revents().is_empty(), deadline)
    }

    /// The same, where it has several outputs that it may say something on.
    ///
    /// # Errors
    /// Neither comes in time, or it is not over when the time is.
    pub(crate) fn is_over_or_one_says(
        &self,
        printed: &[&File],
        deadline: Instant,
    ) -> io::Result<bool> {
        let mut all = vec![PollFd::new(&self.pidfd, PollFlags::IN)];
        all.extend(printed.iter().map(|one| PollFd::new(*one, PollFlags::IN)));
        wait(&mut all, deadline)?;
        let is_over = all.first().is_some_and(|it| !it.revents().is_empty());
        in_time(is_over, deadline)
    }

    /// Waits until it is over.
    ///
    /// # Errors
    /// That does not come in time.
    pub(crate) fn until_over(&self, deadline: Instant) -> io::Result<()> {
        wait(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], deadline)
    }

    /// How it ended. What it started in its group is left alone.
    pub(crate) fn wait(mut self) -> io::Result<ExitStatus> {
        self.is_reaped = true;
        self.child.wait()
    }
}

impl Drop for TimedChild {
    fn drop(&mut self) {
        if self.is_reaped {
            return;
        }
        // Nobody waited for it yet, so its number is still its own, and its group's too.
        let _ = pidfd_send_signal(self.pidfd.as_fd(), Signal::KILL);
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        // One that even this does not end hangs in the kernel. It stays, rather than us with it.
        if self.until_over(Instant::now() + LAST).is_ok() {
            let _ = self.child.wait();
        }
    }
}

/// One that is not over at its deadline is late, however much it says: of whoever never pauses something is always
/// ready.
fn in_time(is_over: bool, deadline: Instant) -> io::Result<bool> {
    match is_over || Instant::now() < deadline {
        true => Ok(is_over),
        false => Err(io::ErrorKind::TimedOut.into()),
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
