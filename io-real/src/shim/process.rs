//! A shim as a process: seeing that it lives, and helping or ending one that does not answer.
//!
//! A task may be an enemy of its own shim: one that runs as root can stop it, again and again, and
//! keep its socket busy. So no call waits for a shim without an end, and while one waits, a shim that
//! was stopped is continued. Everything goes through a pidfd, so that it hits no other process.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::proc_stat::Stat;

/// How long a call waits before the shim is looked at.
pub(super) const SLICE: Duration = Duration::from_millis(250);

/// How often a shim is continued for the sake of one call.
const CONTINUES: u32 = 8;

/// Nobody had to continue it so far.
const UNDISTURBED: u8 = 0;
/// It was continued, and nobody asked about that yet.
const CONTINUED: u8 = 1;
/// It was continued, and somebody knows.
const KNOWN: u8 = 2;

/// A shim's process. As a descriptor it is its pidfd: readable when the shim is gone.
#[derive(Debug)]
pub(super) struct ShimProcess {
    handle: OwnedFd,
    pid: i32,
    continued: AtomicU8,
}

impl AsFd for ShimProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl ShimProcess {
    /// The process with this pidfd and this number.
    pub(super) fn new(handle: OwnedFd, pid: i32) -> ShimProcess {
        ShimProcess {
            handle,
            pid,
            continued: AtomicU8::new(UNDISTURBED),
        }
    }

    /// Its number, which is another's once it is gone.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it is gone, after waiting for that for so long.
    pub(super) fn is_gone_within(&self, within: Duration) -> io::Result<bool> {
        let time = Timespec::try_from(within).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&time)) {
            Err(Errno::INTR) => Ok(false),
            ready => Ok(ready? > 0),
        }
    }

    /// Whether it was stopped by a signal.
    pub(super) fn is_stopped(&self) -> bool {
        let stopped = Stat::of(self.pid).is_ok_and(|stat| stat.is_stopped);
        // Looked at after that: while it is not gone, its number is its own.
        stopped && self.is_gone_within(Duration::ZERO).is_ok_and(|gone| !gone)
    }

    /// Continues it if it was stopped; true if it was.
    pub(super) fn continue_if_stopped(&self) -> bool {
        if !self.is_stopped() || pidfd_send_signal(&self.handle, Signal::CONT).is_err() {
            return false;
        }
        let (from, to) = (UNDISTURBED, CONTINUED);
        let order = Ordering::Relaxed;
        let _ = (self.continued).compare_exchange(from, to, order, order);
        true
    }

    /// Whether it had to be continued. True once.
    pub(super) fn take_continued(&self) -> bool {
        let order = Ordering::Relaxed;
        (self.continued)
            .compare_exchange(CONTINUED, KNOWN, order, order)
            .is_ok()
    }

    /// Kills it, whatever state it is in, and waits for its end for so long. True if it is gone.
    pub(super) fn end(&self, within: Duration) -> io::Result<bool> {
        match pidfd_send_signal(&self.handle, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => return Err(errno.into()),
        }
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.is_gone_within(left)? {
                self.reap();
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    /// Leaves no zombie, if it was our child and is dead; else the call fails, which is fine.
    pub(super) fn reap(&self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let _ = waitid(WaitId::PidFd(self.handle.as_fd()), options);
    }
}

/// Makes a call that gives up with `EAGAIN` after a [`SLICE`], until it does not, or until the time is
/// over. A shim that is found stopped meanwhile is continued, but not for ever.
///
/// # Errors
/// `WouldBlock`: the shim does not answer. Others: the call's own.
pub(super) fn retry_until<T>(
    shim: Option<&ShimProcess>,
    until: Option<Instant>,
    mut call: impl FnMut() -> rustix::io::Result<T>,
) -> io::Result<T> {
    let mut continued = 0;
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let over = until.is_some_and(|until| Instant::now() >= until);
                if shim.is_some_and(ShimProcess::continue_if_stopped) {
                    continued += 1;
                }
                if over || continued > CONTINUES {
                    return Err(Errno::AGAIN.into());
                }
            }
            result => return result.map_err(io::Error::from),
        }
    }
}
