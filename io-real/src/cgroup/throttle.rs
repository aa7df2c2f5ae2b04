//! How fast a group reads and writes the disk below the agent's data directory: `io.max` of version 2, and
//! `blkio.throttle` of version 1, which counts what goes to the disk at once and not what the kernel writes later.
//!
//! The kernel limits whole disks and no partitions, by their numbers. A limit that cannot be set is an error: a task
//! that was to be slow must not be fast.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use drover_core::driver::config::IoLimits;
use rustix::fs::{major, makedev, minor};

use super::{Cgroups, Version};
use crate::mounts;

/// Where the kernel tells of disks.
const SYS: &str = "/sys";

/// Which disk is limited, and how far in any case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct IoSettings {
    /// A directory on it.
    pub(super) dir: PathBuf,
    /// What no task goes beyond.
    pub(super) most: IoLimits,
}

/// A whole disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disk {
    /// Its numbers, as the kernel writes them: `8:0`.
    pub numbers: String,
    /// Its node in `/dev`.
    pub node: PathBuf,
}

impl Cgroups {
    /// Limits of reading and writing are for the disk of this directory, and no task gets more than `most`.
    #[must_use]
    pub fn with_disk_of(mut self, dir: PathBuf, most: IoLimits) -> Cgroups {
        self.io = Some(IoSettings { dir, most });
        self
    }

    /// What a task may read and write that asks for `wanted`, and of which disk; none if that is not limited.
    ///
    /// # Errors
    /// The limits cannot be set here, and why.
    pub fn io_limits(&self, wanted: IoLimits) -> io::Result<Option<(Disk, IoLimits)>> {
        let settings = self.io.as_ref();
        let limits = settings.map_or(wanted, |settings| wanted.within(settings.most));
        if limits.is_none() {
            return Ok(None);
        }
        let settings =
            settings.ok_or_else(|| not_here("no disk is known that could be limited"))?;
        let has_controller = match self.version {
            Version::V1 | Version::Hybrid => self.blkio.is_some(),
            Version::V2 => fs::read_to_string("/sys/fs/cgroup/cgroup.controllers")?
                .split_whitespace()
                .any(|name| name == "io"),
        };
        if !has_controller {
            let what =
                "the kernel's control groups have no controller `io` (of version 1: `blkio`)";
            return Err(not_here(what));
        }
        let disk = disk_of(Path::new(SYS), &settings.dir)?;
        Ok(Some((disk, limits)))
    }

    /// Sets the limits of a group that was just made, all of them, so that none of an earlier use is left.
    pub(super) fn limit_io(&self, name: &str, set: Option<&(Disk, IoLimits)>) -> io::Result<()> {
        let Some((disk, limits)) = set else {
            return Ok(());
        };
        match (&self.blkio, self.controlled.first(), self.version) {
            (_, Some(parent), Version::V2) => {
                write(&parent.join(name), "io.max", &all_at_once(disk, limits))
            }
            (Some(parent), _, Version::V1 | Version::Hybrid) => {
                let dir = parent.join(name);
                fs::create_dir_all(&dir)?;
                let mut files = one_by_one(disk, limits).into_iter();
                files.try_for_each(|(file, text)| write(&dir, file, &text))
            }
            (_, None, _) | (None, _, _) => Ok(()),
        }
    }

    /// The group's directory of the controller `blkio` of version 1, which only those have that are limited.
    pub(super) fn blkio_dir(&self, name: &str) -> Option<PathBuf> {
        let dir = self.blkio.as_ref()?.join(name);
        dir.is_dir().then_some(dir)
    }
}

fn not_here(what: &str) -> io::Error {
    let message = format!(
        "reading and writing cannot be limited here: {what}; leave out `io` of the task's config, or of the agent's \
         block `client`"
    );
    io::Error::new(io::ErrorKind::Unsupported, message)
}

/// The whole disk on which a directory is.
fn disk_of(sys: &Path, dir: &Path) -> io::Result<Disk> {
    let device = fs::metadata(dir)?.dev();
    // File systems that make numbers of their own for their parts are mounted from something nevertheless.
    let device = match major(device) {
        0 => source_of(dir)?,
        _ => device,
    };
    whole_disk(sys, device)
}

fn source_of(dir: &Path) -> io::Result<u64> {
    let mounts = mounts::here()?;
    let dir = fs::canonicalize(dir)?;
    let mount = mounts::holding(&mounts, &dir);
    let source = mount.and_then(|mount| fs::metadata(&mount.source).ok());
    let device = source.filter(|source| source.file_type().is_block_device());
    device.map(|device| device.rdev()).ok_or_else(|| {
        let kind = mount.map_or("unknown", |mount| mount.kind.as_str());
        let dir = dir.display();
        not_here(&format!(
            "{dir} is on no disk of its own (its file system is {kind})"
        ))
    })
}

/// The disk that a device is, or is a part of.
fn whole_disk(sys: &Path, device: u64) -> io::Result<Disk> {
    let numbers = format!("{}:{}", major(device), minor(device));
    let at = sys.join("dev/block").join(&numbers);
    let unknown = |error| {
        let why = format!("the kernel does not report the disk {numbers}: {error}");
        io::Error::other(why)
    };
    let mut at = fs::canonicalize(at).map_err(unknown)?;
    if at.join("partition").exists() {
        at.pop();
    }
    let of_whole = fs::read_to_string(at.join("dev")).map_err(unknown)?;
    let of_whole = of_whole.trim().to_owned();
    let known = of_whole
        .split_once(':')
        .and_then(|(major, minor)| Some(makedev(major.parse().ok()?, minor.parse().ok()?)));
    let name = at.file_name().unwrap_or_default().to_string_lossy();
    match known {
        // What would be a directory in /dev is written with an exclamation mark.
        Some(_) => Ok(Disk {
            numbers: of_whole,
            node: Path::new("/dev").join(name.replace('!', "/")),
        }),
        None => Err(unknown(io::Error::other("its numbers are none"))),
    }
}

/// The line for version 2.
fn all_at_once(disk: &Disk, limits: &IoLimits) -> String {
    let text = |limit: Option<u64>| limit.map_or_else(|| "max".to_owned(), |it| it.to_string());
    format!(
        "{} rbps={} wbps={} riops={} wiops={}",
        disk.numbers,
        text(limits.read_bps),
        text(limits.write_bps),
        text(limits.read_iops),
        text(limits.write_iops)
    )
}

/// The files of version 1, and what goes into each. 0 is no limit.
fn one_by_one(disk: &Disk, limits: &IoLimits) -> [(&'static str, String); 4] {
    let files = [
        ("blkio.throttle.read_bps_device", limits.read_bps),
        ("blkio.throttle.write_bps_device", limits.write_bps),
        ("blkio.throttle.read_iops_device", limits.read_iops),
        ("blkio.throttle.write_iops_device", limits.write_iops),
    ];
    files.map(|(file, limit)| (file, format!("{} {}", disk.numbers, limit.unwrap_or(0))))
}

fn write(dir: &Path, file: &str, text: &str) -> io::Result<()> {
    let path = dir.join(file);
    // The kernel makes these files, and nobody else can.
    let done = OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    done.map_err(|error| {
        let path = path.display();
        io::Error::new(
            error.kind(),
            format!("{path}: cannot write {text:?}: {error}"),
        )
    })
}

#[cfg(test)]
#[path = "throttle_tests.rs"]
mod tests;
