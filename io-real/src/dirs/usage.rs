//! How much an allocation's directory takes.
//!
//! Where the file system counts it, it is asked ([`super::quota`]). Else nothing is known but by looking at each file, so there is a bound on how many are looked at; what lies beyond it, or deeper than
//! anybody wants it, is not counted. Files that a task deleted and keeps open are not seen either. And nobody looks
//! again while the whole file system is as full as it was.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use drover_core::ids::AllocId;
use rustix::fs::{AtFlags, Dir, FileType, Stat, fstat, fstatvfs, statat};
use rustix::io::Errno;

use super::{AllocDirs, open_dir};

/// How many entries of one allocation's directory are looked at.
const MAX_ENTRIES: u32 = 100_000;
/// How deep directories are looked into.
const MAX_DEPTH: u32 = 32;
/// The unit of `st_blocks`.
const BLOCK: u64 = 512;
/// How much more or less the file system may hold before it is looked at again, in bytes.
const UNCHANGED: u64 = 8 * 1024 * 1024;

/// What was measured last.
#[derive(Clone, Debug, Default)]
pub(super) struct LastUsage(Arc<Mutex<Found>>);

#[derive(Debug, Default)]
struct Found {
    /// How much the file system held then, in bytes.
    held: u64,
    sizes: BTreeMap<AllocId, u64>,
}

impl AllocDirs {
    /// How many bytes the directories of these allocations take, without secrets and what else is mounted there.
    /// Who has none is left out.
    ///
    /// # Errors
    /// The disk says no.
    pub fn sizes(&self, allocs: &[AllocId]) -> io::Result<BTreeMap<AllocId, u64>> {
        let mut last = self
            .last_usage
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let disk = fstatvfs(&self.root)?;
        let held = disk
            .f_blocks
            .saturating_sub(disk.f_bfree)
            .saturating_mul(disk.f_frsize);
        let is_as_before = last.held.abs_diff(held) < UNCHANGED;
        let mut sizes = BTreeMap::new();
        for alloc in allocs {
            let dir = match self.open(*alloc, "") {
                Ok(dir) => dir,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let known = last.sizes.get(alloc).filter(|_| is_as_before).copied();
            let size = match self.counted(&dir).or(known) {
                Some(size) => size,
                None => size_of(&dir)?,
            };
            sizes.insert(*alloc, size);
        }
        last.sizes.clone_from(&sizes);
        if !is_as_before {
            last.held = held;
        }
        Ok(sizes)
    }
}

/// The bytes of a directory and of all that is in it, on its own file system.
fn size_of(dir: &OwnedFd) -> io::Result<u64> {
    let own = fstat(dir)?;
    let mut walk = Walk {
        device: own.st_dev,
        left: MAX_ENTRIES,
        bytes: share(&own),
    };
    walk.contents(dir, MAX_DEPTH)?;
    Ok(walk.bytes)
}

/// What a file takes; of one with several names, each its part.
#[allow(
    clippy::useless_conversion,
    reason = "the number of names has another type on other machines"
)]
fn share(stat: &Stat) -> u64 {
    let bytes = u64::try_from(stat.st_blocks)
        .unwrap_or(0)
        .saturating_mul(BLOCK);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => bytes,
        _ => bytes / u64::try_from(stat.st_nlink).unwrap_or(1).max(1),
    }
}

struct Walk {
    device: u64,
    left: u32,
    bytes: u64,
}

impl Walk {
    fn contents(&mut self, dir: &OwnedFd, deeper: u32) -> io::Result<()> {
        for entry in Dir::read_from(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let Some(left) = self.left.checked_sub(1) else {
                return Ok(());
            };
            self.left = left;
            let stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if stat.st_dev == self.device => stat,
                Ok(_) | Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            self.bytes = self.bytes.saturating_add(share(&stat));
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory && deeper > 0 {
                // What was a directory may be gone by now, or something else, or not for us to read.
                if let Ok(below) = open_dir(dir.as_fd(), name) {
                    self.contents(&below, deeper - 1)?;
                }
            }
        }
        Ok(())
    }
}
