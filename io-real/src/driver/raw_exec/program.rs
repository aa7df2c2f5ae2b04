//! Finding the program of a task, and making it executable.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, chmod, fstat, openat2};
use rustix::io::Errno;

/// Where the program may be, in Nomad's order: below the task's `local` directory, below the
/// task's directory, then on the agent's path.
pub(super) fn candidates(command: &str) -> Result<Vec<CString>, std::ffi::NulError> {
    let mut paths = Vec::new();
    if !command.starts_with('/') {
        paths.push(format!("local/{command}"));
    }
    paths.push(command.to_owned());
    if !command.contains('/') {
        let path = std::env::var("PATH").unwrap_or_default();
        let dirs = std::env::split_paths(&path).filter(|dir| dir.is_absolute());
        paths.extend(dirs.map(|dir| dir.join(command).to_string_lossy().into_owned()));
    }
    paths.into_iter().map(CString::new).collect()
}

/// Where the program may be in a task's root, in Nomad's order: below `local`, in the root, then where the host
/// has programs.
pub(super) fn candidates_in_root(command: &str) -> Result<Vec<CString>, std::ffi::NulError> {
    let mut paths = Vec::new();
    if command.starts_with('/') {
        paths.push(command.to_owned());
    } else {
        paths.push(format!("/local/{command}"));
        paths.push(format!("/{command}"));
    }
    if !command.contains('/') {
        paths.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(|dir| format!("{dir}/{command}")));
    }
    paths.into_iter().map(CString::new).collect()
}

/// Gives the program that will be executed the right to be, if it lies in the task's directory
/// and lacks it: what was fetched there often does. What cannot be mended is left for the start to
/// complain about.
///
/// Only a file that could not be somebody else's is touched: a plain one, of root or of the task's
/// own user, below the task's directory and on its file system.
///
/// In the root of an isolated task every path is one of the task's directory, unless a part of the host lies over it.
pub(super) fn allow(task_dir: BorrowedFd<'_>, candidates: &[CString], user: u32, in_root: bool) {
    let relative = candidates
        .iter()
        .filter(|path| in_root || path.to_bytes().first() != Some(&b'/'));
    for path in relative {
        match open(task_dir, path) {
            // The next one is tried at the start, too.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(_) => return,
            Ok(program) => return allow_one(&program, user),
        }
    }
}

fn open(task_dir: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    // As at the start: the task's directory is the root of all links.
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    openat2(task_dir, path, flags, Mode::empty(), resolve)
}

fn allow_one(program: &OwnedFd, user: u32) {
    let Ok(stat) = fstat(program) else { return };
    if !lacks(&stat) || !owned(&stat, user) {
        return;
    }
    // By the handle: it is the very file that was looked at, whatever its path leads to by now.
    let handle = format!("/proc/self/fd/{}", program.as_raw_fd());
    let mode = Mode::from_raw_mode(stat.st_mode & 0o777 | 0o111);
    if let Err(error) = chmod(handle, mode) {
        tracing::debug!(%error, "cannot make a task's program executable");
    }
}

fn lacks(stat: &Stat) -> bool {
    // A program that takes on its owner's identity is nothing to be made executable in passing.
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_mode & 0o111 != 0o111
        && stat.st_mode & 0o6000 == 0
}

/// Root's file may be one from elsewhere if it has another name.
fn owned(stat: &Stat, user: u32) -> bool {
    stat.st_uid == user || (stat.st_uid == 0 && stat.st_nlink == 1)
}
