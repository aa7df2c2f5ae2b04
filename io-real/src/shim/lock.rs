//! Records as files: reading them, and holding their lock.

use super::record::{self, Id, Record, State};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

/// Checks that a launch id has the form of a UUID; anything else could name another file.
pub(super) fn parse_id(launch: &str) -> io::Result<Id> {
    let uuid = launch.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    launch
        .as_bytes()
        .try_into()
        .ok()
        .filter(|_| uuid)
        .ok_or_else(|| {
            let message = format!("launch id {launch:?}: must be a UUID of 36 characters");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })
}

/// This boot's id.
pub(super) fn boot_id() -> io::Result<Id> {
    let text = std::fs::read("/proc/sys/kernel/random/boot_id")?;
    text.get(..36)
        .and_then(|id| id.try_into().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "boot_id: shorter than a UUID"))
}

/// What a record file holds.
pub(super) enum Content {
    /// Nothing: the launch is undecided.
    Empty,
    /// A record.
    Valid(Box<Record>),
    /// Bytes that are no record of ours.
    Damaged,
}

/// Reads a record file.
pub(super) fn read(file: &File) -> io::Result<Content> {
    let mut bytes = [0; record::FILE];
    let mut len = 0;
    loop {
        match file.read_at(&mut bytes[len..], len as u64)? {
            0 => break,
            more => len += more,
        }
    }
    Ok(match (len, Record::newest(&bytes)) {
        (0, _) => Content::Empty,
        (_, Some(record)) => Content::Valid(Box::new(record)),
        (_, None) => Content::Damaged,
    })
}

/// Opens a record file; creates it empty if `create` is set.
pub(super) fn open(run: BorrowedFd<'_>, launch: &str, create: bool) -> io::Result<File> {
    let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    flags.set(OFlags::CREATE, create);
    let file = openat(run, format!("{launch}.r"), flags, Mode::RUSR | Mode::WUSR)?;
    Ok(file.into())
}

/// Takes the lock of a record; false if a shim, or another agent, holds it.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Writes a tombstone into a locked record, so that no late shim starts the launch.
pub(super) fn bury(file: &File, launch: Id, before: Option<&Record>) -> io::Result<()> {
    let mut tomb = Record::new(launch, boot_id()?, State::Abandoned);
    tomb.seq = before.map_or(0, |record| record.seq) + 1;
    file.write_all_at(&tomb.encode(), tomb.offset())?;
    file.sync_data()
}
