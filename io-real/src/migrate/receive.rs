//! What another node sends of a disk, taken in as an enemy's.

use std::io::{self, Read};
use std::os::fd::OwnedFd;

use bytes::{Buf, Bytes};
use drover_core::ids::{AllocId, TaskName};
use drover_core::op::Failure;
use rustix::fs::fstatvfs;
use tokio::sync::mpsc;

use crate::dirs::AllocDirs;
use crate::unpack::{Bound, Bounds, End, Keep, Sink, Trouble, tar};

/// The longest reason of the other node that is passed on, in bytes.
const MAX_WHY: u64 = 300;

/// What a disk of another node may be at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In bytes.
    pub bytes: u64,
    /// Files, directories and links.
    pub entries: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bytes: 1 << 40,
            entries: 4 << 20,
        }
    }
}

/// Reads a snapshot and takes over what these tasks shall have of it. What is there already stays.
/// Returns how many bytes came.
///
/// # Errors
/// The stream broke off (try again), or it is nothing that is taken in (do not). Nothing of it is
/// left then.
pub(super) fn receive(
    dirs: &AllocDirs,
    alloc: AllocId,
    tasks: &[TaskName],
    limits: Limits,
    from: mpsc::Receiver<io::Result<Bytes>>,
) -> Result<u64, Failure> {
    let disk = |error: io::Error| Failure::recoverable(error.to_string());
    // Left by one that was killed in the middle.
    dirs.leave_arrival(alloc).map_err(disk)?;
    let arrival = dirs.arrival(alloc).map_err(disk)?;
    let mut pieces = Pieces {
        from,
        piece: Bytes::new(),
        end: StreamEnd::NotYet,
    };
    let read = within_free_space(&arrival, limits)
        .and_then(|limits| Ok((arrival.try_clone()?, limits)))
        .map_err(Trouble::disk)
        .and_then(|(into, limits)| unpack(into, &mut pieces, limits));
    let taken = read.and_then(|bytes| {
        dirs.take_arrival(alloc, &arrival, tasks)
            .map_err(Trouble::disk)?;
        Ok(bytes)
    });
    drop(arrival);
    let left = dirs.leave_arrival(alloc);
    match taken {
        Ok(bytes) => left.map(|()| bytes).map_err(disk),
        Err(trouble) if trouble.again => Err(Failure::recoverable(trouble.why)),
        // What was read of it sends nothing.
        Err(trouble) => Err(match pieces.end {
            StreamEnd::NotYet => Failure::fatal(trouble.why),
            StreamEnd::RanOut => Failure::recoverable(too_short(&trouble.why)),
            StreamEnd::Broke => Failure::recoverable(trouble.why),
        }),
    }
}

/// No more than there is room for: a tenth of what is free stays for everybody else.
fn within_free_space(dir: &OwnedFd, limits: Limits) -> io::Result<Limits> {
    let disk = fstatvfs(dir)?;
    let available = disk.f_bavail - disk.f_bavail / 10;
    let bytes = available.saturating_mul(disk.f_frsize).min(limits.bytes);
    Ok(Limits { bytes, ..limits })
}

/// Unpacks a snapshot into a directory. Returns how many bytes its files have.
///
/// # Errors
/// It is none, does harm, is too large, or its node could not read it all.
fn unpack(into: OwnedFd, from: &mut dyn Read, limits: Limits) -> Result<u64, Trouble> {
    let mut sink = Sink::new(into, bounds(limits), Keep::All);
    let end = tar(from, &mut sink, &mut |name, entry| {
        if !is_error(name) {
            return Ok(());
        }
        let mut why = String::new();
        // What cannot be read of the reason does not matter.
        let _ = entry.take(MAX_WHY).read_to_string(&mut why);
        Err(Trouble::passing(format!("the other node: {why}")))
    })?;
    match end {
        End::Marked => Ok(sink.bytes()),
        End::Unmarked => Err(Trouble::passing(too_short(
            "the mark of its end is missing",
        ))),
    }
}

/// Of a stream that is shorter than its archive, which a node that dies between two files may leave.
fn too_short(why: &str) -> String {
    format!("the stream ended before the archive did: {why}")
}

fn bounds(limits: Limits) -> Bounds {
    let Limits { bytes, entries } = limits;
    Bounds {
        bytes: Bound {
            most: bytes,
            why: format!("it has more than {bytes} bytes, the free disk space"),
        },
        entries: Bound {
            most: entries,
            why: format!("it has more than {entries} files and directories"),
        },
    }
}

/// Whether an entry says why there is no more.
fn is_error(name: &[u8]) -> bool {
    name.starts_with(b"NOMAD-") && name.ends_with(b"-ERROR.log")
}

/// The stream's pieces as one.
struct Pieces {
    from: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
    end: StreamEnd,
}

/// Whether and how a stream ended.
#[derive(Clone, Copy)]
enum StreamEnd {
    NotYet,
    /// More of it was wanted, and there was no more.
    RanOut,
    /// It broke off.
    Broke,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.from.blocking_recv() {
                None => {
                    self.end = StreamEnd::RanOut;
                    return Ok(0);
                }
                Some(Ok(piece)) => self.piece = piece,
                Some(Err(error)) => {
                    self.end = StreamEnd::Broke;
                    return Err(error);
                }
            }
        }
        let many = self.piece.len().min(into.len());
        if let Some(into) = into.get_mut(..many) {
            self.piece.copy_to_slice(into);
        }
        Ok(many)
    }
}

/// Takes a snapshot into a directory of nobody, for those who try out enemies' ones. Returns how
/// many bytes its files have.
///
/// # Errors
/// Why it is not taken in.
pub fn try_in(into: OwnedFd, bytes: &[u8], limits: Limits) -> Result<u64, String> {
    unpack(into, &mut &*bytes, limits).map_err(|trouble| trouble.why)
}
