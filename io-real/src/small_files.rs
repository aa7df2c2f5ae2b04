//! Small files that are written whole or not at all, in a directory that belongs to the agent alone.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;

/// The directory. Names of files are plain, without slashes: who gives them sees to that.
#[derive(Debug)]
pub(crate) struct SmallFiles {
    dir: OwnedFd,
    /// More of a file is not read.
    max_size: u64,
}

impl SmallFiles {
    pub(crate) fn new(dir: OwnedFd, max_size: u64) -> SmallFiles {
        SmallFiles { dir, max_size }
    }

    /// Writes a file, so that it would survive a crash.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = format!("{name}.new");
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(openat(&self.dir, &new, flags | OFlags::CLOEXEC, mode)?);
        file.write_all(bytes)?;
        file.sync_all()?;
        renameat(&self.dir, &new, &self.dir, name)?;
        self.sync()
    }

    /// What was renamed or removed before would survive a crash.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(fsync(self.dir.as_fd())?)
    }

    /// What a file holds; `None` if there is none.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(&self.dir, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            file => File::from(file?),
        };
        let mut bytes = Vec::new();
        file.take(self.max_size).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// The names of all files, also of those that were being written.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !matches!(name.as_str(), "." | "..") {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Removes a file, and what is left of one that was being written.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        for name in [name, &format!("{name}.new")] {
            match unlinkat(&self.dir, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
