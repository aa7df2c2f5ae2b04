//! Disks that go from node to node: packed on one, unpacked on another.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::sync::Arc;

use drover_core::ids::AllocId;
use drover_io_real::dirs::AllocDirs;
use drover_io_real::migrate::receive::{Limits, try_in};
use drover_io_real::migrate::snapshot;
use tempfile::TempDir;

const ALLOC: AllocId = AllocId(0xa);

fn owner(path: &Path) -> (u32, u32) {
    let found = fs::metadata(path).unwrap();
    (found.uid(), found.gid())
}

#[test]
fn directory_and_file_of_user_keep_their_owner_on_another_node() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: not root");
    }
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let dirs = AllocDirs::new(Arc::new(File::open(from.path()).unwrap().into()));
    dirs.build_alloc(ALLOC).unwrap();
    let tables = from.path().join(format!("{ALLOC}/alloc/data/tables"));
    fs::create_dir(&tables).unwrap();
    fs::set_permissions(&tables, fs::Permissions::from_mode(0o750)).unwrap();
    fs::write(tables.join("one"), "rows").unwrap();
    for path in [tables.join("one"), tables] {
        chown(path, Some(1234), Some(1235)).unwrap();
    }
    let mut archive = Vec::new();
    assert!(snapshot::write(&dirs, ALLOC, &[], &[], || Ok(()), &mut archive).unwrap());
    let into = File::open(to.path()).unwrap().into();
    try_in(into, &archive, Limits::default()).unwrap();
    let tables = to.path().join("alloc/data/tables");
    assert_eq!(owner(&tables.join("one")), (1234, 1235));
    assert_eq!(
        owner(&tables),
        (1234, 1235),
        "its user can make files there"
    );
    assert_eq!(fs::metadata(&tables).unwrap().mode() & 0o7777, 0o750);
}
