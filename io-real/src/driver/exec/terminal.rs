//! The terminals of sessions, which are the task's own: made in its `/dev/pts`, so that programs find their
//! terminal by its name.
//!
//! The task may be an enemy, and what lies below its root may be its work. So nothing is opened before it is known
//! to be what is wanted: `ptmx` of a file system for terminals. The program's side is not opened by a path at all:
//! the kernel is asked for the peer of what is opened here.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    FileType, Mode, OFlags, ResolveFlags, fstat, fstatfs, major, minor, open, openat2,
};
use rustix::io::Errno;

use crate::dirs::retried;
use crate::shim::{self, Process};

/// Where it is in a task's root.
const PTMX: &str = "dev/pts/ptmx";
/// What `statfs` says of a file system for terminals.
const DEVPTS: u64 = 0x1cd1;
/// The device that makes terminals.
const PTMX_DEVICE: (u32, u32) = (5, 2);

/// The side of a new terminal that the agent has: a terminal of the task whose namespaces this process holds.
///
/// # Errors
/// The process is gone, or the task has something else where its terminals were.
pub(in crate::driver) fn open_multiplexer(holder: Process) -> io::Result<OwnedFd> {
    let handle = shim::open_process(holder)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open(format!("/proc/{}/root", holder.pid), flags, Mode::empty())?;
    if is_gone(&handle)? {
        // The number may have been another process's when the root was opened.
        return Err(io::ErrorKind::NotFound.into());
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = retried(|| openat2(&root, PTMX, flags, Mode::empty(), resolve))?;
    check(&found)?;
    // By the handle: it is the very file that was looked at.
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

fn is_gone(process: &OwnedFd) -> Result<bool, Errno> {
    let mut ready = [PollFd::new(process, PollFlags::IN)];
    let now = Timespec::default();
    Ok(rustix::io::retry_on_intr(|| poll(&mut ready, Some(&now)))? > 0)
}

/// Whether it is what makes terminals, and not what a task has put in its place.
fn check(file: &impl AsFd) -> io::Result<()> {
    let stat = fstat(file)?;
    let device = (major(stat.st_rdev), minor(stat.st_rdev));
    let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
    let kind = u64::try_from(fstatfs(file)?.f_type).unwrap_or_default();
    if is_device && device == PTMX_DEVICE && kind == DEVPTS {
        return Ok(());
    }
    let why = format!("/{PTMX} of the task is not what makes terminals");
    Err(io::Error::new(io::ErrorKind::InvalidData, why))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_terminals_passes() {
        let at = |path: &str| {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            check(&open(path, flags, Mode::empty()).unwrap())
        };
        for path in ["/dev/null", "/proc/self/stat", "/tmp"] {
            assert!(at(path).is_err(), "{path}");
        }
    }
}
