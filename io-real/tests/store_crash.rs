//! The store and what comes from outside: full disks, kills, other agents.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::disk::Disk;
use common::store::{allocs, bytes, commit, filled, names, saved};
use drover_io_real::store::{Store, StoreError};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

#[test]
fn full_disk_fails_commit_without_loss() {
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
fn second_agent_is_refused() {
    let dir = filled();
    let held = Store::open(dir.path()).unwrap();
    let before = bytes(dir.path());
    let mut reported = String::new();
    let mut second = other("helper_second_agent", dir.path());
    second
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut reported)
        .unwrap();
    second.wait().unwrap();
    assert!(
        reported.contains("another agent uses the state in"),
        "{reported}"
    );
    assert!(matches!(Store::open(dir.path()), Err(StoreError::Held(_))));
    assert!(bytes(dir.path()) == before);
    commit(&held.store, 1, allocs(0..1, "goes on")).unwrap();
}

/// Not a test of its own: commits until it is killed, and says what is acknowledged.
#[test]
fn helper_commits_forever() {
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
fn acknowledged_commit_survives_kill() {
    let dir = TempDir::new().unwrap();
    for round in 0..20 {
        let mut agent = other("helper_commits_forever", dir.path());
        let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
        // Killed after some commits, in the middle of another.
        let mut last = 0;
        let mut received = |line: String| {
            if let Some(id) = line.strip_prefix("acknowledged ") {
                last = id.parse().unwrap();
                return true;
            }
            false
        };
        let mut count = 0;
        while count < 3 + round * 7 % 20 {
            count += u64::from(received(lines.next().unwrap().unwrap()));
        }
        agent.kill().unwrap();
        for line in lines.map_while(Result::ok) {
            received(line);
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
    let began = Instant::now();
    for id in 0..rounds {
        commit(&store, id + 2, allocs(0..records, &format!("{id:0100}"))).unwrap();
    }
    let took = began.elapsed();
    let _ = marker.read_at(&mut [0], 424_243);
    println!(
        "{records} records: {took:?} for {rounds} commits; {} bytes handed over, {} bytes to the disk, {} writes a commit",
        (io("wchar:") - before.0) / rounds,
        (io("write_bytes:") - before.1) / rounds,
        (io("syscw:") - before.2) as f64 / rounds as f64,
    );
}
