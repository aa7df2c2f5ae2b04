//! Commits, and what they left.

use drover_core::ids::AllocId;
use drover_core::store::record::AllocRecord;
use drover_core::store::{Batch, CommitId, Key, Record, Saved};
use drover_io_real::store::Store;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use tempfile::TempDir;

pub fn alloc(number: u128, name: &str) -> (Key, Option<Record>) {
    let record = AllocRecord {
        id: AllocId(number),
        name: name.into(),
        ..AllocRecord::default()
    };
    (Key::Alloc(record.id), Some(Record::Alloc(Arc::new(record))))
}

pub fn allocs(numbers: std::ops::Range<u128>, name: &str) -> Batch {
    numbers.map(|number| alloc(number, name)).collect()
}

pub fn commit(store: &Store, id: u64, batch: Batch) -> Result<(), String> {
    let (done, answer) = channel();
    store.commit(
        CommitId(id),
        std::sync::Arc::new(batch),
        move |id, result| {
            done.send((id, result)).unwrap();
        },
    );
    let (answered, result) = answer.recv().unwrap();
    assert_eq!(answered, CommitId(id));
    result
}

pub fn saved(dir: &Path) -> Saved {
    let opened = Store::open(dir).unwrap();
    assert!(opened.damaged.is_empty());
    opened.saved
}

pub fn names(saved: &Saved) -> Vec<&str> {
    saved.allocs.values().map(|alloc| &*alloc.name).collect()
}

/// All files below a directory with their content.
pub fn bytes(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(bytes(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

pub fn filled() -> TempDir {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    for round in 0..20 {
        let name = format!("round {round} {}", "x".repeat(500));
        commit(&store, round + 1, allocs(0..50, &name)).unwrap();
    }
    dir
}
