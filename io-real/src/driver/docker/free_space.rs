//! Free space on the engine's disk: what images may take of it.
//!
//! Nothing limits what an engine unpacks, and whoever makes an image says how much that is. So a download ends when the
//! disk is almost full, and no archive is handed over that would not fit. The setting `image_max_size_mb` says less.

use std::io;
use std::path::Path;

use super::engine::Engine;
use super::load::Limit;
use super::trouble::Trouble;

/// What images leave free, in bytes; of a small disk, one part of so many.
const KEPT: u64 = 1 << 30;
const PART: u64 = 50;

/// What images may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeSpace<'a> {
    /// Where the engine keeps its data.
    pub(super) root: &'a Path,
    /// The most that one image may be, if the agent's configuration says it.
    pub(super) most: Option<u64>,
}

impl<'a> FreeSpace<'a> {
    /// On the disk of this engine.
    pub(super) fn of(engine: &'a Engine, most: Option<u64>) -> FreeSpace<'a> {
        let root = &engine.about().root;
        FreeSpace { root, most }
    }

    /// What an archive may become.
    pub(super) fn of_archive(&self) -> Limit {
        let free = self
            .free()
            .ok()
            .filter(|free| *free < self.most.unwrap_or(u64::MAX));
        match (free, self.most) {
            (Some(most), _) => Limit {
                most,
                why: format!(
                    "which is what is free on the engine's disk ({}): {REMEDY}",
                    self.root.display()
                ),
                kind: io::ErrorKind::StorageFull,
            },
            (None, most) => Limit {
                most: most.unwrap_or(u64::MAX),
                why: MAX_SIZE.to_owned(),
                kind: io::ErrorKind::FileTooLarge,
            },
        }
    }

    /// Whether a download may go on that brings so many bytes.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn admit(&self, bytes: u64) -> Result<(), Trouble> {
        self.admit_size(bytes)?;
        match self.free() {
            // What brings nothing needs no room.
            Ok(0) if bytes > 0 => Err(Trouble::Failed(format!(
                "the engine's disk ({}) is almost full: {REMEDY}",
                self.root.display()
            ))),
            // Where that is not seen, the engine says itself what it has no room for.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Whether an image may be so large.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn admit_size(&self, bytes: u64) -> Result<(), Trouble> {
        match self.most {
            Some(most) if bytes > most => Err(Trouble::Refused(format!(
                "it is larger than {} MiB, {MAX_SIZE}",
                most >> 20
            ))),
            _ => Ok(()),
        }
    }

    /// What is free beside what is kept.
    fn free(&self) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(self.root)?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        let kept = KEPT.min(bytes(disk.f_blocks) / PART);
        Ok(bytes(disk.f_bavail).saturating_sub(kept))
    }
}

/// What can be done where a disk is full.
const REMEDY: &str = "free space there, for example with \"docker image prune\"";

/// Who says how large an image may be.
const MAX_SIZE: &str = "which is what image_max_size_mb allows";
