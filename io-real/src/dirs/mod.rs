//! Allocation directories: made, used and removed through handles.
//!
//! Tasks write into these directories, and may put a link, a pipe, a device or a directory of any
//! depth there at any moment. So no path below an allocation's directory is ever given to the
//! kernel as a string from the root: each step is opened by `openat2` relative to the handle of the
//! step before it, and no link is followed. That also makes it safe to use one allocation's
//! directory from many threads at once. Removal follows no link, leaves no file system, and moves
//! deep trees up inside of what is removed. It unmounts secrets first, lazily, and removes nothing
//! through a mount.
//!
//! Layout, as in Nomad: `alloc/{data,logs,tmp}` is shared by the tasks of the allocation,
//! `<task>/{local,secrets,tmp}` belongs to one.
//!
//! Others who reach into these directories are careful in the same way: shims write only to log
//! files that no task can have made (`io-real/shim/src/logs.rs`), and the API reads through handles
//! (`agent/src/http/safe_open.rs`).

mod files;
mod inherit;
mod links;
mod quota;
mod remove;
mod secrets;
mod usage;

pub use files::{Access, FileStamp, Seen, TaskFiles};
pub(crate) use inherit::{ARRIVING, find, is_filled};
pub use quota::Quotas;
pub(crate) use remove::tree as remove_tree;
pub(crate) use secrets::users_of;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use drover_core::ids::AllocId;
use drover_core::input::DiskUsage;
use rustix::fs::{
    Gid, Mode, OFlags, ResolveFlags, Uid, fchmod, fchown, fstatvfs, mkdirat, openat2,
};
use rustix::io::Errno;
use rustix::path::Arg;

/// The directory of all allocations' directories.
#[derive(Clone, Debug)]
pub struct AllocDirs {
    root: Arc<OwnedFd>,
    inheriting: Arc<Mutex<()>>,
    mounting: Arc<Mutex<()>>,
    last_usage: usage::LastUsage,
}

/// As whom a directory is made: none is nobody in particular, or, for secrets, the agent's own user,
/// as whom a task without `user` runs.
pub type Owner = Option<(u32, u32)>;

/// The user and group of directories that belong to nobody in particular.
pub(crate) const NOBODY: (u32, u32) = (65534, 65534);

impl AllocDirs {
    /// Directories below `root`.
    pub fn new(root: Arc<OwnedFd>) -> AllocDirs {
        AllocDirs {
            root,
            inheriting: Arc::default(),
            mounting: Arc::default(),
            last_usage: usage::LastUsage::default(),
        }
    }

    /// Makes an allocation's directory. Making it again finds it.
    ///
    /// # Errors
    /// The disk says no, or something that is no directory stands in the way.
    pub fn build_alloc(&self, alloc: AllocId) -> io::Result<()> {
        let own = make(self.root.as_fd(), &alloc.to_string(), 0o755, None)?;
        let shared = make(own.as_fd(), "alloc", 0o777, Some(NOBODY))?;
        make(shared.as_fd(), "data", 0o777, Some(NOBODY))?;
        // Tasks may write here too, but not replace what is not theirs.
        make(shared.as_fd(), "logs", 0o1777, None)?;
        make(shared.as_fd(), "tmp", 0o1777, Some(NOBODY))?;
        Ok(())
    }

    /// Makes a task's directory. Making it again finds it.
    ///
    /// # Errors
    /// As [`AllocDirs::build_alloc`].
    pub fn build_task(&self, alloc: AllocId, task: &str, owner: Owner) -> io::Result<()> {
        let own = self.open(alloc, "")?;
        let secrets = secrets::owner(owner);
        let owner = owner.or(Some(NOBODY));
        let dir = make(own.as_fd(), task, 0o777, owner)?;
        make(dir.as_fd(), "local", 0o777, owner)?;
        // What is in memory already stays.
        if !matches!(open_dir(dir.as_fd(), secrets::NAME), Err(Errno::XDEV)) {
            make(dir.as_fd(), secrets::NAME, secrets::MODE, secrets)?;
        }
        make(dir.as_fd(), "tmp", 0o1777, owner)?;
        Ok(())
    }

    /// Whether a task has a directory.
    ///
    /// # Errors
    /// It cannot be said: something else stands in the way.
    pub fn has_task(&self, alloc: AllocId, task: &str) -> io::Result<bool> {
        match self.open(alloc, task) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Opens a directory of an allocation; `path` is relative, and nothing on it may be a link.
    ///
    /// # Errors
    /// It is not there, or a link is on the way.
    pub fn open(&self, alloc: AllocId, path: &str) -> io::Result<OwnedFd> {
        let own = open_dir(self.root.as_fd(), &alloc.to_string())?;
        if path.is_empty() {
            Ok(own)
        } else {
            Ok(open_dir(own.as_fd(), path)?)
        }
    }

    /// How full the disk is, as far as it is for those who are not root.
    ///
    /// # Errors
    /// The disk does not say.
    pub fn disk_usage(&self) -> io::Result<DiskUsage> {
        let disk = fstatvfs(&self.root)?;
        let used = disk.f_blocks.saturating_sub(disk.f_bfree);
        let inodes = disk.f_files.saturating_sub(disk.f_ffree);
        Ok(DiskUsage {
            disk_percent: percent(used, used.saturating_add(disk.f_bavail)),
            inode_percent: percent(inodes, disk.f_files),
        })
    }

    /// Removes an allocation's directory with all that is in it, its secrets first, without following a link or
    /// leaving its file system. What is not there is removed already.
    ///
    /// # Errors
    /// The first that went wrong; everything that could be removed is.
    pub fn remove(&self, alloc: AllocId) -> io::Result<()> {
        let arrival = self.leave_arrival(alloc);
        self.drop_secrets(alloc)?;
        let project = self.own_project(alloc);
        remove::tree(self.root.as_fd(), &alloc.to_string())?;
        if let Some(project) = project {
            self.drop_quota(project)?;
        }
        arrival
    }
}

/// A part of a whole, rounded up. Of nothing, nothing.
fn percent(part: u64, whole: u64) -> u8 {
    let percent = (u128::from(part) * 100).div_ceil(u128::from(whole.max(1)));
    u8::try_from(percent).unwrap_or(100).min(100)
}

/// Opens a directory relative to another; no link on the way, no other file system.
pub(crate) fn open_dir(at: BorrowedFd<'_>, path: impl Arg + Copy) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    open_as(at, path, resolve)
}

/// The same, also of another file system, such as secrets in memory.
pub(crate) fn enter(at: BorrowedFd<'_>, path: impl Arg + Copy) -> Result<OwnedFd, Errno> {
    open_as(at, path, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

fn open_as(
    at: BorrowedFd<'_>,
    path: impl Arg + Copy,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retried(|| openat2(at, path, flags, Mode::empty(), resolve))
}

/// Opens again what the kernel asks to look for again, because something was renamed meanwhile.
pub(crate) fn retried(open: impl Fn() -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    loop {
        match open() {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Makes a directory, or finds it, and gives it this mode and owner.
pub(crate) fn make(at: BorrowedFd<'_>, name: &str, mode: u32, owner: Owner) -> io::Result<OwnedFd> {
    match mkdirat(at, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(named(error, name)),
    }
    let dir = open_dir(at, name).map_err(|error| named(error, name))?;
    give(dir.as_fd(), mode, owner).map_err(|error| named(error, name))?;
    Ok(dir)
}

/// Gives a directory this mode and, as root, this owner.
fn give(dir: BorrowedFd<'_>, mode: u32, owner: Owner) -> Result<(), Errno> {
    if let Some((user, group)) = owner
        && rustix::process::geteuid().is_root()
    {
        fchown(dir, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
    }
    fchmod(dir, Mode::from_raw_mode(mode))
}

fn named(error: Errno, name: &str) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("directory {name:?}: {error}"))
}
