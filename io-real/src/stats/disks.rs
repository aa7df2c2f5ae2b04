//! How full the machine's disks are.
//!
//! Asking a disk that hangs hangs, so asking is done on a thread of its own, one pass at a time:
//! whoever looks waits a moment for it and otherwise takes what the last pass found.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use drover_core::stats::host::{Disk, Volume};
use rustix::fs::statvfs;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::FRESH;
use super::counters::block_kinds;
use crate::mounts;

/// How many mounts are looked at.
const MOST: usize = 256;

/// How long somebody who looks waits for disks.
const TIMEOUT: Duration = Duration::from_millis(250);

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Volumes {
    pub(super) mounted: Arc<Vec<Disk>>,
    pub(super) alloc_dir: Option<Volume>,
}

/// The machine's disks. Cheap to clone; the clones are the same.
#[derive(Clone, Debug)]
pub struct Disks {
    alloc_dir: Arc<PathBuf>,
    pass: Arc<Mutex<Pass>>,
    found: watch::Sender<Volumes>,
}

#[derive(Debug, Default)]
struct Pass {
    running: bool,
    ended: Option<Instant>,
}

impl Disks {
    /// All that is mounted, and the volume of `alloc_dir`.
    pub fn new(alloc_dir: PathBuf) -> Disks {
        Disks {
            alloc_dir: Arc::new(alloc_dir),
            pass: Arc::default(),
            found: watch::Sender::default(),
        }
    }

    fn pass(&self) -> MutexGuard<'_, Pass> {
        self.pass.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn sample(&self) -> Volumes {
        let (mut found, running) = {
            let mut pass = self.pass();
            let fresh = pass.ended.is_some_and(|at| at.elapsed() < FRESH);
            if !pass.running && !fresh {
                pass.running = true;
                let own = self.clone();
                spawn_blocking(move || own.sample_blocking());
            }
            (self.found.subscribe(), pass.running)
        };
        if running {
            // Whether it came or not: what is known is what is told.
            let _ = timeout(TIMEOUT, found.changed()).await;
        }
        found.borrow().clone()
    }

    fn sample_blocking(&self) {
        let volumes = Volumes {
            mounted: Arc::new(mounted()),
            alloc_dir: volume(&self.alloc_dir),
        };
        // Both at once for whoever looks.
        let mut pass = self.pass();
        pass.running = false;
        pass.ended = Some(Instant::now());
        self.found.send_replace(volumes);
    }
}

/// What is mounted of real disks. Each directory counts, also where one disk is mounted twice.
fn mounted() -> Vec<Disk> {
    let kinds = std::fs::read("/proc/filesystems").unwrap_or_default();
    let kinds = block_kinds(&kinds);
    let mounts = mounts::here().unwrap_or_default();
    let real = mounts.iter().filter(|mount| kinds.contains(&mount.kind));
    let disk = |mount: &mounts::Mount| {
        // Files are mounted too, such as a container's `/etc/hosts`.
        let directory = std::fs::metadata(&mount.point).ok()?.is_dir();
        Some(Disk {
            device: mount.source.clone(),
            mountpoint: mount.point.to_str()?.to_owned(),
            volume: volume(&mount.point).filter(|_| directory)?,
        })
    };
    real.take(MOST).filter_map(disk).collect()
}

fn volume(dir: &Path) -> Option<Volume> {
    let stat = statvfs(dir).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Some(Volume::of(
        bytes(stat.f_blocks),
        bytes(stat.f_bfree),
        bytes(stat.f_bavail),
        stat.f_files,
        stat.f_ffree,
    ))
}
