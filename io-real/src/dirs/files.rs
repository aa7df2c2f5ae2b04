//! Files of a task, by their places: read and written through handles.
//!
//! The task may exchange anything on the way at any moment. What is read is below the directory
//! that the place names, whatever links there are; what is written goes where no link is on the
//! way, beside the file first and then in its place, so that it is there whole or not at all. A file of
//! others that got another name here is not read ([`crate::hard_links`]).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use drover_core::ids::AllocId;
use drover_core::paths::task_path::{Base, TaskPath};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, fchmod, fchown, fstat, mkdirat,
    openat2, renameat, unlinkat,
};
use rustix::io::Errno;

use super::{AllocDirs, enter, retried, users_of};
use crate::hard_links::refuse_foreign;

/// The directories that files of one task may be in.
#[derive(Debug)]
pub struct TaskFiles {
    task: OwnedFd,
    shared: OwnedFd,
}

/// Who owns a file that is written, and what others may do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The permissions.
    pub mode: u32,
    /// The owner; the agent's own if none.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
}

/// A file that was read, and what to watch in order to hear of its changes.
#[derive(Debug, Default)]
pub struct Seen {
    /// What it holds; none if it is not there.
    pub bytes: Option<Vec<u8>>,
    /// The file, and the directories on the way to it as far as they are there.
    pub glimpses: Vec<FileStamp>,
}

/// Something that may change.
#[derive(Debug)]
pub struct FileStamp {
    /// A file or a directory.
    pub handle: OwnedFd,
    /// Of a directory, the name in it that matters.
    pub name: Option<String>,
}

impl AllocDirs {
    /// The files of a task.
    ///
    /// # Errors
    /// Its directories are not there.
    pub fn files(&self, alloc: AllocId, task: &str) -> io::Result<TaskFiles> {
        Ok(TaskFiles {
            task: self.open(alloc, task)?,
            shared: self.open(alloc, "alloc")?,
        })
    }
}

impl TaskFiles {
    fn base(&self, task_path: &TaskPath) -> BorrowedFd<'_> {
        match task_path.base {
            Base::Task => self.task.as_fd(),
            Base::Shared => self.shared.as_fd(),
        }
    }

    /// Reads a plain file of at most `limit` bytes.
    ///
    /// # Errors
    /// It is larger, is no plain file, or the way to it leads out.
    pub fn read(&self, task_path: &TaskPath, limit: u64) -> io::Result<Option<Vec<u8>>> {
        match open_below(self.base(task_path), &task_path.path)? {
            Some(file) => Ok(Some(self.bytes_of(&file, limit)?)),
            None => Ok(None),
        }
    }

    /// The same, and what to watch.
    ///
    /// # Errors
    /// As [`TaskFiles::read`].
    pub fn read_watched(&self, task_path: &TaskPath, limit: u64) -> io::Result<Seen> {
        let mut glimpses = self.way_to(task_path)?;
        let Some(file) = open_below(self.base(task_path), &task_path.path)? else {
            let bytes = None;
            return Ok(Seen { bytes, glimpses });
        };
        glimpses.push(FileStamp {
            handle: file.as_fd().try_clone_to_owned()?,
            name: None,
        });
        let bytes = Some(self.bytes_of(&file, limit)?);
        Ok(Seen { bytes, glimpses })
    }

    /// The directories on the way, as far as they are there and no links.
    fn way_to(&self, task_path: &TaskPath) -> io::Result<Vec<FileStamp>> {
        let mut handle = self.base(task_path).try_clone_to_owned()?;
        let mut glimpses = Vec::new();
        for name in task_path.path.split('/') {
            let next = enter(handle.as_fd(), name);
            let name = Some(name.to_owned());
            glimpses.push(FileStamp { handle, name });
            match next {
                Ok(dir) => handle = dir,
                Err(_) => break,
            }
        }
        Ok(glimpses)
    }

    /// A handle of a file or directory, to mount it elsewhere: nothing on the way may be a link. What is not there
    /// becomes a directory.
    ///
    /// # Errors
    /// A link is on the way, it is a file of others under another name, or the disk says no.
    pub(crate) fn handle(&self, task_path: &TaskPath) -> io::Result<OwnedFd> {
        let mut handle = self.base(task_path).try_clone_to_owned()?;
        for name in task_path.path.split('/') {
            // With `NOFOLLOW`, the link itself would be opened.
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let open = || retried(|| openat2(&handle, name, flags, Mode::empty(), resolve));
            handle = match open() {
                Err(Errno::NOENT) => {
                    mkdirat(&handle, name, Mode::from_raw_mode(0o755))?;
                    open()?
                }
                opened => opened?,
            };
        }
        refuse_foreign(&fstat(&handle)?, || users_of(&self.task))?;
        Ok(handle)
    }

    fn bytes_of(&self, file: &File, limit: u64) -> io::Result<Vec<u8>> {
        let stat = fstat(file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is no plain file"));
        }
        refuse_foreign(&stat, || users_of(&self.task))?;
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            let why = format!("it is larger than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(bytes)
    }

    /// A plain file to be read from its beginning; none if there is none.
    ///
    /// # Errors
    /// It is no plain file, or the way to it leads out.
    pub(crate) fn open_plain(&self, task_path: &TaskPath) -> io::Result<Option<File>> {
        let Some(file) = open_below(self.base(task_path), &task_path.path)? else {
            return Ok(None);
        };
        if !file.metadata()?.is_file() {
            let why = "it is no plain file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        refuse_foreign(&fstat(&file)?, || users_of(&self.task))?;
        Ok(Some(file))
    }

    /// Writes a file, with the directories on the way to it. Nothing is waited for: it is there
    /// for every task from now, and may be empty after the machine died.
    ///
    /// # Errors
    /// A link or something that is no directory is on the way, a directory stands in its place, or
    /// the disk says no.
    pub fn write(&self, task_path: &TaskPath, bytes: &[u8], access: Access) -> io::Result<()> {
        let (parents, name) = split(&task_path.path);
        let mut dir = self.base(task_path).try_clone_to_owned()?;
        for parent in parents {
            match mkdirat(&dir, parent, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            dir = enter(dir.as_fd(), parent)?;
        }
        let new = beside(name);
        let written = write_new(dir.as_fd(), &new, bytes, access);
        let placed = written.and_then(|()| Ok(renameat(&dir, &new, &dir, name)?));
        if placed.is_err() {
            let _ = unlinkat(&dir, &new, AtFlags::empty());
        }
        placed
    }
}

/// A name for the file until it is whole: shorter names stay readable, longer ones fit.
pub(super) fn beside(name: &str) -> String {
    let short: String = name.chars().take(40).collect();
    format!(".{short}.rendering")
}

fn write_new(dir: BorrowedFd<'_>, name: &str, bytes: &[u8], access: Access) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        retried(|| openat2(dir, name, flags, Mode::RUSR | Mode::WUSR, resolve))
    };
    let file = match open() {
        // One that was killed left it, or a task put it there.
        Err(Errno::EXIST) => {
            unlinkat(dir, name, AtFlags::empty())?;
            open()?
        }
        file => file?,
    };
    let mut file = File::from(file);
    if access.uid.is_some() || access.gid.is_some() {
        let (uid, gid) = (access.uid.map(Uid::from_raw), access.gid.map(Gid::from_raw));
        fchown(&file, uid, gid)?;
    }
    fchmod(&file, Mode::from_raw_mode(access.mode))?;
    file.write_all(bytes)
}

/// The names of the directories on the way, and the last name.
pub(super) fn split(path: &str) -> (impl Iterator<Item = &str>, &str) {
    let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
    (parents.split('/').filter(|name| !name.is_empty()), name)
}

/// Opens what `path` leads to without leaving `at`; none if there is nothing.
fn open_below(at: BorrowedFd<'_>, path: &str) -> io::Result<Option<File>> {
    // A pipe must not make anybody wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match retried(|| openat2(at, path, flags, Mode::empty(), resolve)) {
        Ok(file) => Ok(Some(file.into())),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(Errno::XDEV) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "a link leads out of the task's directory",
        )),
        Err(error) => Err(error.into()),
    }
}
