//! The store: what was acknowledged is there, and what is damaged is reported and left alone.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::store::{alloc, allocs, bytes, commit, filled, names, saved};
use drover_core::ids::{AllocId, GroupName, JobKey, NodeId};
use drover_core::model::job::Job;
use drover_core::store::copies::Copies;
use drover_core::store::record::{JobRecord, TaskRecord};
use drover_core::store::{Batch, CommitId, Key, Meta, Record, Saved};
use drover_io_real::store::{Store, StoreError};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;
use tempfile::TempDir;

#[test]
fn reopened_store_has_all_records() {
    let dir = TempDir::new().unwrap();
    let opened = Store::open(dir.path()).unwrap();
    assert_eq!(opened.saved, Saved::default());
    let meta = Meta {
        schema: 1,
        node: NodeId(7),
        index: 9,
    };
    let job = JobRecord {
        job: Arc::new(Job::default()),
        versions: Vec::new(),
        purge: true,
        deployment: None,
        done: [("g".into(), 3)].into_iter().collect(),
        ..JobRecord::default()
    };
    let task = Key::Task(AllocId(1), "web".into());
    let records = [
        (Key::Meta, Record::Meta(Arc::new(meta))),
        (
            Key::Job(JobKey::local("a/b \u{e9}")),
            Record::Job(Arc::new(job)),
        ),
        (task, Record::Task(Arc::new(TaskRecord::default()))),
    ];
    let mut batch: Batch = allocs(1..3, "one");
    batch.extend(records.clone().map(|(key, record)| (key, Some(record))));
    commit(&opened.store, 1, batch).unwrap();
    let gone = [(Key::Alloc(AllocId(2)), None), alloc(1, "changed")];
    commit(&opened.store, 2, gone.into()).unwrap();
    drop(opened.store);
    let found = saved(dir.path());
    let changed = alloc(1, "changed");
    let mut expected: Vec<_> = records.into();
    expected.push((changed.0, changed.1.unwrap()));
    assert_eq!(found, Saved::from_records(expected));
}

#[test]
fn unchanged_record_causes_no_write() {
    let dir = filled();
    let store = Store::open(dir.path()).unwrap().store;
    commit(&store, 1, allocs(0..50, "same")).unwrap();
    let before = bytes(dir.path());
    for id in 2..10 {
        commit(&store, id, allocs(0..50, "same")).unwrap();
        commit(&store, id, [(Key::Alloc(AllocId(999)), None)].into()).unwrap();
    }
    assert!(bytes(dir.path()) == before, "something was written");
    commit(&store, 10, [alloc(3, "other")].into()).unwrap();
    assert!(bytes(dir.path()) != before, "nothing was written");
    drop(store);
    assert_eq!(names(&saved(dir.path()))[2..5], ["same", "other", "same"]);
}

#[test]
fn commits_are_answered_in_order_before_close() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    let (done, answers) = channel();
    for id in 1..=100 {
        let done = done.clone();
        let batch = std::sync::Arc::new([alloc(1, &format!("{id}"))].into());
        store.commit(CommitId(id), batch, move |id, result| {
            done.send((id.0, result)).unwrap();
        });
    }
    drop((store, done));
    let answered: Vec<_> = answers.iter().collect();
    let expected: Vec<_> = (1..=100).map(|id| (id, Ok(()))).collect();
    assert_eq!(answered, expected);
    assert_eq!(names(&saved(dir.path())), ["100"]);
}

fn assert_damaged(dir: &Path, what: &str) {
    let before = bytes(dir);
    match Store::open(dir).map(|opened| opened.saved.allocs.len()) {
        Err(error @ StoreError::Damaged(..)) => {
            let text = error.to_string();
            for part in ["damaged", "Nothing was changed", "mv ", ".damaged"] {
                assert!(text.contains(part), "{what}: {text}");
            }
        }
        other => panic!("{what}: {other:?}"),
    }
    assert!(bytes(dir) == before, "{what}: something was changed");
}

#[test]
fn damaged_store_is_reported_without_change() {
    let whole = filled();
    let found = saved(whole.path());
    let file = whole.path().join("state/records/db");
    let content = fs::read(&file).unwrap();
    let mut damages: Vec<(String, Vec<u8>)> = vec![("empty".to_owned(), Vec::new())];
    let len = content.len();
    for kept in (1..8)
        .map(|part| len * part / 8)
        .chain([len - 1, len - 1000])
    {
        damages.push((format!("cut at {kept} of {len}"), content[..kept].to_vec()));
    }
    for part in 0..16 {
        let mut garbage = content.clone();
        let at = len * part / 16;
        garbage[at..at + len / 16].fill(0xa5);
        damages.push((format!("garbage at {at} of {len}"), garbage));
    }
    let all = damages.len();
    let mut noticed = 0;
    for (what, damage) in damages {
        let dir = TempDir::new().unwrap();
        let mut copy = Command::new("cp");
        copy.arg("-r")
            .arg(whole.path().join("state"))
            .arg(dir.path());
        assert!(copy.status().unwrap().success());
        fs::write(dir.path().join("state/records/db"), &damage).unwrap();
        // Space that holds nothing any more may be damaged without harm.
        match Store::open(dir.path()) {
            Ok(opened) => assert_eq!(opened.saved, found, "{what}: opened as something else"),
            Err(_) => {
                fs::write(dir.path().join("state/records/db"), &damage).unwrap();
                assert_damaged(dir.path(), &what);
                eprintln!("{what}: noticed");
                noticed += 1;
            }
        }
    }
    eprintln!("noticed {noticed} damages of {all}, the others did no harm");
    assert!(noticed >= 3);
}

#[test]
fn missing_database_file_is_damage() {
    let dir = filled();
    fs::remove_file(dir.path().join("state/records/db")).unwrap();
    assert_damaged(dir.path(), "no file");
}

#[test]
fn temporary_store_files_are_removed() {
    let dir = TempDir::new().unwrap();
    // What an agent that died while it made or looked at a database left.
    for left in ["records.new", "check"] {
        let left = dir.path().join("state").join(left);
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("db"), "half").unwrap();
    }
    assert_eq!(saved(dir.path()), Saved::default());
    let state = dir.path().join("state");
    let left: Vec<_> = bytes(&state).into_keys().collect();
    assert!(
        left.iter()
            .all(|path| path.starts_with(state.join("records"))),
        "{left:?}"
    );
}

#[test]
fn unfinished_snapshot_is_not_damage() {
    let dir = filled();
    let name = "state/records/snap.0000000000FFFFFF.generating";
    for content in [&b""[..], b"half a snapshot"] {
        fs::write(dir.path().join(name), content).unwrap();
        assert_eq!(saved(dir.path()).allocs.len(), 50);
    }
}

#[test]
fn unreadable_record_loses_itself_only() {
    let dir = filled();
    let store = Store::open(dir.path()).unwrap().store;
    // A later version's record, as this one sees it: bytes of the same length that mean nothing.
    commit(&store, 1, [alloc(7, &"y".repeat(600))].into()).unwrap();
    drop(store);
    common::spoil::record(
        &dir.path().join("state/records"),
        &format!("alloc/{}", AllocId(7)),
    );
    for _ in 0..2 {
        let opened = Store::open(dir.path()).unwrap();
        assert_eq!(opened.saved.allocs.len(), 49);
        assert_eq!(opened.damaged.len(), 1);
        assert!(
            opened.damaged[0].starts_with(&format!("alloc/{}: ", AllocId(7))),
            "{:?}",
            opened.damaged
        );
        commit(&opened.store, 1, [alloc(8, "new")].into()).unwrap();
    }
}

#[test]
fn whole_set_of_copies_is_one_run() {
    let mut copies = Copies::default();
    for index in (0..10_000).step_by(2).chain((1..10_000).step_by(2)) {
        copies.insert(GroupName::from("g"), index);
    }
    copies.insert(GroupName::from("h"), u32::MAX);
    let text = serde_json::to_string(&copies).unwrap();
    assert_eq!(text, r#"[["g",0,9999],["h",4294967295]]"#);
    assert_eq!(serde_json::from_str::<Copies>(&text).unwrap(), copies);
}

/// So earlier versions wrote all of them, and short runs are written still.
#[test]
fn single_copies_of_earlier_versions_are_read() {
    let text = r#"[["g",0],["g",1],["g",5],["h",2]]"#;
    let copies: Copies = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&copies).unwrap(), text);
}
