//! Links to host volumes in the directories of tasks, which the tasks may fill with whatever they like.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use drover_core::ids::AllocId;
use drover_io_real::dirs::AllocDirs;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

const ALLOC: AllocId = AllocId(0x0701);

/// The directory of a task, a volume, and something that is neither.
struct Place {
    dirs: AllocDirs,
    task: PathBuf,
    volume: PathBuf,
    outside: PathBuf,
    _dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["alloc", "volume", "outside"] {
            fs::create_dir(at(name)).unwrap();
        }
        let handle: OwnedFd = File::open(at("alloc")).unwrap().into();
        let dirs = AllocDirs::new(Arc::new(handle));
        dirs.build_alloc(ALLOC).unwrap();
        dirs.build_task(ALLOC, "web", None).unwrap();
        Place {
            dirs,
            task: at("alloc").join(ALLOC.to_string()).join("web"),
            volume: at("volume"),
            outside: at("outside"),
            _dir: dir,
        }
    }

    fn link(&self, path: &str) -> std::io::Result<()> {
        let target = self.volume.to_str().unwrap();
        self.dirs.link(ALLOC, "web", path, target)
    }

    fn assert_linked(&self, path: &str) {
        assert_eq!(fs::read_link(self.task.join(path)).unwrap(), self.volume);
    }

    fn assert_outside_untouched(&self) {
        assert_eq!(fs::read_dir(&self.outside).unwrap().count(), 0);
    }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn link_is_made_with_directories_on_the_way() {
    let place = Place::new();
    for path in ["data", "var/lib/db", "local/own"] {
        place.link(path).unwrap();
        place.assert_linked(path);
        place.link(path).unwrap();
        place.assert_linked(path);
    }
    assert_eq!(names(&place.task.join("var/lib")), ["db"]);
    // Removing the task's directory leaves the volume alone.
    fs::write(place.volume.join("file"), "precious").unwrap();
    place.dirs.remove(ALLOC).unwrap();
    assert_eq!(names(&place.volume), ["file"]);
}

#[test]
fn link_of_task_in_its_place_is_replaced_and_not_followed() {
    let place = Place::new();
    symlink(&place.outside, place.task.join("data")).unwrap();
    symlink(&place.outside, place.task.join(".data.rendering")).unwrap();
    place.link("data").unwrap();
    place.assert_linked("data");
    assert!(!names(&place.task).contains(&".data.rendering".to_owned()));
    place.assert_outside_untouched();
}

#[test]
fn link_on_the_way_is_an_error() {
    let place = Place::new();
    symlink(&place.outside, place.task.join("var")).unwrap();
    assert!(place.link("var/db").is_err());
    place.assert_outside_untouched();
}

#[test]
fn file_or_directory_in_its_place_is_an_error_and_stays() {
    let place = Place::new();
    fs::create_dir(place.task.join("data")).unwrap();
    fs::write(place.task.join("file"), "mine").unwrap();
    for path in ["data", "file"] {
        let why = place.link(path).unwrap_err().to_string();
        assert!(why.contains("something else is there already"), "{why}");
    }
    assert!(place.task.join("data").is_dir());
    assert_eq!(fs::read(place.task.join("file")).unwrap(), b"mine");
}

/// A task exchanges the directory on the way for a link that leads out, as fast as it can.
#[test]
fn race_on_the_way_never_leads_out() {
    let place = Place::new();
    let over = AtomicBool::new(false);
    let way = place.task.join("var");
    let mut made = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = fs::remove_dir_all(&way);
                let _ = symlink(&place.outside, &way);
                let _ = fs::remove_file(&way);
                let _ = fs::create_dir(&way);
            }
        });
        for _ in 0..2_000 {
            made += usize::from(place.link("var/db").is_ok());
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(made > 0, "no link was ever made");
    place.assert_outside_untouched();
}
