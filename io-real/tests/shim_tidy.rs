//! What the start of an agent clears away, and what it leaves.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::{Rig, Task, finish, launch_id};
use drover_io_real::shim::record::{Record, State};
use drover_io_real::shim::{Recovered, StartError};
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

fn path(rig: &Rig, number: u32, suffix: &str) -> PathBuf {
    let name = format!("{}.{suffix}", launch_id(number));
    rig.dir.path().join("data/run").join(name)
}

fn age(path: &PathBuf, age: Duration) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

fn bury(rig: &Rig, number: u32) {
    let found = rig.home.recover(&launch_id(number)).unwrap();
    assert!(matches!(found, Recovered::NeverStarted));
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn only_expired_tombstones_are_removed() {
    let rig = Rig::new();
    for number in 1..=4 {
        bury(&rig, number);
    }
    age(&path(&rig, 1, "r"), HOUR + Duration::from_secs(60));
    age(&path(&rig, 2, "r"), HOUR / 2);
    // Of an earlier boot.
    let id = launch_id(3).as_bytes().try_into().unwrap();
    let old = Record::new(id, [b'0'; 36], State::Abandoned);
    fs::write(path(&rig, 3, "r"), old.encode()).unwrap();
    assert_eq!(rig.home.tidy().unwrap(), 2);
    let mut left = rig.home.list().unwrap();
    left.sort();
    assert_eq!(left, [launch_id(2), launch_id(4)]);
    assert!(matches!(
        rig.start(&Task::sh(4, "true")),
        Err(StartError::AlreadyClaimed)
    ));
    assert_eq!(rig.home.tidy().unwrap(), 0);
}

#[test]
fn needed_launch_files_are_kept() {
    let rig = Rig::new();
    let live = rig.start(&Task::sh(1, "exec sleep 1000")).unwrap();
    finish(&rig.start(&Task::sh(2, "exit 5")).unwrap());
    fs::write(path(&rig, 3, "r"), "damaged").unwrap();
    for number in 1..=3 {
        age(&path(&rig, number, "r"), HOUR * 1000);
    }
    assert_eq!(rig.home.tidy().unwrap(), 0);
    assert_eq!(rig.home.list().unwrap().len(), 3);
    live.kill().unwrap();
    finish(&live);
    assert!(matches!(
        rig.home.recover(&launch_id(2)).unwrap(),
        Recovered::Exited(exit) if exit.code == Some(5)
    ));
}

#[test]
fn empty_records_and_orphaned_sockets_are_removed() {
    let rig = Rig::new();
    for number in 1..=2 {
        File::create(path(&rig, number, "r")).unwrap();
    }
    age(&path(&rig, 1, "r"), HOUR * 2);
    fs::write(path(&rig, 3, "s"), "").unwrap();
    let live = rig.start(&Task::sh(4, "exec sleep 1000")).unwrap();
    fs::write(rig.dir.path().join("data/run/else"), "").unwrap();
    assert_eq!(rig.home.tidy().unwrap(), 2);
    assert!(path(&rig, 2, "r").exists() && path(&rig, 4, "s").exists());
    assert!(rig.dir.path().join("data/run/else").exists());
    live.hello().unwrap();
    live.kill().unwrap();
    finish(&live);
}
