//! Secrets of tasks: in memory, mounted once, distinguished from those before, and gone with their
//! allocation.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::is_root;
use drover_core::ids::AllocId;
use drover_io_real::dirs::{AllocDirs, Owner};
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{UnmountFlags, unmount};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

const ALLOC: AllocId = AllocId(0x5ec3e7);
/// The task's user and group.
const USER: Owner = Some((1234, 1235));
const MIB: u64 = 1024 * 1024;

/// An allocation with the task `web`. What is mounted in it is taken away with it.
struct TaskPath {
    dirs: AllocDirs,
    task: PathBuf,
    dir: TempDir,
}

impl TaskPath {
    fn new() -> TaskPath {
        let dir = TempDir::new().unwrap();
        let root = File::open(dir.path()).unwrap().into();
        let dirs = AllocDirs::new(Arc::new(root));
        dirs.build_alloc(ALLOC).unwrap();
        dirs.build_task(ALLOC, "web", USER).unwrap();
        let task = dir.path().join(ALLOC.to_string()).join("web");
        TaskPath { dirs, task, dir }
    }

    fn secrets(&self) -> PathBuf {
        self.task.join("secrets")
    }

    fn mount(&self) -> String {
        self.dirs.secrets(ALLOC, "web", USER, 2).unwrap()
    }

    /// How many mounts there are below this place.
    fn mounts(&self) -> usize {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let below = self.dir.path().to_str().unwrap();
        table.lines().filter(|line| line.contains(below)).count()
    }
}

impl Drop for TaskPath {
    fn drop(&mut self) {
        while unmount(self.secrets(), UnmountFlags::DETACH).is_ok() {}
    }
}

fn root() -> bool {
    if !is_root() {
        eprintln!("skipped: only root mounts");
    }
    is_root()
}

#[test]
fn secrets_mount_is_tmpfs_noexec() {
    if !root() {
        return;
    }
    let place = TaskPath::new();
    assert_eq!(place.mount().len(), 32);
    let disk = statvfs(place.secrets()).unwrap();
    let flags = StatVfsMountFlags::NOEXEC | StatVfsMountFlags::NOSUID | StatVfsMountFlags::NODEV;
    assert!(disk.f_flag.contains(flags), "{:?}", disk.f_flag);
    assert_eq!(disk.f_blocks * disk.f_frsize, 2 * MIB);
    let meta = fs::metadata(place.secrets()).unwrap();
    let owner = (meta.uid(), meta.gid(), meta.permissions().mode() & 0o7777);
    assert_eq!(owner, (1234, 1235, 0o700), "as the directory below it");
    assert_ne!(meta.dev(), fs::metadata(&place.task).unwrap().dev());
    let large = vec![0; usize::try_from(3 * MIB).unwrap()];
    assert!(fs::write(place.secrets().join("large"), large).is_err());
}

#[test]
fn secrets_permissions_are_reset_before_start() {
    if !root() {
        return;
    }
    let place = TaskPath::new();
    let first = place.mount();
    fs::set_permissions(place.secrets(), fs::Permissions::from_mode(0o777)).unwrap();
    chown(place.secrets(), Some(65534), Some(65534)).unwrap();
    assert_eq!(place.mount(), first);
    let meta = fs::metadata(place.secrets()).unwrap();
    let owner = (meta.uid(), meta.gid(), meta.permissions().mode() & 0o7777);
    assert_eq!(owner, (1234, 1235, 0o700));
    // A task without a user runs as the agent's.
    place.dirs.secrets(ALLOC, "web", None, 2).unwrap();
    let meta = fs::metadata(place.secrets()).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (0, 0));
}

#[test]
fn secrets_are_mounted_once() {
    if !root() {
        return;
    }
    let place = TaskPath::new();
    let first = place.mount();
    fs::write(place.secrets().join("key"), "s3cret").unwrap();
    place.dirs.build_task(ALLOC, "web", None).unwrap();
    assert_eq!((place.mount(), place.mounts()), (first.clone(), 1));
    assert!(place.secrets().join("key").exists());
    // As after a restart of the machine.
    unmount(place.secrets(), UnmountFlags::empty()).unwrap();
    assert!(!place.secrets().join("key").exists());
    let second = place.mount();
    assert_ne!(first, second);
    // Where the id is not ours any more, nobody knows what else is missing.
    fs::remove_file(place.secrets().join(".drover-secrets")).unwrap();
    symlink("/etc/hostname", place.secrets().join(".drover-secrets")).unwrap();
    let third = place.mount();
    assert!(third != second && third.len() == 32, "{third}");
    assert_eq!((place.mount(), place.mounts()), (third, 1));
}

#[test]
fn busy_secrets_are_unmounted_with_alloc() {
    if !root() {
        return;
    }
    let place = TaskPath::new();
    place.mount();
    fs::write(place.secrets().join("key"), "s3cret").unwrap();
    let busy = File::open(place.secrets()).unwrap();
    place.dirs.remove(ALLOC).unwrap();
    assert!(!place.task.exists());
    assert_eq!(place.mounts(), 0);
    drop(busy);
    place.dirs.remove(ALLOC).unwrap();
}

#[test]
fn secrets_mount_follows_no_symlink() {
    let place = TaskPath::new();
    fs::remove_dir(place.secrets()).unwrap();
    let outside = place.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, place.secrets()).unwrap();
    assert!(place.dirs.secrets(ALLOC, "web", USER, 1).is_err());
    assert_eq!(place.mounts(), 0);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    place.dirs.remove(ALLOC).unwrap();
    assert!(outside.exists());
}

#[test]
fn secrets_fall_back_to_plain_directory() {
    if is_root() {
        eprintln!("skipped: root has its secrets in memory");
        return;
    }
    let place = TaskPath::new();
    assert_eq!(place.mount(), "");
    assert!(place.secrets().is_dir());
}
