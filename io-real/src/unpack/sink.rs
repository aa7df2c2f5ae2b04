//! Where what is unpacked goes: below one directory, step by step through handles, and never
//! through a link. Everything is counted.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, chownat, fchmod, fchown,
    futimens, mkdirat, openat2, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::links::stays_inside;
use super::trouble::Trouble;
use crate::dirs::enter;

/// The longest name of an entry, in bytes.
const MAX_NAME: usize = 4_096;

/// How deep an entry may be.
const MAX_DEPTH: usize = 128;

/// A bound, and what is said of what goes beyond it.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// The most there may be.
    pub(crate) most: u64,
    /// Why there is no more.
    pub(crate) why: String,
}

/// How much there may be.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// Of all files together.
    pub(crate) bytes: Bound,
    /// Files, directories and links.
    pub(crate) entries: Bound,
}

/// What is kept of what is said of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Whether it can be executed.
    Little,
    /// Its permissions, its owner (only root can give things away), when it was last changed.
    All,
}

/// What is said of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    /// Its permissions.
    pub(crate) mode: u32,
    /// Its owner.
    pub(crate) user: u32,
    /// Its group.
    pub(crate) group: u32,
    /// When it was last changed, in seconds since 1970.
    pub(crate) modified: u64,
}

impl Attributes {
    /// Of somebody's file with these permissions.
    pub(crate) fn mode(mode: u32) -> Attributes {
        Attributes {
            mode,
            ..Attributes::default()
        }
    }
}

/// A directory that is filled.
pub(crate) struct Sink {
    top: OwnedFd,
    bounds: Bounds,
    keep: Keep,
    bytes: u64,
    entries: u64,
    buffer: Vec<u8>,
}

impl Sink {
    /// Fills this directory.
    pub(crate) fn new(top: OwnedFd, bounds: Bounds, keep: Keep) -> Sink {
        Sink {
            top,
            bounds,
            keep,
            bytes: 0,
            entries: 0,
            buffer: vec![0; 256 << 10],
        }
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes a directory; one that is there is found.
    ///
    /// # Errors
    /// Its name leads elsewhere, a link or a file is in its way, or a limit is reached.
    pub(crate) fn dir(&mut self, name: &[u8], attributes: &Attributes) -> Result<(), Trouble> {
        self.count()?;
        let steps = steps(name)?;
        let dir = self.open(&steps, name)?;
        if self.keep == Keep::All && !steps.is_empty() {
            // Whoever unpacks has to come back to it.
            let mode = Mode::from_raw_mode(attributes.mode & 0o1777 | 0o700);
            own(&dir, attributes).map_err(|error| failed(name, error))?;
            fchmod(&dir, mode).map_err(|error| failed(name, error))?;
        }
        Ok(())
    }

    /// Makes a file. A file or link that is there is replaced, never followed.
    ///
    /// # Errors
    /// As for directories; it is special, or it cannot be read.
    pub(crate) fn file(
        &mut self,
        name: &[u8],
        attributes: &Attributes,
        from: &mut dyn Read,
    ) -> Result<(), Trouble> {
        self.count()?;
        if attributes.mode & 0o6000 != 0 {
            return Err(refused(
                name,
                "is a file that changes its user (setuid or setgid)",
            ));
        }
        let (dir, last) = self.place(name)?;
        remove(&dir, last, name)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let private = Mode::RUSR | Mode::WUSR;
        let file = openat2(&dir, last, flags | OFlags::CLOEXEC, private, resolve);
        let mut file = File::from(file.map_err(|error| failed(name, error))?);
        self.fill(&mut file, name, from)?;
        self.become_it(&file, attributes)
            .map_err(|error| failed(name, error))
    }

    /// Gives a file its owner, its permissions and its time, whatever the process takes away from
    /// new files' permissions.
    fn become_it(&self, file: &File, attributes: &Attributes) -> Result<(), Errno> {
        let mode = match self.keep {
            Keep::Little if attributes.mode & 0o111 == 0 => 0o644,
            Keep::Little => 0o755,
            Keep::All => attributes.mode & 0o777,
        };
        if self.keep == Keep::All {
            own(file, attributes)?;
        }
        fchmod(file, Mode::from_raw_mode(mode))?;
        if self.keep == Keep::All {
            let time = Timespec {
                tv_sec: i64::try_from(attributes.modified).unwrap_or(i64::MAX),
                tv_nsec: 0,
            };
            let times = Timestamps {
                last_access: time,
                last_modification: time,
            };
            futimens(file, &times)?;
        }
        Ok(())
    }

    /// Makes a link that stays inside.
    ///
    /// # Errors
    /// It leads out, or as for directories.
    pub(crate) fn link(
        &mut self,
        name: &[u8],
        target: &[u8],
        attributes: &Attributes,
    ) -> Result<(), Trouble> {
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
        symlinkat(target, &dir, last).map_err(|error| failed(name, error))?;
        if self.keep == Keep::All && rustix::process::geteuid().is_root() {
            let user = Some(Uid::from_raw(attributes.user));
            let group = Some(Gid::from_raw(attributes.group));
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            chownat(&dir, last, user, group, flags).map_err(|error| failed(name, error))?;
        }
        Ok(())
    }

    /// Makes a copy of a file that is there, which is what a hard link stands for.
    ///
    /// # Errors
    /// There is no such file inside, or as for files.
    pub(crate) fn copy(&mut self, name: &[u8], of: &[u8]) -> Result<(), Trouble> {
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
        let attributes = Attributes {
            mode: stat.st_mode & 0o777,
            user: stat.st_uid,
            group: stat.st_gid,
            modified: u64::try_from(stat.st_mtime).unwrap_or(0),
        };
        self.file(name, &attributes, &mut File::from(file))
    }

    fn count(&mut self) -> Result<(), Trouble> {
        self.entries += 1;
        self.bounds.entries.allows(self.entries)
    }

    fn fill(&mut self, file: &mut File, name: &[u8], from: &mut dyn Read) -> Result<(), Trouble> {
        loop {
            let read = match from.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                    return Err(Trouble::passing(error.to_string()));
                }
                Err(error) => return Err(refused(name, &format!("cannot be unpacked: {error}"))),
            };
            self.bytes = self
                .bytes
                .saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            self.bounds.bytes.allows(self.bytes)?;
            let bytes = self.buffer.get(..read).unwrap_or_default();
            file.write_all(bytes).map_err(Trouble::disk)?;
        }
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
            at = match enter(at.as_fd(), *step) {
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

impl Bound {
    fn allows(&self, many: u64) -> Result<(), Trouble> {
        if many > self.most {
            return Err(Trouble::lasting(self.why.clone()));
        }
        Ok(())
    }
}

/// Gives it away, if that is ours to do.
fn own(file: impl AsFd, attributes: &Attributes) -> Result<(), Errno> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (
        Uid::from_raw(attributes.user),
        Gid::from_raw(attributes.group),
    );
    fchown(file, Some(user), Some(group))
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
    if steps.len() > MAX_DEPTH {
        return Err(refused(name, "is too deep"));
    }
    Ok(steps)
}

/// An entry that is not unpacked, and why.
pub(crate) fn refused(name: &[u8], why: &str) -> Trouble {
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
