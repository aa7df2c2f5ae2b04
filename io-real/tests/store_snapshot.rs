//! The state as one file: saved while its agent runs, restored whole or not at all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use common::store::{alloc, allocs, bytes, commit, filled, names};
use drover_core::model::variable::{Items, Variable, VariableKey, VariableMeta};
use drover_core::store::{Batch, Key, Record};
use drover_io_real::data_dir::DataDir;
use drover_io_real::store::{Opened, Snapshot, SnapshotError, Store, StoreError, stage};
use tempfile::TempDir;

/// What nobody is to find in a snapshot. It has no runs that a compressor would change.
const SECRET: &str = "kQ7-never-to-be-read-Zx4";

fn variable(value: &str) -> (Key, Option<Record>) {
    let key = VariableKey {
        namespace: "default".into(),
        path: "nomad/jobs/web".into(),
    };
    let items = BTreeMap::from([("password".to_owned(), value.to_owned())]);
    let variable = Variable {
        meta: VariableMeta::default(),
        items: Items::new(items).unwrap(),
    };
    (
        Key::Variable(key),
        Some(Record::Variable(Arc::new(variable))),
    )
}

fn taken(store: &Store) -> Vec<u8> {
    let (done, made) = channel();
    store
        .keys()
        .snapshot(move |bytes| done.send(bytes).unwrap());
    made.recv().unwrap().unwrap()
}

/// A directory with an allocation and a variable of secret contents, and a snapshot of it.
fn saved() -> (TempDir, Vec<u8>) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    let batch: Batch = [alloc(1, SECRET), variable(SECRET)].into();
    commit(&store, 1, batch).unwrap();
    let bytes = taken(&store);
    (dir, bytes)
}

/// A directory without a state, with the root key of another.
fn machine_with_root_of(dir: &Path) -> TempDir {
    let new = TempDir::new().unwrap();
    fs::create_dir(new.path().join("keyring")).unwrap();
    fs::copy(dir.join("keyring/root"), new.path().join("keyring/root")).unwrap();
    new
}

fn staged(dir: &Path, snapshot: &[u8]) {
    let data_dir = DataDir::open(dir).unwrap();
    stage(&data_dir, snapshot, true).unwrap();
}

fn has_all(opened: &Opened) {
    assert!(opened.damaged.is_empty(), "{:?}", opened.damaged);
    assert_eq!(names(&opened.saved), [SECRET]);
    let variables: Vec<_> = opened.saved.variables.values().collect();
    assert_eq!(variables.len(), 1);
    assert_eq!(variables[0].items.get()["password"], SECRET);
}

fn refused(opened: Result<Opened, StoreError>) -> SnapshotError {
    match opened {
        Err(StoreError::Restore(_, why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was restored"),
    }
}

#[test]
fn saved_state_is_restored_on_another_machine() {
    let (dir, snapshot) = saved();
    let new = machine_with_root_of(dir.path());
    drop(dir);
    staged(new.path(), &snapshot);
    let opened = Store::open(new.path()).unwrap();
    assert!(opened.restored && opened.lossy);
    has_all(&opened);
    commit(&opened.store, 1, allocs(5..6, "later")).unwrap();
    drop(opened);
    let again = Store::open(new.path()).unwrap();
    assert!(!again.restored, "it is restored once");
    assert_eq!(names(&again.saved), [SECRET, "later"]);
}

#[test]
fn snapshot_is_of_one_commit_and_its_agent_goes_on() {
    let dir = filled();
    let store = Store::open(dir.path()).unwrap().store;
    let first = taken(&store);
    commit(&store, 21, allocs(50..60, "more")).unwrap();
    let second = taken(&store);
    let (first, second) = (
        Snapshot::read(&first).unwrap(),
        Snapshot::read(&second).unwrap(),
    );
    assert_eq!(second.about.commit, first.about.commit + 1);
    assert_eq!((first.about.records, second.about.records), (50, 60));
    assert_eq!(second.kinds()["alloc"].count, 60);
}

#[test]
fn snapshot_without_root_key_is_unreadable() {
    let (dir, snapshot) = saved();
    let root = fs::read(dir.path().join("keyring/root")).unwrap();
    for secret in [SECRET.as_bytes(), &root, b"password"] {
        let found = snapshot.windows(secret.len()).any(|part| part == secret);
        assert!(!found, "{}", secret.escape_ascii());
    }
    // Another root key: nothing is restored, and nothing was changed.
    let other = TempDir::new().unwrap();
    let store = Store::open(other.path()).unwrap().store;
    commit(&store, 1, allocs(7..8, "own")).unwrap();
    let before = bytes(other.path());
    let outcome = store.keys().restore(other.path(), &snapshot);
    assert!(
        matches!(outcome, Err(SnapshotError::Locked(_))),
        "{outcome:?}"
    );
    assert!(before == bytes(other.path()));
    drop(store);
    staged(other.path(), &snapshot);
    let why = refused(Store::open(other.path()));
    assert!(matches!(why, SnapshotError::Locked(_)), "{why}");
    fs::remove_dir_all(other.path().join("restore")).unwrap();
    assert_eq!(names(&Store::open(other.path()).unwrap().saved), ["own"]);
    // No root key at all.
    let bare = TempDir::new().unwrap();
    staged(bare.path(), &snapshot);
    let why = refused(Store::open(bare.path()));
    assert!(matches!(why, SnapshotError::NoRoot), "{why}");
}

#[test]
fn changed_snapshot_is_refused() {
    let (dir, snapshot) = saved();
    let store = Store::open(dir.path()).unwrap().store;
    let before = bytes(dir.path());
    let is_refused = |bytes: &[u8], how: &str| {
        let outcome = store.keys().restore(dir.path(), bytes);
        assert!(outcome.is_err(), "{how}");
    };
    for at in 0..snapshot.len() {
        let mut bytes = snapshot.clone();
        bytes[at] ^= 1 << (at % 8);
        is_refused(&bytes, &format!("byte {at}"));
        is_refused(&snapshot[..at], &format!("cut at {at}"));
    }
    is_refused(&[snapshot.as_slice(), b"x"].concat(), "something behind it");
    is_refused(b"", "nothing");
    is_refused(b"drover snapshot\n", "the beginning alone");
    let read = |bytes: &[u8]| Snapshot::read(bytes).err();
    assert!(matches!(
        read(b"\x1f\x8b of Nomad"),
        Some(SnapshotError::Foreign)
    ));
    let mut newer = snapshot.clone();
    newer[16] = 2;
    assert!(matches!(read(&newer), Some(SnapshotError::Newer(2))));
    assert!(before == bytes(dir.path()), "something was changed");
}

#[test]
fn restored_state_replaces_the_present_one_and_keeps_it_beside() {
    let (dir, snapshot) = saved();
    let store = Store::open(dir.path()).unwrap().store;
    for round in 2..40 {
        commit(&store, round, allocs(2..9, &format!("later {round}"))).unwrap();
    }
    store.keys().restore(dir.path(), &snapshot).unwrap();
    // Until the agent ends, its state is the present one.
    commit(&store, 40, allocs(9..10, "last")).unwrap();
    drop(store);
    let opened = Store::open(dir.path()).unwrap();
    assert!(
        opened.restored && opened.lossy,
        "it is earlier than what was acknowledged"
    );
    has_all(&opened);
    drop(opened);
    // Back to what was there.
    fs::remove_dir_all(dir.path().join("state/records")).unwrap();
    let aside = dir.path().join("state.before-restore/before");
    fs::rename(aside, dir.path().join("state/records")).unwrap();
    let back = Store::open_with(dir.path(), true, None).unwrap();
    assert_eq!(names(&back.saved).len(), 9);
}

#[test]
fn state_that_is_there_is_not_replaced_unasked() {
    let (dir, snapshot) = saved();
    let data_dir = DataDir::open(dir.path()).unwrap();
    let outcome = stage(&data_dir, &snapshot, false);
    assert!(
        matches!(outcome, Err(SnapshotError::NotEmpty)),
        "{outcome:?}"
    );
    assert!(!dir.path().join("restore").exists());
    let new = TempDir::new().unwrap();
    let data_dir = DataDir::open(new.path()).unwrap();
    stage(&data_dir, &snapshot, false).unwrap();
}

/// What `apply` leaves at each point at which it may be interrupted.
#[test]
fn interrupted_restore_goes_on_at_the_next_start() {
    let (dir, snapshot) = saved();
    let restored = machine_with_root_of(dir.path());
    staged(restored.path(), &snapshot);
    drop(Store::open(restored.path()).unwrap());
    let finished = restored.path().join("state/records");

    let again = |prepare: &dyn Fn(&Path)| {
        let dir = machine_with_root_of(dir.path());
        let store = Store::open(dir.path()).unwrap().store;
        commit(&store, 1, allocs(7..8, "before")).unwrap();
        drop(store);
        prepare(dir.path());
        let opened = Store::open(dir.path()).unwrap();
        let found = names(&opened.saved).join(",");
        let left = dir.path().join("restore").exists() || dir.path().join("restore.new").exists();
        assert!(!left, "something is left of it");
        found
    };
    let copy = |to: &Path| {
        let copied = std::process::Command::new("cp")
            .arg("-a")
            .args([finished.as_path(), to])
            .status();
        assert!(copied.unwrap().success());
    };
    // While it was handed in: nothing was promised.
    let found = again(&|dir| {
        fs::create_dir(dir.join("restore.new")).unwrap();
        fs::write(dir.join("restore.new/snapshot"), &snapshot[..50]).unwrap();
    });
    assert_eq!(found, "before");
    // While the database was made.
    let found = again(&|dir| {
        staged(dir, &snapshot);
        fs::create_dir(dir.join("restore/records")).unwrap();
        fs::write(dir.join("restore/records/db"), "half").unwrap();
    });
    assert_eq!(found, SECRET);
    // When the present one was moved away.
    let found = again(&|dir| {
        staged(dir, &snapshot);
        copy(&dir.join("restore/records"));
        fs::rename(dir.join("state/records"), dir.join("restore/before")).unwrap();
        fs::write(
            dir.join("last-commit"),
            fs::read(restored.path().join("last-commit")).unwrap(),
        )
        .unwrap();
    });
    assert_eq!(found, SECRET);
    // When the new one was in its place.
    let found = again(&|dir| {
        staged(dir, &snapshot);
        fs::rename(dir.join("state/records"), dir.join("restore/before")).unwrap();
        copy(&dir.join("state/records"));
        fs::write(
            dir.join("last-commit"),
            fs::read(restored.path().join("last-commit")).unwrap(),
        )
        .unwrap();
    });
    assert_eq!(found, SECRET);
}
