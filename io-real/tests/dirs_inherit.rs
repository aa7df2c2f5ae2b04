//! Disks that go from one allocation to the next: all of it, nothing else, and again after a kill.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drover_core::ids::{AllocId, TaskName};
use drover_io_real::dirs::AllocDirs;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

const FIRST: AllocId = AllocId(1);
const SECOND: AllocId = AllocId(2);
const THIRD: AllocId = AllocId(3);

struct TaskPath {
    dirs: AllocDirs,
    dir: TempDir,
}

impl TaskPath {
    /// Allocations with a task `db` each, beside something that must not be touched.
    fn of(allocs: &[AllocId]) -> TaskPath {
        let dir = TempDir::new().unwrap();
        let (root, outside) = (dir.path().join("allocs"), dir.path().join("outside"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "precious").unwrap();
        let dirs = AllocDirs::new(Arc::new(File::open(&root).unwrap().into()));
        for alloc in allocs {
            dirs.build_alloc(*alloc).unwrap();
            dirs.build_task(*alloc, "db", None).unwrap();
        }
        TaskPath { dirs, dir }
    }

    fn path(&self, alloc: AllocId, path: &str) -> PathBuf {
        let allocs = self.dir.path().join("allocs");
        allocs.join(alloc.to_string()).join(path)
    }

    fn write(&self, alloc: AllocId, path: &str, text: &str) {
        fs::write(self.path(alloc, path), text).unwrap();
    }

    fn read(&self, alloc: AllocId, path: &str) -> Option<String> {
        match fs::read_to_string(self.path(alloc, path)) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    fn inherit(&self, alloc: AllocId, from: &[AllocId]) -> std::io::Result<()> {
        let tasks = ["db", "new"].map(TaskName::from);
        self.dirs.inherit(alloc, from, &tasks)
    }

    fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    fn assert_outside_untouched(&self) {
        let names = fs::read_dir(self.outside()).unwrap();
        assert_eq!(names.count(), 1);
        let file = self.outside().join("file");
        assert_eq!(fs::read_to_string(file).unwrap(), "precious");
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink())
}

#[test]
fn inherited_disk_has_data_and_local_only() {
    let place = TaskPath::of(&[FIRST, SECOND]);
    for path in ["alloc/data/shared", "db/local/own"] {
        place.write(FIRST, path, path);
    }
    for path in ["alloc/logs/log", "alloc/tmp/tmp", "db/secrets/key", "db/x"] {
        place.write(FIRST, path, path);
    }
    for _ in 0..2 {
        place.inherit(SECOND, &[FIRST]).unwrap();
        for path in ["alloc/data/shared", "db/local/own"] {
            assert_eq!(place.read(SECOND, path).as_deref(), Some(path));
            assert_eq!(place.read(FIRST, path), None);
        }
        for path in ["alloc/logs/log", "alloc/tmp/tmp", "db/secrets/key", "db/x"] {
            assert_eq!(place.read(FIRST, path).as_deref(), Some(path));
            assert_eq!(place.read(SECOND, path), None);
        }
    }
    // It can be used, and garbage-collected, as if it had always been there.
    place.dirs.build_task(SECOND, "db", None).unwrap();
    place.dirs.build_task(SECOND, "new", None).unwrap();
    place.dirs.open(SECOND, "alloc/data").unwrap();
    place.dirs.remove(FIRST).unwrap();
    place.dirs.remove(SECOND).unwrap();
}

#[test]
fn interrupted_disk_move_is_resumed() {
    let place = TaskPath::of(&[FIRST, SECOND]);
    place.write(FIRST, "alloc/data/shared", "1");
    place.write(FIRST, "db/local/own", "2");
    fs::rename(
        place.path(FIRST, "alloc/data"),
        place.path(SECOND, "alloc/data"),
    )
    .unwrap();
    place.inherit(SECOND, &[FIRST]).unwrap();
    assert_eq!(
        place.read(SECOND, "alloc/data/shared").as_deref(),
        Some("1")
    );
    assert_eq!(place.read(SECOND, "db/local/own").as_deref(), Some("2"));
}

#[test]
fn nearest_previous_alloc_with_data_is_used() {
    let place = TaskPath::of(&[FIRST, SECOND, THIRD]);
    place.write(FIRST, "alloc/data/shared", "first");
    place.write(FIRST, "db/local/own", "first");
    place.write(SECOND, "db/local/own", "second");
    let gone = AllocId(7);
    place.inherit(THIRD, &[gone, SECOND, FIRST]).unwrap();
    let read = |path| place.read(THIRD, path);
    assert_eq!(read("alloc/data/shared").as_deref(), Some("first"));
    assert_eq!(read("db/local/own").as_deref(), Some("second"));
    assert_eq!(place.read(FIRST, "db/local/own").as_deref(), Some("first"));
}

#[test]
fn existing_data_is_kept() {
    let place = TaskPath::of(&[FIRST, SECOND]);
    place.write(FIRST, "alloc/data/shared", "old");
    place.write(SECOND, "alloc/data/shared", "new");
    place.inherit(SECOND, &[FIRST]).unwrap();
    assert_eq!(
        place.read(SECOND, "alloc/data/shared").as_deref(),
        Some("new")
    );
    assert_eq!(
        place.read(FIRST, "alloc/data/shared").as_deref(),
        Some("old")
    );
}

#[test]
fn symlinked_source_is_ignored() {
    for at in ["alloc", "alloc/data", "db", "db/local"] {
        let place = TaskPath::of(&[FIRST, SECOND]);
        fs::create_dir_all(place.outside().join("data")).unwrap();
        fs::create_dir_all(place.outside().join("local")).unwrap();
        let link = place.path(FIRST, at);
        fs::remove_dir_all(&link).unwrap();
        symlink(place.outside(), &link).unwrap();
        place.inherit(SECOND, &[FIRST]).unwrap();
        for path in ["alloc/data", "db/local"] {
            let path = place.path(SECOND, path);
            assert!(!is_link(&path), "{at}: a link was taken over");
            assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "{at}");
        }
        assert!(is_link(&link));
        for name in ["data", "local"] {
            fs::remove_dir(place.outside().join(name)).unwrap();
        }
        place.assert_outside_untouched();
    }
}

#[test]
fn symlinks_inside_disk_are_moved_as_links() {
    let place = TaskPath::of(&[FIRST, SECOND]);
    symlink(place.outside(), place.path(FIRST, "alloc/data/link")).unwrap();
    place.inherit(SECOND, &[FIRST]).unwrap();
    assert!(is_link(&place.path(SECOND, "alloc/data/link")));
    place.dirs.remove(SECOND).unwrap();
    place.assert_outside_untouched();
}

#[test]
fn source_swapped_for_symlink_is_not_moved() {
    let place = TaskPath::of(&[FIRST, SECOND]);
    place.write(FIRST, "alloc/data/shared", "1");
    let spare = place.dir.path().join("spare");
    symlink(place.outside(), &spare).unwrap();
    let data = place.path(FIRST, "alloc/data");
    let replacement = place.path(SECOND, "alloc/data");
    let stop = AtomicBool::new(false);
    let mut moved = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, &data, CWD, &spare, RenameFlags::EXCHANGE);
            }
        });
        for _ in 0..2000 {
            let _ = place.inherit(SECOND, &[FIRST]);
            assert!(!is_link(&replacement), "a link was taken over");
            // What was taken over goes back, as if nothing had been.
            if fs::read_dir(&replacement).is_ok_and(|dir| dir.count() > 0) {
                moved += 1;
                let _ = renameat_with(CWD, &replacement, CWD, &data, RenameFlags::NOREPLACE);
            }
            place.dirs.build_alloc(SECOND).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(moved > 0, "nothing was ever taken over");
    place.assert_outside_untouched();
}
