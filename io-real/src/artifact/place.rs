//! From the directory of the process that fetched to the task's directory: everything is checked
//! first, made harmless, and moved through handles. Nothing that was fetched is followed.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use drover_core::text::quote;
use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Uid, chownat, fchmod,
    fchown, fstat, mkdirat, openat2, readlinkat, renameat, renameat_with, statat, symlinkat,
};
use rustix::io::Errno;

use crate::dirs::{enter, retried};
use crate::unpack::stays_inside;

/// How deep a tree may be.
const MAX_DEPTH: usize = 128;
/// How many entries a tree may have, whatever else is allowed: a repository has many.
const MAX_ENTRIES: u64 = 4 << 20;

/// Whose things become; the agent's own if none.
pub(super) type Owner = Option<(u32, u32)>;

/// Looks at a tree: only directories, plain files with one name, and links that stay inside. Each
/// loses unusual rights and becomes `owner`'s.
///
/// # Errors
/// What is there that must not be, or the disk says no.
pub(super) fn check(top: &OwnedFd, owner: Owner) -> io::Result<()> {
    Check { owner, seen: 0 }.dir(top.as_fd(), 0)
}

/// Looks at one file in the same way.
///
/// # Errors
/// As [`check`].
pub(super) fn check_file(dir: &OwnedFd, name: &CStr, owner: Owner) -> io::Result<()> {
    Check { owner, seen: 0 }.file(dir.as_fd(), name)
}

struct Check {
    owner: Owner,
    seen: u64,
}

impl Check {
    fn dir(&mut self, dir: BorrowedFd<'_>, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(io::Error::other("it has directories that are too deep"));
        }
        // From now on nobody else can change what is in it.
        self.own(dir)?;
        fchmod(dir, Mode::from_raw_mode(0o755))?;
        for entry in Dir::read_from(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if is_dots(name) {
                continue;
            }
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                return Err(io::Error::other(format!(
                    "it has more than {MAX_ENTRIES} entries"
                )));
            }
            self.entry(dir, name, depth)
                .map_err(|error| named(name, &error))?;
        }
        Ok(())
    }

    fn entry(&mut self, dir: BorrowedFd<'_>, name: &CStr, depth: usize) -> io::Result<()> {
        let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.dir(enter(dir, name)?.as_fd(), depth + 1),
            FileType::RegularFile => self.file(dir, name),
            FileType::Symlink => {
                let target = readlinkat(dir, name, Vec::new())?;
                if !stays_inside(depth, target.to_bytes()) {
                    return Err(io::Error::other("is a link that leads out"));
                }
                if let Some((user, group)) = self.becomes() {
                    chownat(
                        dir,
                        name,
                        Some(user),
                        Some(group),
                        AtFlags::SYMLINK_NOFOLLOW,
                    )?;
                }
                Ok(())
            }
            _ => Err(io::Error::other(
                "is neither a file, a directory nor a link",
            )),
        }
    }

    fn file(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = retried(|| openat2(dir, name, flags, Mode::empty(), inside()))?;
        let stat = fstat(&file)?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(io::Error::other("is no plain file"));
        }
        if stat.st_nlink != 1 {
            return Err(io::Error::other("is a file with several names"));
        }
        self.own(file.as_fd())?;
        let mode = if stat.st_mode & 0o111 == 0 {
            0o644
        } else {
            0o755
        };
        Ok(fchmod(&file, Mode::from_raw_mode(mode))?)
    }

    fn own(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        match self.becomes() {
            Some((user, group)) => Ok(fchown(file, Some(user), Some(group))?),
            None => Ok(()),
        }
    }

    /// Whose it becomes; only root can give things away.
    fn becomes(&self) -> Option<(Uid, Gid)> {
        let me = rustix::process::geteuid();
        let mine = (me.as_raw(), rustix::process::getegid().as_raw());
        let (user, group) = self.owner.unwrap_or(mine);
        me.is_root()
            .then(|| (Uid::from_raw(user), Gid::from_raw(group)))
    }
}

/// Opens the directory `path` below `top`, making what is missing of it `owner`'s.
///
/// # Errors
/// A link or a file is in the way, or the disk says no.
pub(super) fn make_dirs(top: &OwnedFd, path: &str, owner: Owner) -> io::Result<OwnedFd> {
    let mut at = top.try_clone()?;
    for step in path.split('/').filter(|step| !step.is_empty()) {
        let made = match mkdirat(&at, step, Mode::from_raw_mode(0o755)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(in_the_way(step, error)),
        };
        let name = CString::new(step)?;
        at = enter(at.as_fd(), &name).map_err(|error| in_the_way(step, error))?;
        if made {
            Check { owner, seen: 0 }.own(at.as_fd())?;
            fchmod(&at, Mode::from_raw_mode(0o755))?;
        }
    }
    Ok(at)
}

/// Moves everything in `from`, which was looked at, into `into`. Directories that are there are
/// filled, files and links replaced.
///
/// # Errors
/// A directory stands where a file comes, or the other way round; the disk says no.
pub(super) fn merge(from: &OwnedFd, into: &OwnedFd) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in Dir::read_from(from)? {
        let entry = entry?;
        if !is_dots(entry.file_name()) {
            names.push((entry.file_name().to_owned(), entry.file_type()));
        }
    }
    for (name, kind) in names {
        let moved = match kind {
            FileType::Directory => merge_dir(from, &name, into),
            _ => move_file(from, &name, into, &name),
        };
        moved.map_err(|error| named(&name, &error))?;
    }
    Ok(())
}

fn merge_dir(from: &OwnedFd, name: &CStr, into: &OwnedFd) -> io::Result<()> {
    match renameat_with(from, name, into, name, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(()),
        Err(Errno::EXIST) => {}
        Err(Errno::XDEV) => match mkdirat(into, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        },
        Err(error) => return Err(error.into()),
    }
    let there = enter(into.as_fd(), name).map_err(|error| in_the_way("it", error))?;
    merge(&enter(from.as_fd(), name)?, &there)
}

/// Moves one file or link, which was looked at, to `to` in `into`.
///
/// # Errors
/// A directory stands there, or the disk says no.
pub(super) fn move_file(from: &OwnedFd, name: &CStr, into: &OwnedFd, to: &CStr) -> io::Result<()> {
    match renameat(from, name, into, to) {
        Ok(()) => Ok(()),
        Err(Errno::ISDIR) => Err(io::Error::other("its destination is a directory")),
        Err(Errno::XDEV) => copy_file(from, name, into, to),
        Err(error) => Err(error.into()),
    }
}

/// To another file system, such as one in memory.
fn copy_file(from: &OwnedFd, name: &CStr, into: &OwnedFd, to: &CStr) -> io::Result<()> {
    const NEW: &CStr = c".artifact-that-is-copied";
    match rustix::fs::unlinkat(into, NEW, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode).is_symlink() {
        symlinkat(readlinkat(from, name, Vec::new())?, into, NEW)?;
    } else {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let old = retried(|| openat2(from, name, flags, Mode::empty(), inside()))?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
        let new = openat2(into, NEW, flags | OFlags::CLOEXEC, mode, inside())?;
        fchmod(&new, mode)?;
        if rustix::process::geteuid().is_root() {
            let (user, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
            fchown(&new, Some(user), Some(group))?;
        }
        io::copy(&mut File::from(old), &mut File::from(new))?;
    }
    match renameat(into, NEW, into, to) {
        Ok(()) => Ok(()),
        Err(Errno::ISDIR) => Err(io::Error::other("its destination is a directory")),
        Err(error) => Err(error.into()),
    }
}

fn inside() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

fn in_the_way(step: &str, error: Errno) -> io::Error {
    let step = quote(step);
    io::Error::other(match error {
        Errno::LOOP | Errno::NOTDIR => format!("{step} is a link or a file, and no directory"),
        error => format!("directory {step}: {}", io::Error::from(error)),
    })
}

fn named(name: &CStr, error: &io::Error) -> io::Error {
    let name: String = name.to_string_lossy().chars().take(100).collect();
    io::Error::new(error.kind(), format!("{}: {error}", quote(&name)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
#[path = "place_tests.rs"]
mod tests;
