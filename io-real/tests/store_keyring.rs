//! Variables in the store: encrypted with keys that are somewhere else, and rotated.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use common::spoil;
use common::store::{bytes, commit};
use drover_core::model::variable::{Items, Variable, VariableKey, VariableMeta};
use drover_core::store::{Batch, Key, Record};
use drover_io_real::keyring::root::{CREDENTIAL, RootKey};
use drover_io_real::keyring::{KeyFacts, KeyId, KeyringError};
use drover_io_real::store::{Opened, Store, StoreError, StoreKeys};
use flate2::read::GzDecoder;
use tempfile::TempDir;

/// What nobody is to find on the disk. It has no runs that a compressor would change.
const SECRET: &str = "kQ7-never-to-be-read-Zx4";

fn key(path: &str) -> VariableKey {
    VariableKey {
        namespace: "default".into(),
        path: path.into(),
    }
}

fn put(path: &str, value: &str) -> (Key, Option<Record>) {
    let items = BTreeMap::from([("password".to_owned(), value.to_owned())]);
    let variable = Variable {
        meta: VariableMeta::default(),
        items: Items::new(items).unwrap(),
    };
    (
        Key::Variable(key(path)),
        Some(Record::Variable(Arc::new(variable))),
    )
}

fn put_all(store: &Store, count: usize, value: &str) {
    let batch: Batch = (0..count)
        .map(|n| put(&format!("nomad/jobs/job-{n}"), value))
        .collect();
    commit(store, 1, batch).unwrap();
}

/// How many variables can be read and have this value.
fn readable(opened: &Opened, value: &str) -> usize {
    let variables = opened.saved.variables.values();
    let with = |variable: &&Arc<Variable>| {
        let password = variable.items.get().get("password");
        password.is_some_and(|password| password.contains(value))
    };
    variables.filter(with).count()
}

/// Files in which the secret can be read.
fn leaks(dir: &Path) -> Vec<PathBuf> {
    let found = bytes(dir).into_iter().filter(|(_, bytes)| {
        let mut parts = bytes.windows(SECRET.len());
        parts.any(|part| part == SECRET.as_bytes())
    });
    found.map(|(path, _)| path).collect()
}

fn rotate(keys: &StoreKeys, full: bool) -> KeyFacts {
    let (done, made) = channel();
    keys.rotate(full, move |key| done.send(key).unwrap());
    made.recv().unwrap().unwrap()
}

fn remove(keys: &StoreKeys, key: KeyId) -> Result<(), KeyringError> {
    let (done, removed) = channel();
    keys.remove(key, move |result| done.send(result).unwrap());
    removed.recv().unwrap()
}

/// A root key from elsewhere, of these bytes.
fn root(bytes: &[u8]) -> Option<RootKey> {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join(CREDENTIAL), bytes).unwrap();
    RootKey::find(None, Some(dir.path())).unwrap()
}

#[test]
fn variable_is_nowhere_readable_on_disk() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    put_all(&store, 3, SECRET);
    put_all(&store, 2, &format!("{SECRET} again"));
    drop(store);
    assert_eq!(leaks(dir.path()), <Vec<PathBuf>>::new());
    let opened = Store::open(dir.path()).unwrap();
    assert!(opened.damaged.is_empty(), "{:?}", opened.damaged);
    assert_eq!(readable(&opened, SECRET), 3);
}

#[test]
fn keyring_is_its_owners_alone() {
    let dir = TempDir::new().unwrap();
    drop(Store::open(dir.path()).unwrap());
    let keyring = dir.path().join("keyring");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&keyring), 0o700);
    for file in bytes(&keyring).keys() {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
}

#[test]
fn variable_that_did_not_change_is_not_written_again() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    put_all(&store, 3, SECRET);
    let before = bytes(&dir.path().join("state"));
    put_all(&store, 3, SECRET);
    let after = bytes(&dir.path().join("state"));
    assert!(before == after, "the same variables were written twice");
}

#[test]
fn variables_of_0_1_0_are_encrypted_when_they_are_opened() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stores");
    let packed = fs::File::open(fixtures.join("0.1.0-first-names.tar.gz")).unwrap();
    let dir = TempDir::new().unwrap();
    tar::Archive::new(GzDecoder::new(packed))
        .unpack(dir.path())
        .unwrap();
    let opened = Store::open(dir.path()).unwrap();
    let (key, variable) = opened.saved.variables.first_key_value().unwrap();
    let text = serde_json::to_vec(&variable.items).unwrap();
    assert!(text.len() > 8, "{} has something", key.path);
    let (allocs, saved) = (opened.saved.allocs.clone(), opened.saved.variables.clone());
    drop(opened);
    for (file, bytes) in bytes(&dir.path().join("state")) {
        let found = bytes.windows(text.len()).any(|part| part == text);
        assert!(!found, "{} has the variable", file.display());
    }
    let again = Store::open(dir.path()).unwrap();
    assert_eq!(again.saved.variables, saved);
    assert_eq!(again.saved.allocs, allocs);
}

#[test]
fn value_under_another_name_is_not_opened() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    put_all(&store, 2, SECRET);
    drop(store);
    let name = |n: u32| format!("variable/default\0nomad/jobs/job-{n}");
    spoil::copy(&dir.path().join("state/records"), &name(0), &name(1));
    let opened = Store::open(dir.path()).unwrap();
    assert_eq!(opened.damaged.len(), 1, "{:?}", opened.damaged);
    assert_eq!(readable(&opened, SECRET), 1);
}

#[test]
fn wrong_root_key_is_refused_and_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let first = root(&[1; 32]);
    let store = Store::open_with(dir.path(), false, first).unwrap().store;
    put_all(&store, 2, SECRET);
    drop(store);
    assert!(!dir.path().join("keyring/root").exists());
    let before = bytes(dir.path());
    for wrong in [root(&[2; 32]), None] {
        let refused = Store::open_with(dir.path(), false, wrong).map(|_| ());
        let Err(StoreError::Keyring(error)) = refused else {
            panic!("{refused:?}");
        };
        assert!(error.to_string().contains("does not open"), "{error}");
        assert!(bytes(dir.path()) == before, "something was changed");
    }
    let opened = Store::open_with(dir.path(), false, root(&[1; 32])).unwrap();
    assert_eq!(readable(&opened, SECRET), 2);
}

#[test]
fn root_key_moves_out_of_the_data_directory() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    put_all(&store, 2, SECRET);
    drop(store);
    assert!(dir.path().join("keyring/root").exists());
    drop(Store::open_with(dir.path(), false, root(&[1; 32])).unwrap());
    assert!(!dir.path().join("keyring/root").exists());
    let opened = Store::open_with(dir.path(), false, root(&[1; 32])).unwrap();
    assert_eq!(readable(&opened, SECRET), 2);
}

#[test]
fn rotated_key_encrypts_what_is_new_and_full_rotation_everything() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    let keys = store.keys();
    put_all(&store, 200, SECRET);
    let first = keys.list()[0].id;
    let second = rotate(&keys, false).id;
    assert!(matches!(
        remove(&keys, second),
        Err(KeyringError::Active(_))
    ));
    match remove(&keys, first) {
        Err(KeyringError::Used(_, 200)) => {}
        other => panic!("{other:?}"),
    }
    let third = rotate(&keys, true).id;
    for old in [first, second] {
        remove(&keys, old).unwrap();
    }
    assert!(matches!(
        remove(&keys, first),
        Err(KeyringError::Unknown(_))
    ));
    let left: Vec<KeyId> = keys.list().iter().map(|key| key.id).collect();
    assert_eq!(left, [third]);
    drop(store);
    let opened = Store::open(dir.path()).unwrap();
    assert!(opened.damaged.is_empty(), "{:?}", opened.damaged);
    assert_eq!(readable(&opened, SECRET), 200);
    assert!(opened.store.keys().list()[0].active);
}

#[test]
fn variable_whose_key_is_gone_costs_only_itself() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    put_all(&store, 2, SECRET);
    let old = store.keys().list()[0].id;
    rotate(&store.keys(), false);
    commit(&store, 2, Batch::from_iter([put("nomad/jobs/new", SECRET)])).unwrap();
    drop(store);
    fs::remove_file(dir.path().join(format!("keyring/{old}.key"))).unwrap();
    let opened = Store::open(dir.path()).unwrap();
    assert_eq!(readable(&opened, SECRET), 1);
    assert_eq!(opened.damaged.len(), 2, "{:?}", opened.damaged);
    assert!(opened.damaged[0].contains(&old.to_string()));
}

#[test]
fn rotation_that_was_cut_short_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    put_all(&store, 3, SECRET);
    rotate(&store.keys(), true);
    drop(store);
    let keyring = dir.path().join("keyring");
    let active = fs::read(keyring.join("active")).unwrap();
    // An agent that died: a key that nobody named yet, and files that are not whole.
    fs::write(keyring.join("active.new"), &active[..7]).unwrap();
    fs::write(keyring.join("x.key.new"), b"{").unwrap();
    let opened = Store::open(dir.path()).unwrap();
    assert_eq!(readable(&opened, SECRET), 3);
    assert_eq!(fs::read(keyring.join("active")).unwrap(), active);
}

#[test]
fn root_key_that_cannot_be_one_is_refused_in_words() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("root.key");
    let find = || RootKey::find(Some(&file), None).map(|_| ());
    let words = |found: Result<(), KeyringError>| found.unwrap_err().to_string();
    assert!(words(find()).contains("root.key"));
    fs::write(&file, [7; 32]).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(words(find()).contains("chmod 0600"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    find().unwrap();
    fs::write(&file, [7; 31]).unwrap();
    assert!(words(find()).contains("31 bytes"));
    fs::write(&file, [7; 5000]).unwrap();
    assert!(words(find()).contains("more than 4096"));
    assert!(RootKey::find(None, Some(dir.path())).unwrap().is_none());
}
