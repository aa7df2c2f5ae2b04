//! The store: what was acknowledged is there, and what is damaged is reported and left alone.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::disk::Disk;
use drover_core::ids::{AllocId, JobKey, NodeId};
use drover_core::model::job::Job;
use drover_core::store::record::{AllocRecord, JobRecord, TaskRecord};
use drover_core::store::{Batch, CommitId, Key, Meta, Record, Saved};
use drover_io_real::store::{Store, StoreError};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use tempfile::TempDir;

fn alloc(number: u128, name: &str) -> (Key, Option<Record>) {
    let record = AllocRecord {
        id: AllocId(number),
        name: name.to_owned(),
        ..AllocRecord::default()
    };
    (Key::Alloc(record.id), Some(Record::Alloc(Arc::new(record))))
}

fn allocs(numbers: std::ops::Range<u128>, name: &str) -> Batch {
    numbers.map(|number| alloc(number, name)).collect()
}

fn commit(store: &Store, id: u64, batch: Batch) -> Result<(), String> {
    let (done, answer) = channel();
    store.commit(CommitId(id), batch, move |id, result| {
        done.send((id, result)).unwrap();
    });
    let (answered, result) = answer.recv().unwrap();
    assert_eq!(answered, CommitId(id));
    result
}

fn saved(dir: &Path) -> Saved {
    let opened = Store::open(dir).unwrap();
    assert!(opened.damaged.is_empty());
    opened.saved
}

fn names(saved: &Saved) -> Vec<&str> {
    saved.allocs.values().map(|alloc| &*alloc.name).collect()
}

/// All files below a directory with their content.
fn bytes(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
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

fn filled() -> TempDir {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    for round in 0..20 {
        let name = format!("round {round} {}", "x".repeat(500));
        commit(&store, round + 1, allocs(0..50, &name)).unwrap();
    }
    dir
}

#[test]
fn everything_is_there_again() {
    let dir = TempDir::new().unwrap();
    let opened = Store::open(dir.path()).unwrap();
    assert_eq!(opened.saved, Saved::default());
    let meta = Meta {
        schema: 1,
        node: NodeId(7),
    };
    let job = JobRecord {
        job: Arc::new(Job::default()),
        versions: Vec::new(),
        purge: true,
        deployment: None,
        done: [("g".into(), 3)].into(),
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
fn what_is_unchanged_is_not_written() {
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
fn answers_come_in_order_and_before_the_store_is_gone() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    let (done, answers) = channel();
    for id in 1..=100 {
        let done = done.clone();
        let batch = [alloc(1, &format!("{id}"))].into();
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
fn damage_is_reported_and_nothing_is_changed() {
    let whole = filled();
    let found = saved(whole.path());
    let file = whole.path().join("records/db");
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
            .arg(whole.path().join("records"))
            .arg(dir.path());
        assert!(copy.status().unwrap().success());
        fs::write(dir.path().join("records/db"), &damage).unwrap();
        // Space that holds nothing any more may be damaged without harm.
        match Store::open(dir.path()) {
            Ok(opened) => assert_eq!(opened.saved, found, "{what}: opened as something else"),
            Err(_) => {
                fs::write(dir.path().join("records/db"), &damage).unwrap();
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
fn a_lost_database_file_is_damage_and_a_lost_directory_is_none() {
    let dir = filled();
    fs::remove_file(dir.path().join("records/db")).unwrap();
    assert_damaged(dir.path(), "no file");
    fs::remove_dir_all(dir.path().join("records")).unwrap();
    // What an agent that died while it made or looked at a database left.
    for left in ["records.new", "check"] {
        fs::create_dir(dir.path().join(left)).unwrap();
        fs::write(dir.path().join(left).join("db"), "half").unwrap();
    }
    assert_eq!(saved(dir.path()), Saved::default());
    let left: Vec<_> = bytes(dir.path()).into_keys().collect();
    assert!(
        left.iter()
            .all(|path| path.starts_with(dir.path().join("records"))),
        "{left:?}"
    );
}

#[test]
fn a_snapshot_that_was_not_finished_is_no_damage() {
    let dir = filled();
    let name = "records/snap.0000000000FFFFFF.generating";
    for content in [&b""[..], b"half a snapshot"] {
        fs::write(dir.path().join(name), content).unwrap();
        assert_eq!(saved(dir.path()).allocs.len(), 50);
    }
}

#[test]
fn one_record_that_cannot_be_read_costs_itself_only() {
    let dir = filled();
    let store = Store::open(dir.path()).unwrap().store;
    // A later version's record, as this one sees it: bytes of the same length that mean nothing.
    commit(&store, 1, [alloc(7, &"y".repeat(600))].into()).unwrap();
    drop(store);
    common::spoil::record(
        &dir.path().join("records"),
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
fn a_full_disk_fails_a_commit_and_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let Some(_disk) = Disk::mount(dir.path(), "8m") else {
        return;
    };
    let state = dir.path().join("state");
    let store = Store::open(&state).unwrap().store;
    commit(&store, 1, allocs(0..20, "first")).unwrap();
    let mut filler = File::create(dir.path().join("filler")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    let mut last = 1;
    // What fits into the room that the database has reserved is written still.
    let failed = loop {
        let name = format!("{last} {}", "x".repeat(2000));
        match commit(&store, last + 1, allocs(0..20, &name)) {
            Ok(()) => last += 1,
            Err(why) => break why,
        }
        assert!(last < 1000, "the disk is never full");
    };
    assert!(
        failed.contains("space") || failed.contains("ENOSPC"),
        "{failed}"
    );
    assert!(commit(&store, 9000, allocs(0..20, &"z".repeat(3000))).is_err());
    drop(filler);
    fs::remove_file(dir.path().join("filler")).unwrap();
    commit(&store, 9001, allocs(20..30, "after")).unwrap();
    drop(store);
    let found = saved(&state);
    let names = names(&found);
    assert_eq!(names.len(), 30);
    assert!(names[20..].iter().all(|name| *name == "after"));
    // All of the last batch that was acknowledged, or of one that failed afterwards.
    assert!(names[..20].iter().all(|name| *name == names[0]));
    let kept = names[0].split(' ').next().unwrap();
    let expected = [last.to_string(), (last - 1).to_string()];
    assert!(
        expected.iter().any(|n| n == kept) || kept.starts_with('z') || last == 1,
        "{kept} {last}"
    );
}

/// Runs one of the helpers below in another process.
fn other(helper: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", helper, "--nocapture"])
        .env("DROVER_TEST_STORE", dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Not a test of its own: opens the store that another process has.
#[test]
fn helper_second_agent() {
    let Some(dir) = std::env::var_os("DROVER_TEST_STORE") else {
        return;
    };
    match Store::open(Path::new(&dir)) {
        Err(error) => println!("said: {error}"),
        Ok(_) => println!("said: opened"),
    }
}

#[test]
fn a_second_agent_is_refused() {
    let dir = filled();
    let held = Store::open(dir.path()).unwrap();
    let before = bytes(dir.path());
    let mut said = String::new();
    let mut second = other("helper_second_agent", dir.path());
    second
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    second.wait().unwrap();
    assert!(said.contains("another agent uses the state in"), "{said}");
    assert!(matches!(Store::open(dir.path()), Err(StoreError::Held(_))));
    assert!(bytes(dir.path()) == before);
    commit(&held.store, 1, allocs(0..1, "goes on")).unwrap();
}

/// Not a test of its own: commits until it is killed, and says what is acknowledged.
#[test]
fn helper_commits_for_ever() {
    let Some(dir) = std::env::var_os("DROVER_TEST_STORE") else {
        return;
    };
    let opened = Store::open(Path::new(&dir)).unwrap();
    let last = names(&opened.saved)
        .first()
        .map_or(0, |name| name.parse().unwrap());
    for id in last + 1.. {
        commit(&opened.store, id, allocs(0..10, &id.to_string())).unwrap();
        println!("acknowledged {id}");
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let dir = TempDir::new().unwrap();
    for round in 0..20 {
        let mut agent = other("helper_commits_for_ever", dir.path());
        let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
        // Killed after some commits, in the middle of another.
        let mut last = 0;
        let mut heard = |line: String| {
            if let Some(id) = line.strip_prefix("acknowledged ") {
                last = id.parse().unwrap();
                return true;
            }
            false
        };
        let mut count = 0;
        while count < 3 + round * 7 % 20 {
            count += u64::from(heard(lines.next().unwrap().unwrap()));
        }
        agent.kill().unwrap();
        for line in lines.map_while(Result::ok) {
            heard(line);
        }
        agent.wait().unwrap();
        let found = saved(dir.path());
        let names = names(&found);
        assert!(
            names.len() == 10 && names.iter().all(|name| *name == names[0]),
            "{names:?}"
        );
        let kept: u64 = names[0].parse().unwrap();
        assert!(
            kept >= last && kept <= last + 1,
            "{kept} is kept, {last} was acknowledged"
        );
    }
}

/// Not a test of its own: what commits cost, for people who want to know. `DROVER_TEST_COST` is
/// the number of records of a commit.
#[test]
fn helper_cost() {
    let Ok(records) = std::env::var("DROVER_TEST_COST") else {
        return;
    };
    let records: u128 = records.parse().unwrap();
    let dir = TempDir::new_in(std::env::var_os("DROVER_TEST_DIR").unwrap_or(".".into())).unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    commit(&store, 1, allocs(0..1000, &"x".repeat(100))).unwrap();
    let io = |name: &str| -> u64 {
        let io = fs::read_to_string("/proc/self/io").unwrap();
        let line = io.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    };
    let before = (io("wchar:"), io("write_bytes:"), io("syscw:"));
    let marker = File::open("/dev/null").unwrap();
    let _ = marker.read_at(&mut [0], 424_242);
    let rounds = 200_u64;
    for id in 0..rounds {
        commit(&store, id + 2, allocs(0..records, &format!("{id:0100}"))).unwrap();
    }
    let _ = marker.read_at(&mut [0], 424_243);
    println!(
        "{records} records: {} bytes handed over, {} bytes to the disk, {} writes a commit",
        (io("wchar:") - before.0) / rounds,
        (io("write_bytes:") - before.1) / rounds,
        (io("syscw:") - before.2) as f64 / rounds as f64,
    );
}
