//! Waiting for the lock of a file that another program may keep for ever.

use std::io;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How often it is tried.
const PAUSE: Duration = Duration::from_millis(10);

/// Locks a file or a directory, for all that have this handle. Whether nobody else had it locked for so long.
pub(crate) fn lock_within(file: impl AsFd, timeout: Duration) -> io::Result<bool> {
    let until = Instant::now() + timeout;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(PAUSE),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}
