use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use super::*;

fn open(path: &Path) -> OwnedFd {
    fs::create_dir_all(path).unwrap();
    File::open(path).unwrap().into()
}

/// What was fetched, where it goes, and what must stay as it is.
struct Rig {
    dir: TempDir,
}

impl Rig {
    fn new() -> Rig {
        let rig = Rig {
            dir: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(rig.at("from")).unwrap();
        fs::create_dir_all(rig.at("alloc/web/local")).unwrap();
        fs::create_dir_all(rig.at("outside")).unwrap();
        fs::write(rig.at("outside/file"), "untouched").unwrap();
        rig
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join(path)
    }

    fn check(&self) -> Result<(), String> {
        let checked = check(&open(&self.at("from")), None);
        checked.map_err(|error| error.to_string())
    }

    fn merge(&self) -> Result<(), String> {
        let moved = merge(&open(&self.at("from")), &open(&self.at("alloc/web/local")));
        moved.map_err(|error| error.to_string())
    }

    #[track_caller]
    fn is_untouched(&self) {
        assert_eq!(fs::read(self.at("outside/file")).unwrap(), b"untouched");
        assert_eq!(fs::read_dir(self.at("outside")).unwrap().count(), 1);
    }
}

#[test]
fn install_replaces_existing_and_keeps_rest() {
    let rig = Rig::new();
    fs::create_dir_all(rig.at("from/both")).unwrap();
    fs::create_dir_all(rig.at("from/new/deep")).unwrap();
    fs::create_dir_all(rig.at("alloc/web/local/both")).unwrap();
    fs::write(rig.at("from/both/f"), "fetched").unwrap();
    fs::write(rig.at("from/new/deep/f"), "fetched").unwrap();
    fs::write(rig.at("alloc/web/local/both/f"), "old").unwrap();
    fs::write(rig.at("alloc/web/local/both/own"), "mine").unwrap();
    symlink(rig.at("outside/file"), rig.at("alloc/web/local/l")).unwrap();
    fs::write(rig.at("from/l"), "fetched").unwrap();
    fs::set_permissions(rig.at("from/l"), fs::Permissions::from_mode(0o6777)).unwrap();
    rig.check().unwrap();
    rig.merge().unwrap();
    for (path, text) in [
        ("both/f", "fetched"),
        ("both/own", "mine"),
        ("new/deep/f", "fetched"),
        ("l", "fetched"),
    ] {
        let path = rig.at("alloc/web/local").join(path);
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{path:?}");
    }
    let mode = fs::metadata(rig.at("alloc/web/local/l"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o7777, 0o755);
    rig.is_untouched();
}

#[test]
fn harmful_entries_are_not_installed() {
    type Plant = (&'static str, fn(&Rig));
    let plant: [Plant; 5] = [
        ("leads out", |rig| {
            symlink("/etc/passwd", rig.at("from/x")).unwrap()
        }),
        ("leads out", |rig| {
            symlink("../outside", rig.at("from/x")).unwrap()
        }),
        ("several names", |rig| {
            fs::hard_link(rig.at("outside/file"), rig.at("from/x")).unwrap();
        }),
        ("neither a file", |rig| {
            let mode = rustix::fs::Mode::from_raw_mode(0o644);
            let kind = FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, rig.at("from/x"), kind, mode, 0).unwrap();
        }),
        ("too deep", |rig| {
            let deep = vec!["d"; MAX_DEPTH + 2].join("/");
            fs::create_dir_all(rig.at("from").join(deep)).unwrap();
        }),
    ];
    for (expected, plant) in plant {
        let rig = Rig::new();
        plant(&rig);
        let why = rig.check().unwrap_err();
        assert!(why.contains(expected), "{why}");
        rig.is_untouched();
    }
}

#[test]
fn destination_through_symlink_is_refused() {
    let rig = Rig::new();
    symlink(rig.at("outside"), rig.at("alloc/web/local/l")).unwrap();
    let top = open(&rig.at("alloc"));
    for path in ["web/local/l", "web/local/l/x"] {
        let why = make_dirs(&top, path, None).unwrap_err().to_string();
        assert!(why.contains("is a link or a file"), "{why}");
    }
    assert!(make_dirs(&top, "web/local/../../x", None).is_err());
    fs::create_dir(rig.at("from/l")).unwrap();
    fs::write(rig.at("from/l/f"), "fetched").unwrap();
    assert!(rig.merge().unwrap_err().contains("is a link or a file"));
    make_dirs(&top, "web/local/a/b", None).unwrap();
    assert!(rig.at("alloc/web/local/a/b").is_dir());
    rig.is_untouched();
}

#[test]
fn directory_is_not_replaced_by_a_file() {
    let rig = Rig::new();
    fs::create_dir(rig.at("alloc/web/local/x")).unwrap();
    fs::write(rig.at("from/x"), "fetched").unwrap();
    assert!(
        rig.merge()
            .unwrap_err()
            .contains("its destination is a directory")
    );
    let from = open(&rig.at("from"));
    let into = open(&rig.at("alloc/web/local"));
    let name = |name: &str| CString::new(name).unwrap();
    move_file(&from, &name("x"), &into, &name("y")).unwrap();
    assert_eq!(fs::read(rig.at("alloc/web/local/y")).unwrap(), b"fetched");
}

#[test]
fn copy_equals_move() {
    let rig = Rig::new();
    fs::write(rig.at("from/x"), "fetched").unwrap();
    symlink("x", rig.at("from/l")).unwrap();
    let from = open(&rig.at("from"));
    let into = open(&rig.at("alloc/web/local"));
    for name in ["x", "l"] {
        let name = CString::new(name).unwrap();
        copy_file(&from, &name, &into, &name).unwrap();
    }
    assert_eq!(fs::read(rig.at("alloc/web/local/l")).unwrap(), b"fetched");
    assert_eq!(fs::read_dir(rig.at("alloc/web/local")).unwrap().count(), 2);
}
