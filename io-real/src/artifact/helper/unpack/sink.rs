//! Where what is unpacked goes: below one directory, step by step through handles, and never
//! through a link. Everything is counted.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, fchmod, mkdirat, openat2, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::super::trouble::Trouble;
use crate::artifact::links::stays_inside;
use crate::artifact::settings::Limits;
use crate::artifact::wire::TREE;

/// What an archive may become without anybody asking how much smaller it was.
const FREE: u64 = 64 << 20;

/// The longest name of an entry, in bytes.
const MAX_NAME: usize = 4_096;

/// A directory that is filled.
pub(in crate::artifact) struct Sink {
    top: OwnedFd,
    limits: Limits,
    most: u64,
    bytes: u64,
    entries: u64,
}

impl Sink {
    /// Fills the tree in the working directory with what comes out of so many `packed` bytes.
    ///
    /// # Errors
    /// There is no such directory.
    pub(in crate::artifact) fn new(limits: &Limits, packed: u64) -> Result<Sink, Trouble> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let top = rustix::fs::openat(CWD, TREE, flags, Mode::empty()).map_err(Trouble::disk)?;
        Ok(Sink::into_dir(top, limits, packed))
    }

    /// Fills this directory.
    pub(in crate::artifact) fn into_dir(top: OwnedFd, limits: &Limits, packed: u64) -> Sink {
        let by_ratio = match limits.unpacked_ratio {
            0 => u64::MAX,
            ratio => packed.saturating_mul(ratio).max(FREE),
        };
        let by_size = match limits.unpacked_bytes {
            0 => u64::MAX,
            size => size,
        };
        Sink {
            top,
            limits: *limits,
            most: by_ratio.min(by_size),
            bytes: 0,
            entries: 0,
        }
    }

    /// How many bytes there are.
    pub(in crate::artifact) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes a directory; one that is there is found.
    ///
    /// # Errors
    /// Its name leads elsewhere, a link or a file is in its way, or a limit is reached.
    pub(in crate::artifact) fn dir(&mut self, name: &[u8]) -> Result<(), Trouble> {
        self.count()?;
        let steps = steps(name)?;
        self.open(&steps, name).map(drop)
    }

    /// Makes a file. A file or link that is there is replaced, never followed.
    ///
    /// # Errors
    /// As for directories; it is special, or it cannot be read.
    pub(in crate::artifact) fn file(
        &mut self,
        name: &[u8],
        mode: u32,
        from: &mut dyn Read,
    ) -> Result<(), Trouble> {
        self.count()?;
        if mode & 0o6000 != 0 {
            return Err(refused(
                name,
                "is a file that changes its user (setuid or setgid)",
            ));
        }
        let (dir, last) = self.place(name)?;
        remove(&dir, last, name)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
        let mode = Mode::from_raw_mode(mode);
        let file = openat2(&dir, last, flags | OFlags::CLOEXEC, mode, resolve);
        let file = file.map_err(|error| failed(name, error))?;
        // Whatever the process takes away from new files' modes.
        fchmod(&file, mode).map_err(|error| failed(name, error))?;
        self.fill(&mut File::from(file), name, from)
    }

    /// Makes a link that stays inside.
    ///
    /// # Errors
    /// It leads out, or as for directories.
    pub(in crate::artifact) fn link(&mut self, name: &[u8], target: &[u8]) -> Result<(), Trouble> {
        self.count()?;
        let depth = steps(name)?.len().saturating_sub(1);
        if !stays_inside(depth, target) {
            let target = String::from_utf8_lossy(target);
            return Err(refused(
                name,
                &format!("is a link that leads out, to {target}"),
            ));
        }
        let (dir, last) = self.place(name)?;
        remove(&dir, last, name)?;
        symlinkat(target, &dir, last).map_err(|error| failed(name, error))
    }

    /// Makes a copy of a file that is there, which is what a hard link stands for.
    ///
    /// # Errors
    /// There is no such file inside, or as for files.
    pub(in crate::artifact) fn copy(&mut self, name: &[u8], of: &[u8]) -> Result<(), Trouble> {
        let no_file = || refused(name, "is a hard link to what is no file of the archive");
        let (dir, last) = self.place(of).map_err(|_| no_file())?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let file = openat2(&dir, last, flags, Mode::empty(), resolve).map_err(|_| no_file())?;
        let stat = rustix::fs::fstat(&file).map_err(|_| no_file())?;
        if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(no_file());
        }
        if steps(name)? == steps(of)? {
            return Ok(());
        }
        self.file(name, stat.st_mode & 0o777, &mut File::from(file))
    }

    fn count(&mut self) -> Result<(), Trouble> {
        self.entries += 1;
        let limit = self.limits.unpacked_files;
        if limit > 0 && self.entries > limit {
            return Err(Trouble::lasting(format!(
                "it has more than {limit} entries, which is decompression_file_count_limit"
            )));
        }
        Ok(())
    }

    fn fill(&mut self, file: &mut File, name: &[u8], from: &mut dyn Read) -> Result<(), Trouble> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(refused(name, &format!("cannot be unpacked: {error}"))),
            };
            self.bytes = self
                .bytes
                .saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            if self.bytes > self.most {
                return Err(self.too_much());
            }
            let bytes = buffer.get(..read).unwrap_or_default();
            file.write_all(bytes).map_err(Trouble::disk)?;
        }
    }

    fn too_much(&self) -> Trouble {
        let (limit, limits) = (self.most, &self.limits);
        Trouble::lasting(match limits.unpacked_bytes == limit {
            true => {
                format!("it unpacks to more than {limit} bytes, which is decompression_size_limit")
            }
            false => format!(
                "it unpacks to more than {} times its size, which is decompression_ratio_limit",
                limits.unpacked_ratio
            ),
        })
    }

    /// The directory that an entry is in, and the entry's own name.
    fn place<'a>(&self, name: &'a [u8]) -> Result<(OwnedFd, &'a [u8]), Trouble> {
        let steps = steps(name)?;
        match steps.split_last() {
            Some((last, above)) => Ok((self.open(above, name)?, last)),
            None => Err(refused(name, "has no name")),
        }
    }

    /// Opens a directory, making what is missing of it.
    fn open(&self, steps: &[&[u8]], name: &[u8]) -> Result<OwnedFd, Trouble> {
        let mut at = self.top.try_clone().map_err(Trouble::disk)?;
        for step in steps {
            match mkdirat(at.as_fd(), *step, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(name, error)),
            }
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            at = match openat2(at.as_fd(), *step, flags, Mode::empty(), resolve) {
                Ok(dir) => dir,
                Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => {
                    return Err(refused(name, "goes through a link or a file"));
                }
                Err(error) => return Err(failed(name, error)),
            };
        }
        Ok(at)
    }
}

/// Removes what an entry replaces.
fn remove(dir: &OwnedFd, last: &[u8], name: &[u8]) -> Result<(), Trouble> {
    match unlinkat(dir, last, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => Err(refused(name, "stands where a directory is")),
        Err(error) => Err(failed(name, error)),
    }
}

/// The steps of an entry's name.
fn steps(name: &[u8]) -> Result<Vec<&[u8]>, Trouble> {
    if name.len() > MAX_NAME {
        return Err(refused(name, "has a name that is too long"));
    }
    if name.starts_with(b"/") {
        return Err(refused(name, "has an absolute name"));
    }
    if name.contains(&0) {
        return Err(refused(name, "has a name with NUL in it"));
    }
    let mut steps = Vec::new();
    for step in name.split(|byte| *byte == b'/') {
        match step {
            b"" | b"." => {}
            b".." => return Err(refused(name, "has a name that leads out (..)")),
            step => steps.push(step),
        }
    }
    Ok(steps)
}

/// An entry that is not unpacked, and why.
pub(super) fn refused(name: &[u8], why: &str) -> Trouble {
    let name: String = String::from_utf8_lossy(name).chars().take(100).collect();
    Trouble::lasting(format!("entry {name:?} {why}"))
}

fn failed(name: &[u8], error: Errno) -> Trouble {
    let why = format!("cannot be written: {}", io::Error::from(error));
    Trouble {
        again: true,
        ..refused(name, &why)
    }
}
