//! Log files: `<base>.0`, `<base>.1`, ... in the current directory.
//!
//! The directory is shared with the task, which may be hostile: it can plant links, pipes and files
//! under any name. So a file is created anew, or it is one that no task can have made: a plain file
//! of our own user with one name. Only such files count when we look for the newest or delete the
//! oldest. A shim holds a lock on the file that it writes, so that no two write the same.

use crate::record::LogFile;
use crate::text::{self, Text};
use core::ffi::CStr;
use core::mem::MaybeUninit;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RawDir, Stat, flock, fstat, openat,
    statat, unlinkat,
};
use rustix::io::{Errno, Result};
use rustix::process::geteuid;

/// How many names in a row may be taken before an attempt is given up.
const TRIES: u64 = 4096;

/// What the directory holds of one stream.
#[derive(Clone, Copy, Default)]
pub struct Census {
    /// How many there are.
    pub count: u32,
    oldest: u64,
    /// The first index that is higher than all of ours.
    pub next: u64,
}

fn name(base: &CStr, index: u64) -> Text {
    Text::new().push(base.to_bytes()).push(b".").number(index)
}

/// The index in a file name that is exactly `<base>.<number>`.
fn index(base: &CStr, name: &CStr) -> Option<u64> {
    let digits = name
        .to_bytes()
        .strip_prefix(base.to_bytes())?
        .strip_prefix(b".")?;
    if digits.len() > 1 && digits.first() == Some(&b'0') {
        return None;
    }
    text::number(digits)
}

fn ours(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_uid == geteuid().as_raw()
}

fn identity(stat: &Stat, index: u64) -> LogFile {
    LogFile {
        dev: stat.st_dev,
        ino: stat.st_ino,
        index,
    }
}

/// Counts our files of a stream.
pub fn census(base: &CStr) -> Result<Census> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat(CWD, c".", flags, Mode::empty())?;
    let mut space = [MaybeUninit::uninit(); 1024];
    let mut entries = RawDir::new(&dir, &mut space);
    let mut census = Census {
        count: 0,
        oldest: u64::MAX,
        next: 0,
    };
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let Some(index) = index(base, entry.file_name()) else {
            continue;
        };
        let stat = statat(&dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
        if stat.is_ok_and(|stat| ours(&stat)) {
            census.count += 1;
            census.oldest = census.oldest.min(index);
            census.next = census.next.max(index + 1);
        }
    }
    Ok(census)
}

/// Creates the first file at or after `from` whose name is free.
pub fn create(base: &CStr, from: u64) -> Result<(OwnedFd, LogFile)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    for index in from..from.saturating_add(TRIES) {
        match openat(CWD, name(base, index).as_c_str(), flags, mode) {
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
            Ok(file) => {
                let stat = fstat(&file)?;
                lock(&file);
                return Ok((file, identity(&stat, index)));
            }
        }
    }
    Err(Errno::EXIST)
}

/// Opens the file that a dead shim was writing, if it is that very file still. Also tells its size.
pub fn reopen(base: &CStr, log: LogFile) -> Option<(OwnedFd, u64)> {
    let (file, stat) = open_trusted(base, log.index)?;
    lock(&file);
    (identity(&stat, log.index) == log).then_some((file, stat.st_size as u64))
}

/// Opens the newest file, to go on in it, if it is to be trusted, has room left, and nobody else
/// writes it.
pub fn newest(base: &CStr, census: &Census, max_size: u64) -> Option<(OwnedFd, LogFile, u64)> {
    let index = census.next.checked_sub(1)?;
    let (file, stat) = open_trusted(base, index)?;
    let size = stat.st_size as u64;
    (size < max_size && lock(&file)).then_some((file, identity(&stat, index), size))
}

/// Opens a file for writing, if no task can have made it, and no other name leads to it. What is
/// looked at is what was opened.
fn open_trusted(base: &CStr, index: u64) -> Option<(OwnedFd, Stat)> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(CWD, name(base, index).as_c_str(), flags, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    // No log was ever a program: who made this one meant something else.
    let plain = stat.st_mode & 0o7111 == 0;
    (ours(&stat) && stat.st_nlink == 1 && plain).then_some((file, stat))
}

/// Marks a file as being written; false if somebody else has marked it.
fn lock(file: &OwnedFd) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Deletes our oldest files until no more than `keep` are left.
pub fn prune(base: &CStr, keep: u32) -> Result<()> {
    let mut census = census(base)?;
    while census.count > keep.max(1) {
        unlinkat(CWD, name(base, census.oldest).as_c_str(), AtFlags::empty())?;
        if census.count - 1 > keep {
            census = self::census(base)?;
        } else {
            break;
        }
    }
    Ok(())
}
