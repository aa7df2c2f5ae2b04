//! Disk space of allocations: measured by looking, and counted and limited by a file system that can.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use common::disk::Disk;
use common::is_root;
use drover_core::ids::{AllocId, TaskName};
use drover_io_real::dirs::{AllocDirs, Quotas};
use tempfile::TempDir;

const ONE: AllocId = AllocId(0xa110c);
const OTHER: AllocId = AllocId(0xa110d);
const MIB: usize = 1024 * 1024;

fn dirs_in(root: &Path) -> AllocDirs {
    let handle: OwnedFd = File::open(root).unwrap().into();
    AllocDirs::new(Arc::new(handle))
}

/// A file system of its own in a file, with project quotas.
struct FileSystem {
    dir: TempDir,
}

impl FileSystem {
    /// None where this machine cannot have one; the test says so.
    fn with_quotas() -> Option<FileSystem> {
        if !is_root() {
            eprintln!("skipped: needs root");
            return None;
        }
        let dir = TempDir::new().unwrap();
        // Those who are limited have to come in.
        fs::set_permissions(dir.path(), Permissions::from_mode(0o711)).unwrap();
        let image = dir.path().join("image");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        let system = FileSystem { dir };
        let root = system.root();
        let made = run(
            "mkfs.ext4",
            &["-q", "-O", "project,quota", "-E", "quotatype=prjquota"],
            &image,
        );
        let mounted = made && {
            let options = ["-o", "loop,prjquota"];
            let status = Command::new("mount")
                .args(options)
                .arg(&image)
                .arg(&root)
                .status();
            status.is_ok_and(|status| status.success())
        };
        if !mounted {
            eprintln!("skipped: no file system with project quotas can be made here");
            return None;
        }
        Some(system)
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.root()).status();
    }
}

fn run(program: &str, args: &[&str], file: &Path) -> bool {
    let status = Command::new(program).args(args).arg(file).status();
    status.is_ok_and(|status| status.success())
}

/// Writes so much, as far as the disk lets it.
fn write(path: &Path, bytes: usize) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&vec![7; bytes])?;
    file.sync_all()
}

/// The same as a user whom limits concern: the administrator is above them. What went wrong, if anything did.
fn write_as_nobody(path: &Path, mib: usize) -> String {
    let mut dd = Command::new("dd");
    dd.arg("if=/dev/zero").arg(format!("of={}", path.display()));
    dd.args(["bs=1048576", &format!("count={mib}"), "conv=fsync"]);
    let output = dd.uid(65534).gid(65534).output().unwrap();
    match output.status.success() {
        true => String::new(),
        false => String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn shared(root: &Path, alloc: AllocId) -> PathBuf {
    root.join(alloc.to_string()).join("alloc/data")
}

#[test]
fn size_of_directory_is_what_its_files_take() {
    let dir = TempDir::new().unwrap();
    let dirs = dirs_in(dir.path());
    dirs.build_alloc(ONE).unwrap();
    dirs.build_task(ONE, "web", None).unwrap();
    let data = shared(dir.path(), ONE);
    write(&data.join("file"), 2 * MIB).unwrap();
    fs::hard_link(data.join("file"), data.join("same")).unwrap();
    // A hole takes nothing, and what a link leads to is somebody else's.
    File::create(data.join("sparse"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    std::os::unix::fs::symlink("/usr", data.join("link")).unwrap();
    let sizes = dirs.sizes(&[ONE, OTHER]).unwrap();
    assert_eq!(
        sizes.keys().collect::<Vec<_>>(),
        [&ONE],
        "the other has no directory"
    );
    let size = usize::try_from(sizes[&ONE]).unwrap();
    assert!(
        (2 * MIB..2 * MIB + 256 * 1024).contains(&size),
        "{size} bytes"
    );
}

#[test]
fn growth_is_seen_once_file_system_grew() {
    let dir = TempDir::new().unwrap();
    let dirs = dirs_in(dir.path());
    dirs.build_alloc(ONE).unwrap();
    let before = dirs.sizes(&[ONE]).unwrap()[&ONE];
    write(&shared(dir.path(), ONE).join("file"), 32 * MIB).unwrap();
    let after = dirs.sizes(&[ONE]).unwrap()[&ONE];
    assert!(after >= before + 32 * 1024 * 1024, "{before}, then {after}");
}

#[test]
fn slow_growth_between_looks_is_seen_in_the_end() {
    let dir = TempDir::new().unwrap();
    // Only this test writes there.
    let Some(_disk) = Disk::mount(dir.path(), "64m") else {
        return;
    };
    let dirs = dirs_in(dir.path());
    dirs.build_alloc(ONE).unwrap();
    let before = dirs.sizes(&[ONE]).unwrap()[&ONE];
    let mut after = before;
    // Each time too little for another look at all files, but not all of it together.
    for part in ["a", "b", "c"] {
        write(&shared(dir.path(), ONE).join(part), 5 * MIB).unwrap();
        after = dirs.sizes(&[ONE]).unwrap()[&ONE];
    }
    assert!(after >= before + 10 * 1024 * 1024, "{before}, then {after}");
}

#[test]
fn directory_takes_no_more_than_its_limit() {
    let Some(system) = FileSystem::with_quotas() else {
        return;
    };
    let dirs = dirs_in(&system.root());
    assert_eq!(dirs.quotas(), Quotas::Enforced);
    dirs.build_alloc(ONE).unwrap();
    dirs.set_quota(ONE, 4 << 20).unwrap();
    // What is made afterwards counts, too.
    dirs.build_task(ONE, "web", None).unwrap();
    let local = system.root().join(ONE.to_string()).join("web/local");
    write(&shared(&system.root(), ONE).join("some"), MIB).unwrap();
    let error = write_as_nobody(&local.join("much"), 8);
    assert!(error.contains("quota exceeded"), "{error}");
    let size = dirs.sizes(&[ONE]).unwrap()[&ONE];
    assert!(
        ((4 << 20) - 65_536..=4 << 20).contains(&size),
        "{size} bytes"
    );
    // Nobody else is touched by it.
    dirs.build_alloc(OTHER).unwrap();
    assert_eq!(
        write_as_nobody(&shared(&system.root(), OTHER).join("much"), 8),
        ""
    );
    dirs.set_quota(ONE, 16 << 20).unwrap();
    assert_eq!(write_as_nobody(&local.join("much"), 8), "");
    dirs.remove(ONE).unwrap();
    // The number is free again, without a limit.
    dirs.build_alloc(ONE).unwrap();
    dirs.set_quota(ONE, 1 << 20).unwrap();
    assert!(dirs.sizes(&[ONE]).unwrap()[&ONE] < 1 << 20);
}

#[test]
fn directory_has_no_more_files_than_its_limit() {
    let Some(system) = FileSystem::with_quotas() else {
        return;
    };
    let dirs = dirs_in(&system.root());
    dirs.build_alloc(ONE).unwrap();
    dirs.set_quota(ONE, 1 << 20).unwrap();
    let many = "for i in $(seq 1200); do : >e$i || exit 7; done";
    let as_nobody = |alloc| {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", many])
            .current_dir(shared(&system.root(), alloc));
        shell.uid(65534).gid(65534).output().unwrap()
    };
    let done = as_nobody(ONE);
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(
        !done.status.success() && complaint.contains("quota"),
        "{complaint}"
    );
    let made = fs::read_dir(shared(&system.root(), ONE)).unwrap().count();
    assert!((1000..1024).contains(&made), "{made} files");
    dirs.build_alloc(OTHER).unwrap();
    assert!(as_nobody(OTHER).status.success());
    dirs.remove(ONE).unwrap();
}

#[test]
fn disk_that_is_taken_over_counts_for_new_owner() {
    let Some(system) = FileSystem::with_quotas() else {
        return;
    };
    let dirs = dirs_in(&system.root());
    dirs.build_alloc(ONE).unwrap();
    dirs.set_quota(ONE, 8 << 20).unwrap();
    let data = shared(&system.root(), ONE);
    fs::create_dir(data.join("deep")).unwrap();
    write(&data.join("deep/file"), 3 * MIB).unwrap();
    dirs.build_alloc(OTHER).unwrap();
    dirs.inherit(OTHER, &[ONE], &[TaskName::from("web")])
        .unwrap();
    dirs.set_quota(OTHER, 8 << 20).unwrap();
    let sizes = dirs.sizes(&[ONE, OTHER]).unwrap();
    assert!(
        sizes[&OTHER] >= 3 << 20 && sizes[&ONE] < 1 << 20,
        "{sizes:?}"
    );
    let kept = fs::read(shared(&system.root(), OTHER).join("deep/file")).unwrap();
    assert_eq!(kept.len(), 3 * MIB);
    let error = write_as_nobody(&shared(&system.root(), OTHER).join("more"), 8);
    assert!(error.contains("quota exceeded"), "{error}");
}

#[test]
fn file_system_without_projects_says_so() {
    let dir = TempDir::new_in("/dev/shm").unwrap();
    let dirs = dirs_in(dir.path());
    assert_eq!(dirs.quotas(), Quotas::None);
    dirs.build_alloc(ONE).unwrap();
    let error = dirs.set_quota(ONE, 1 << 20).unwrap_err().to_string();
    assert!(
        error.contains("project quotas of its file system"),
        "{error}"
    );
}
