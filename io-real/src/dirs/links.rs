//! Links in the directory of a task that lead out of it: to volumes of the host.
//!
//! They are made for the task, and nobody else follows them: whoever reads, writes or removes in these
//! directories follows no link that leads out. The task may exchange anything on the way at any moment, so
//! each step is made through the handle of the step before it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use drover_core::ids::AllocId;
use rustix::fs::{AtFlags, FileType, Mode, mkdirat, renameat, statat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::files::{beside, split};
use super::{AllocDirs, enter};

impl AllocDirs {
    /// Makes a link to `target` in the directory of a task, at `path`, with the directories on the way. Another
    /// link in its place is replaced.
    ///
    /// # Errors
    /// A link or something that is no directory is on the way, something else than a link stands in its
    /// place, or the disk says no.
    pub fn link(&self, alloc: AllocId, task: &str, path: &str, target: &str) -> io::Result<()> {
        let (parents, name) = split(path);
        let mut dir = self.open(alloc, task)?;
        for parent in parents {
            match mkdirat(&dir, parent, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            dir = enter(dir.as_fd(), parent)?;
        }
        match symlinkat(target, &dir, name) {
            Err(Errno::EXIST) => replace(dir.as_fd(), name, target),
            made => Ok(made?),
        }
    }
}

/// Puts a link where another is: there is one at every moment.
fn replace(dir: BorrowedFd<'_>, name: &str, target: &str) -> io::Result<()> {
    let there = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(there.st_mode) != FileType::Symlink {
        let why = "something else is there already";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    let new = beside(name);
    match symlinkat(target, dir, &new) {
        // One that was killed left it, or a task put it there.
        Err(Errno::EXIST) => {
            unlinkat(dir, &new, AtFlags::empty())?;
            symlinkat(target, dir, &new)?;
        }
        made => made?,
    }
    let placed = renameat(dir, &new, dir, name);
    if placed.is_err() {
        let _ = unlinkat(dir, &new, AtFlags::empty());
    }
    Ok(placed?)
}
