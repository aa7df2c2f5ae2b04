//! Taking over the disks of allocations before: by renaming, never by copying.
//!
//! What is taken over was written by tasks, which may have put anything where a directory was. Only
//! directories are moved, each from a handle of the directory around it to another, and what turns
//! out to be something else after all stays where nobody looks for it. A renaming is done or is
//! not, so that whoever is killed in the middle can be run again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use drover_core::ids::{AllocId, TaskName};
use rustix::fs::{Dir, Mode, RenameFlags, fstat, mkdirat, renameat, renameat_with};
use rustix::io::Errno;

use super::{AllocDirs, open_dir, remove_tree};

impl AllocDirs {
    /// Moves the shared data of the first of `from` that has any into this allocation, and so for
    /// each task what it kept in `local`. What this allocation has already stays.
    ///
    /// # Errors
    /// The directory of this allocation is not there, or the disk says no. What was moved by then
    /// stays moved, and this can be asked again.
    pub fn inherit(&self, alloc: AllocId, from: &[AllocId], tasks: &[TaskName]) -> io::Result<()> {
        // Two at once could look for the same data where the other has just taken it from.
        let _one_at_a_time = self
            .inheriting
            .lock()
            .unwrap_or_else(|lock| lock.into_inner());
        self.take_all(alloc, &self.open_all(from)?, tasks)
    }

    /// Opens those directories of these allocations that are there.
    pub(crate) fn open_all(&self, allocs: &[AllocId]) -> io::Result<Vec<OwnedFd>> {
        let mut dirs = Vec::new();
        for alloc in allocs {
            match self.open(*alloc, "") {
                Ok(dir) => dirs.push(dir),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(dirs)
    }

    fn take_all(&self, alloc: AllocId, sources: &[OwnedFd], tasks: &[TaskName]) -> io::Result<()> {
        let own = self.open(alloc, "")?;
        take(&own, sources, "alloc", "data")?;
        for task in tasks {
            match mkdirat(&own, task.as_str(), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            take(&own, sources, task.as_str(), "local")?;
        }
        Ok(())
    }

    /// Makes a directory for what another node left, where no task ever looks.
    ///
    /// # Errors
    /// There is one already, or the disk says no.
    pub(crate) fn arrival(&self, alloc: AllocId) -> io::Result<OwnedFd> {
        let name = arrival_of(alloc);
        mkdirat(&self.root, &name, Mode::RWXU)?;
        Ok(open_dir(self.root.as_fd(), &name)?)
    }

    /// Takes over what arrived, as [`AllocDirs::inherit`] does it.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn take_arrival(
        &self,
        alloc: AllocId,
        arrival: &OwnedFd,
        tasks: &[TaskName],
    ) -> io::Result<()> {
        self.take_all(alloc, std::slice::from_ref(arrival), tasks)
    }

    /// Removes what arrived, or began to.
    ///
    /// # Errors
    /// As [`AllocDirs::remove`].
    pub(crate) fn leave_arrival(&self, alloc: AllocId) -> io::Result<()> {
        remove_tree(self.root.as_fd(), &arrival_of(alloc))
    }
}

/// What the directory of what arrives for an allocation is called, after the allocation.
pub(crate) const ARRIVING: &str = ".arriving";

/// The directory of what arrives for an allocation. No task can have it as its own.
fn arrival_of(alloc: AllocId) -> String {
    format!("{alloc}{ARRIVING}")
}

/// Moves `dir/name` of the first source where anything is in it.
fn take(own: &OwnedFd, sources: &[OwnedFd], dir: &str, name: &str) -> io::Result<()> {
    let into = open_dir(own.as_fd(), dir)?;
    if has_something(into.as_fd(), name)? {
        return Ok(());
    }
    for source in sources {
        let Some(holder) = find(source.as_fd(), dir)? else {
            continue;
        };
        if has_something(holder.as_fd(), name)? {
            return put(holder.as_fd(), into.as_fd(), name)
                .map_err(|error| io::Error::new(error.kind(), format!("{dir}/{name}: {error}")));
        }
    }
    Ok(())
}

/// Moves the directory `name`, and makes sure that it is the one that was looked at.
fn put(from: BorrowedFd<'_>, into: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let Some(meant) = find(from, name)? else {
        return Ok(());
    };
    // An empty directory in its place is replaced in the same step.
    renameat(from, name, into, name)?;
    match find(into, name) {
        Ok(Some(moved)) if same(&meant, &moved)? => Ok(()),
        Ok(_) | Err(_) => {
            // Somebody put something else there at the last moment: it goes back.
            renameat_with(into, name, from, name, RenameFlags::NOREPLACE)?;
            Err(io::Error::other("it was exchanged while it was moved"))
        }
    }
}

fn same(one: &OwnedFd, other: &OwnedFd) -> io::Result<bool> {
    let (one, other) = (fstat(one)?, fstat(other)?);
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}

/// Opens the directory `name`; none if there is nothing, or something that is no directory.
pub(crate) fn find(at: BorrowedFd<'_>, name: &str) -> io::Result<Option<OwnedFd>> {
    match open_dir(at, name) {
        Ok(dir) => Ok(Some(dir)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn has_something(at: BorrowedFd<'_>, name: &str) -> io::Result<bool> {
    match find(at, name)? {
        Some(dir) => is_filled(&dir),
        None => Ok(false),
    }
}

/// Whether there is anything in a directory.
pub(crate) fn is_filled(dir: &OwnedFd) -> io::Result<bool> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(true);
        }
    }
    Ok(false)
}
