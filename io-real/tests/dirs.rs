//! Allocation directories: made, opened and removed without ever leaving them.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::disk::Disk;
use common::is_root;
use drover_core::ids::AllocId;
use drover_io_real::dirs::AllocDirs;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat_with};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

const ALLOC: AllocId = AllocId(0xa110c);

/// Allocations beside something that must not be touched.
struct TaskPath {
    dirs: AllocDirs,
    root: PathBuf,
    outside: PathBuf,
    _dir: TempDir,
}

impl TaskPath {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let (root, outside) = (dir.path().join("alloc"), dir.path().join("outside"));
        fs::create_dir(&root).unwrap();
        for inner in ["data", "alloc/data", "local", "secrets"] {
            fs::create_dir_all(outside.join(inner)).unwrap();
            fs::write(outside.join(inner).join("file"), "precious").unwrap();
        }
        fs::set_permissions(&outside, Permissions::from_mode(0o711)).unwrap();
        let handle: OwnedFd = File::open(&root).unwrap().into();
        Self {
            dirs: AllocDirs::new(Arc::new(handle)),
            root,
            outside,
            _dir: dir,
        }
    }

    fn own(&self) -> PathBuf {
        self.root.join(ALLOC.to_string())
    }

    fn built() -> Self {
        let place = Self::new();
        place.dirs.build_alloc(ALLOC).unwrap();
        place.dirs.build_task(ALLOC, "web", None).unwrap();
        place
    }

    fn assert_outside_untouched(&self) {
        assert_eq!(mode(&self.outside), 0o711);
        for inner in ["data", "alloc/data", "local", "secrets"] {
            let dir = self.outside.join(inner);
            assert_eq!(mode(&dir), mode(&self.outside.join("data")));
            let me = rustix::process::geteuid().as_raw();
            assert_eq!(fs::metadata(&dir).unwrap().uid(), me);
            assert_eq!(fs::read(dir.join("file")).unwrap(), b"precious");
            assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        }
    }

    fn assert_removed(&self) {
        self.dirs.remove(ALLOC).unwrap();
        assert_eq!(fs::read_dir(&self.root).unwrap().count(), 0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn alloc_dirs_match_nomad() {
    let place = TaskPath::built();
    let own = place.own();
    let expected = [
        ("", 0o755),
        ("alloc", 0o777),
        ("alloc/data", 0o777),
        ("alloc/logs", 0o1777),
        ("alloc/tmp", 0o1777),
        ("web", 0o777),
        ("web/local", 0o777),
        ("web/secrets", 0o700),
        ("web/tmp", 0o1777),
    ];
    for (path, expected) in expected {
        assert_eq!(mode(&own.join(path)), expected, "{path}");
        place.dirs.open(ALLOC, path).unwrap();
    }
    if is_root() {
        place
            .dirs
            .build_task(ALLOC, "own", Some((1234, 1235)))
            .unwrap();
        let secrets = fs::metadata(own.join("own/secrets")).unwrap();
        assert_eq!((secrets.uid(), secrets.gid()), (1234, 1235));
        assert_eq!(mode(&own.join("own/secrets")), 0o700);
    }
    place.assert_removed();
    place.dirs.remove(ALLOC).unwrap();
}

#[test]
fn symlink_in_place_of_directory_is_refused() {
    for at in [
        "",
        "alloc",
        "alloc/data",
        "alloc/logs",
        "web",
        "web/local",
        "web/secrets",
    ] {
        let place = TaskPath::built();
        // Without a slash at the end.
        let link: PathBuf = place.own().join(at).components().collect();
        fs::remove_dir_all(&link).unwrap();
        symlink(&place.outside, &link).unwrap();
        let built = place.dirs.build_alloc(ALLOC);
        let built = built.and_then(|()| place.dirs.build_task(ALLOC, "web", None));
        assert!(built.is_err(), "{at}: a link was followed");
        assert!(place.dirs.open(ALLOC, at).is_err(), "{at}");
        assert!(
            place.dirs.open(ALLOC, &format!("{at}/data")).is_err(),
            "{at}"
        );
        place.assert_removed();
        place.assert_outside_untouched();
    }
}

#[test]
fn paths_lead_nowhere_else() {
    let place = TaskPath::built();
    for path in ["..", "../..", "/", "/etc", "alloc/../..", "alloc/../../.."] {
        assert!(place.dirs.open(ALLOC, path).is_err(), "{path}");
    }
    place.dirs.open(ALLOC, "alloc/../web").unwrap();
}

#[test]
fn path_swapped_for_symlink_is_not_followed() {
    let place = TaskPath::built();
    let stop = AtomicBool::new(false);
    let spare = place.root.join("spare");
    symlink(&place.outside, &spare).unwrap();
    let targets = [
        ("alloc", "data"),
        ("", "web"),
        ("web", "local"),
        ("", "alloc"),
    ];
    // By the handle of what is around it: by its path, this would reach outside through a link.
    let swap = |(around, name): (&str, &str)| {
        let Ok(around) = place.dirs.open(ALLOC, around) else {
            return;
        };
        let _ = renameat_with(around, name, CWD, &spare, RenameFlags::EXCHANGE);
    };
    let mut built = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for target in targets {
                    swap(target);
                    swap(target);
                }
            }
        });
        for round in 0..300 {
            built += usize::from(place.dirs.build_alloc(ALLOC).is_ok());
            let _ = place.dirs.build_task(ALLOC, "web", None);
            let _ = place.dirs.open(ALLOC, "alloc/data");
            if round % 3 == 2 {
                let _ = place.dirs.remove(ALLOC);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(built > 0, "nothing was ever built");
    place.assert_outside_untouched();
}

#[test]
fn concurrent_builds_make_one_alloc_dir() {
    let place = TaskPath::new();
    let task = |number: usize| format!("task{}", number % 3);
    for _ in 0..20 {
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (dirs, task) = (&place.dirs, task(number));
                scope.spawn(move || {
                    dirs.build_alloc(ALLOC).unwrap();
                    dirs.build_task(ALLOC, &task, None).unwrap();
                    dirs.open(ALLOC, &format!("{task}/local")).unwrap();
                });
            }
        });
        for number in 0..3 {
            assert_eq!(mode(&place.own().join(task(number)).join("tmp")), 0o1777);
        }
        // Removed by several, too.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| place.dirs.remove(ALLOC).unwrap());
            }
        });
        assert_eq!(fs::read_dir(&place.root).unwrap().count(), 0);
    }
}

/// Makes directories below one another, deeper than any path may be long.
fn deep(at: &Path, levels: u32) {
    let mut dir: OwnedFd = File::open(at).unwrap().into();
    for level in 0..levels {
        rustix::fs::mkdirat(&dir, "d", Mode::RWXU).unwrap();
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        if level % 100 == 0 {
            openat(&dir, "file", flags, Mode::RUSR).unwrap();
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        dir = openat(&dir, "d", flags, Mode::empty()).unwrap();
    }
}

#[test]
fn deep_trees_are_removed() {
    let place = TaskPath::built();
    deep(&place.own().join("web/local"), 2000);
    deep(&place.own().join("alloc/data"), 70);
    // As an agent that died while it removed leaves it, or a task that knows how we do it.
    fs::create_dir(place.own().join(".removing-0")).unwrap();
    fs::write(place.own().join(".removing-1"), "").unwrap();
    place.assert_removed();
}

#[test]
fn many_files_are_removed() {
    let place = TaskPath::built();
    for number in 0..10_000 {
        let dir = place
            .own()
            .join("alloc/data")
            .join((number % 7).to_string());
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(number.to_string()), "").unwrap();
    }
    place.assert_removed();
}

#[test]
fn directories_without_rights_are_removed() {
    let place = TaskPath::built();
    let data = place.own().join("alloc/data");
    for bits in [0o000, 0o100, 0o300, 0o400, 0o500] {
        let dir = data.join(format!("{bits:o}"));
        fs::create_dir_all(dir.join("inner")).unwrap();
        fs::write(dir.join("inner/file"), "").unwrap();
        fs::set_permissions(dir.join("inner"), Permissions::from_mode(bits)).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(bits)).unwrap();
    }
    place.assert_removed();
}

#[test]
fn files_of_every_kind_and_name_are_removed() {
    let place = TaskPath::built();
    let data = place.own().join("alloc/data");
    let names: [&[u8]; 5] = [
        b"new\nline",
        &[b'x'; 255],
        b"\xff\xfe not utf-8",
        b" ",
        b"-rf *",
    ];
    for name in names {
        fs::write(data.join(OsStr::from_bytes(name)), "").unwrap();
        let dir = place.own().join("alloc/tmp").join(OsStr::from_bytes(name));
        fs::create_dir_all(dir.join(OsStr::from_bytes(name))).unwrap();
    }
    // Another name of a file elsewhere, and links to what is elsewhere or nowhere.
    fs::hard_link(place.outside.join("data/file"), data.join("hard")).unwrap();
    symlink(&place.outside, data.join("link")).unwrap();
    symlink("loop", data.join("loop")).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(CWD, data.join("fifo"), mode).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(data.join("socket")).unwrap();
    if is_root() {
        for (name, kind) in [
            ("char", rustix::fs::FileType::CharacterDevice),
            ("block", rustix::fs::FileType::BlockDevice),
        ] {
            rustix::fs::mknodat(CWD, data.join(name), kind, mode, 0).unwrap();
        }
    }
    place.assert_removed();
    place.assert_outside_untouched();
}

#[test]
fn mounted_file_system_is_kept_and_reported() {
    for at in ["web/local/mount", "alloc/data"] {
        let place = TaskPath::built();
        let point = place.own().join(at);
        fs::create_dir_all(&point).unwrap();
        let Some(disk) = Disk::mount(&point, "64k") else {
            return;
        };
        fs::write(point.join("file"), "precious").unwrap();
        fs::write(place.own().join("web/local/other"), "").unwrap();
        assert!(place.dirs.open(ALLOC, at).is_err());
        for _ in 0..2 {
            let error = place.dirs.remove(ALLOC).unwrap_err().to_string();
            assert!(error.contains("mounted") && error.contains(at), "{error}");
        }
        assert_eq!(fs::read(point.join("file")).unwrap(), b"precious");
        assert!(!place.own().join("web/local/other").exists());
        drop(disk);
        place.assert_removed();
    }
}

#[test]
fn file_in_place_of_a_directory_is_reported_and_removed() {
    let place = TaskPath::new();
    fs::write(place.own(), "").unwrap();
    assert!(place.dirs.build_alloc(ALLOC).is_err());
    place.assert_removed();
}

#[test]
fn disk_usage_is_measured() {
    let place = TaskPath::new();
    let Some(disk) = Disk::mount(&place.root, "1m,nr_inodes=50") else {
        return;
    };
    let handle: OwnedFd = File::open(&place.root).unwrap().into();
    let dirs = AllocDirs::new(Arc::new(handle));
    assert_eq!(dirs.disk_usage().unwrap().disk_percent, 0);
    fs::write(place.root.join("half"), vec![1; 512 * 1024]).unwrap();
    assert_eq!(dirs.disk_usage().unwrap().disk_percent, 50);
    let _ = fs::write(place.root.join("rest"), vec![1; 1024 * 1024]);
    assert_eq!(dirs.disk_usage().unwrap().disk_percent, 100);
    fs::remove_file(place.root.join("rest")).unwrap();
    let before = dirs.disk_usage().unwrap().inode_percent;
    for number in 0.. {
        if File::create(place.root.join(format!("f{number}"))).is_err() {
            break;
        }
    }
    let after = dirs.disk_usage().unwrap().inode_percent;
    assert!(before < 100 && after == 100, "{before} % before, {after} %");
    drop(disk);
}
