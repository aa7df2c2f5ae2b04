//! The terminals of sessions, which are the task's own: made in its `/dev/pts`, so that programs find their
//! terminal by its name.
//!
//! The task may be an enemy, and what lies below its root may be its work. So nothing is opened before it is known
//! to be what is wanted: `ptmx` of a file system for terminals. The program's side is not opened by a path at all:
//! the kernel is asked for the peer of what is opened here. And no file system is asked that the task may have mounted
//! there and that may never answer: what is a mount point of the agent's is always in the kernel's memory.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, major, minor, open, openat2};
use rustix::io::Errno;

use crate::shim::{self, Process};

/// Where it is in a task's root.
const PTMX: &str = "dev/pts/ptmx";
/// The type of a file system for terminals.
const DEVPTS: &str = "devpts";
/// How often it is looked for, where something is just being renamed or mounted.
const ATTEMPTS: u32 = 100;
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
    let found = find(&root)?;
    check(&found, holder.pid)?;
    // By the handle: it is the very file that was looked at.
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// Looks for it without asking a disk, or whoever may be behind a file system.
fn find(root: &OwnedFd) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::CACHED;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..ATTEMPTS {
        match openat2(root, PTMX, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
    Err(replaced())
}

fn replaced() -> io::Error {
    let why = format!("/{PTMX} of the task is not what makes terminals");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn is_gone(process: &OwnedFd) -> Result<bool, Errno> {
    let mut ready = [PollFd::new(process, PollFlags::IN)];
    let now = Timespec::default();
    Ok(rustix::io::retry_on_intr(|| poll(&mut ready, Some(&now)))? > 0)
}

/// Whether it is what makes terminals, and not what a task has put in its place. The kernel alone is asked before it is
/// known that no other file system has it.
fn check(file: &OwnedFd, holder: i32) -> io::Result<()> {
    let mount = mount_of(file)?;
    let table = fs::read_to_string(format!("/proc/{holder}/mountinfo"))?;
    if kind_of(&table, &mount) != Some(DEVPTS) {
        return Err(replaced());
    }
    let stat = fstat(file)?;
    let device = (major(stat.st_rdev), minor(stat.st_rdev));
    let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
    match is_device && device == PTMX_DEVICE {
        true => Ok(()),
        false => Err(replaced()),
    }
}

/// The number of the mount that a file is in.
fn mount_of(file: &OwnedFd) -> io::Result<String> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let mut lines = text.lines();
    let number = lines.find_map(|line| line.strip_prefix("mnt_id:"));
    number.map(|it| it.trim().to_owned()).ok_or_else(replaced)
}

/// The type of a mount, by a table of them.
fn kind_of<'a>(table: &'a str, mount: &str) -> Option<&'a str> {
    let mut lines = table.lines();
    let line = lines.find(|line| line.split(' ').next() == Some(mount))?;
    line.split_once(" - ")?.1.split(' ').next()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_terminals_passes() {
        let own = i32::try_from(std::process::id()).unwrap();
        let at = |path: &str| {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            check(&open(path, flags, Mode::empty()).unwrap(), own)
        };
        for path in ["/dev/null", "/proc/self/stat", "/tmp"] {
            assert!(at(path).is_err(), "{path}");
        }
    }
}
