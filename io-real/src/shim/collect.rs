//! Collecting the output of a task that somebody else starts: a driver that is a plugin opens two
//! named pipes, and a shim without a task moves what comes to log files.
//!
//! The pipes are in the directory of the records, which no task can reach. The shim holds both of
//! their ends, so it sees no end of them: a driver may open them again and again. It ends when it
//! is killed through its socket, with all that came until then written.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags, fstat, mkfifoat, openat};
use rustix::io::Errno;

use super::encode;
use super::home::ShimHome;
use super::live::Live;
use super::lock;
use super::process::SLICE;
use super::recover::Recovered;
use super::spec::Logs;
use super::start::StartError;

/// How long a shim may take to write what is left.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a shim that is killed may take to be gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

impl ShimHome {
    /// Begins to collect what comes through the pipes of a launch, or goes on where a shim that was
    /// killed stood.
    ///
    /// # Errors
    /// `AlreadyClaimed`: a shim does so, or did until it was told to end. Else as
    /// [`ShimHome::start`].
    pub fn collect(&self, launch: &str, logs: &Logs<'_>) -> Result<Live, StartError> {
        let message = encode::collect(&lock::parse_id(launch)?, logs)?;
        let pipes = [self.pipe(launch, "o")?, self.pipe(launch, "e")?];
        let [out, err] = pipes.each_ref().map(AsFd::as_fd);
        let fds = [self.run.as_fd(), logs.dir, out, err];
        let (shim, task) = self.spawn(&message, &fds, None)?;
        Ok(self.live(launch, shim, task, Some(pipes)))
    }

    /// Ends the collecting of a launch, if there is one, and removes its pipes. Comes back when all
    /// that came is written.
    ///
    /// # Errors
    /// The shim does not end, or what the file system says.
    pub fn end_collecting(&self, launch: &str) -> io::Result<()> {
        if self.read_record(launch)?.is_none() {
            return self.forget(launch);
        }
        match self.recover(launch)? {
            Recovered::Running(live) => end(&live)?,
            Recovered::Silent(live) => force(&live)?,
            Recovered::Exited(_)
            | Recovered::Failed { .. }
            | Recovered::NeverStarted
            | Recovered::Rebooted
            | Recovered::Vanished { .. } => {}
        }
        self.forget(launch)
    }

    /// One of the pipes of a launch. It is the agent's alone, whatever the umask.
    fn pipe(&self, launch: &str, suffix: &str) -> io::Result<OwnedFd> {
        let name = format!("{launch}.{suffix}");
        match mkfifoat(&self.run, &name, Mode::RUSR | Mode::WUSR) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = openat(&self.run, &name, flags, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&pipe)?.st_mode) {
            FileType::Fifo => Ok(pipe),
            _ => Err(io::Error::other(format!("{name} is no pipe"))),
        }
    }
}

fn end(live: &Live) -> io::Result<()> {
    match live.kill() {
        // It is ending already.
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
        // It does not answer.
        Err(_) => return force(live),
        Ok(()) => {}
    }
    let until = Instant::now() + DRAIN_TIMEOUT;
    while !live.is_gone_within(SLICE)? {
        live.continue_if_stopped();
        if Instant::now() >= until {
            return force(live);
        }
    }
    // Leaves no zombie.
    live.outcome().map(drop)
}

/// Ends a shim that does not end by itself. What was not written by then is lost.
fn force(live: &Live) -> io::Result<()> {
    if live.end_shim(KILL_TIMEOUT)? {
        Ok(())
    } else {
        Err(io::ErrorKind::TimedOut.into())
    }
}
