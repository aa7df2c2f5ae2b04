//! A store is as young as its data directory, or it is refused: damage and removal never pass for an
//! earlier state.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::store::{alloc, allocs, bytes, commit, filled, names, saved};
use drover_core::store::Saved;
use drover_core::store::freshness::Refusal;
use drover_io_real::store::{Opened, Store, StoreError};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A store of a few dozen commits, of which each is seen in the state.
fn grown() -> TempDir {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    for number in 0..60_u64 {
        let name = format!("commit {number} {}", "x".repeat(300));
        let mut batch = allocs(0..3, &name);
        batch.extend([alloc(u128::from(number) + 10, &name)]);
        commit(&store, number + 1, batch).unwrap();
    }
    dir
}

fn copy(from: &Path) -> TempDir {
    let to = TempDir::new().unwrap();
    let mut cp = Command::new("cp");
    cp.arg("-r").arg(from.join(".")).arg(to.path());
    assert!(cp.status().unwrap().success());
    to
}

/// What becomes of a data directory that was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Whole,
    Earlier,
    Refused,
}

fn outcome(dir: &Path, whole: &Saved) -> Outcome {
    match Store::open(dir) {
        Ok(opened) if opened.damaged.is_empty() && opened.saved == *whole => Outcome::Whole,
        Ok(_) => Outcome::Earlier,
        Err(StoreError::Damaged(..) | StoreError::Lost(..)) => Outcome::Refused,
        Err(error) => panic!("{error}"),
    }
}

/// A deterministic source of choices.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// One damage of a file's content.
fn damage(kind: &str, content: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = content.to_vec();
    // The last byte that was written: what is behind it means nothing.
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    match kind {
        "bit" => bytes[dice.below(used)] ^= 1 << dice.below(8),
        "zeros" => {
            let size = 64 << dice.below(7);
            let at = dice.below(used);
            let end = (at + size).min(bytes.len());
            bytes[at..end].fill(0);
        }
        _ => bytes.truncate(dice.below(used)),
    }
    bytes
}

/// The files of a database, without those that are empty.
fn files(dir: &Path) -> Vec<PathBuf> {
    let content = bytes(&dir.join("state/records"));
    let full = content.into_iter().filter(|(_, bytes)| !bytes.is_empty());
    full.map(|(path, _)| path.strip_prefix(dir).unwrap().to_owned())
        .collect()
}

#[test]
fn damaged_store_opens_complete_or_is_refused() {
    let whole = grown();
    // Opening a database makes it look through its log, and a damage there is found later: so only
    // copies are opened.
    let state = saved(copy(whole.path()).path());
    let files = files(whole.path());
    let mut dice = Dice(7);
    let mut earlier_without = 0;
    for (kind, times) in [("bit", 100), ("zeros", 24), ("truncate", 24)] {
        let mut count = [0; 3];
        for number in 0..times {
            let dir = copy(whole.path());
            // Most of all is in the one large file.
            let file = match dice.below(4) {
                0 => &files[dice.below(files.len())],
                _ => Path::new("state/records/db"),
            };
            let path = dir.path().join(file);
            let damaged = damage(kind, &fs::read(&path).unwrap(), &mut dice);
            fs::write(&path, &damaged).unwrap();
            let without = copy(dir.path());
            fs::remove_file(without.path().join("last-commit")).unwrap();
            let without = outcome(without.path(), &state);
            earlier_without += u32::from(without == Outcome::Earlier);
            let found = outcome(dir.path(), &state);
            assert_ne!(found, Outcome::Earlier, "{kind} {number} of {file:?}");
            count[found as usize] += 1;
        }
        let [opened, _, refused] = count;
        eprintln!("{kind}: {opened} opened whole, {refused} refused");
    }
    eprintln!("without the number outside of it, {earlier_without} were an earlier state");
    assert!(earlier_without > 0, "this proves nothing");
}

fn refusal(dir: &Path) -> Refusal {
    let before = bytes(dir);
    let Err(StoreError::Lost(at, refusal)) = Store::open(dir) else {
        panic!("it is not refused");
    };
    assert_eq!(at, dir);
    assert!(bytes(dir) == before, "something was changed");
    refusal
}

fn accepted(dir: &Path) -> Opened {
    Store::open_with(dir, true, None).unwrap()
}

#[test]
fn older_state_is_refused_until_loss_is_accepted() {
    let dir = filled();
    let earlier = copy(dir.path());
    let store = Store::open(dir.path()).unwrap().store;
    for id in 1..=5 {
        commit(&store, id, [alloc(1, &format!("late {id}"))].into()).unwrap();
    }
    drop(store);
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    fs::rename(earlier.path().join("state"), dir.path().join("state")).unwrap();
    let why = Refusal::Behind {
        store: 20,
        last: 25,
    };
    assert_eq!(refusal(dir.path()), why);
    let text = StoreError::Lost(dir.path().to_owned(), why).to_string();
    let path = dir.path().display().to_string();
    for part in [
        path.as_str(),
        "commit 20",
        "commit 25",
        "-accept-state-loss",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let opened = accepted(dir.path());
    assert!(opened.lossy);
    assert_eq!(opened.saved.allocs.len(), 50);
    commit(&opened.store, 1, [alloc(1, "after")].into()).unwrap();
    drop(opened);
    // It goes on beyond what was lost, and what was lost is remembered until it is over.
    for lossy in [true, false] {
        let opened = Store::open(dir.path()).unwrap();
        assert_eq!(opened.lossy, lossy);
        assert_eq!(names(&opened.saved)[1], "after");
        opened.store.end_loss();
    }
    assert!(!Store::open(dir.path()).unwrap().lossy);
}

#[test]
fn removed_state_is_refused_until_loss_is_accepted() {
    let dir = filled();
    for last in [20, 22] {
        fs::remove_dir_all(dir.path().join("state")).unwrap();
        fs::create_dir(dir.path().join("state")).unwrap();
        assert_eq!(refusal(dir.path()), Refusal::Missing(Some(last)));
        let opened = accepted(dir.path());
        assert!(opened.lossy);
        assert_eq!(opened.saved, Saved::default());
        commit(&opened.store, 1, [alloc(1, "after")].into()).unwrap();
    }
}

#[test]
fn removed_state_without_number_is_refused_where_tasks_were_started() {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("state")).unwrap();
    fs::create_dir(dir.path().join("run")).unwrap();
    fs::write(dir.path().join("run/some.r"), "record").unwrap();
    assert_eq!(refusal(dir.path()), Refusal::Missing(None));
    assert!(accepted(dir.path()).lossy);
}

#[test]
fn damaged_number_is_refused_until_loss_is_accepted() {
    let dir = filled();
    fs::write(dir.path().join("last-commit"), [0; 1024]).unwrap();
    assert_eq!(refusal(dir.path()), Refusal::Unknown(20));
    let opened = accepted(dir.path());
    assert!(opened.lossy);
    assert_eq!(opened.saved.allocs.len(), 50);
}

#[test]
fn lagging_counter_catches_up() {
    let dir = filled();
    let path = dir.path().join("last-commit");
    let earlier = fs::read(&path).unwrap();
    let store = Store::open(dir.path()).unwrap().store;
    commit(&store, 1, [alloc(1, "late")].into()).unwrap();
    drop(store);
    let last = fs::read(&path).unwrap();
    assert_ne!(earlier, last);
    fs::write(&path, &earlier).unwrap();
    let opened = Store::open(dir.path()).unwrap();
    assert!(!opened.lossy);
    assert_eq!(names(&opened.saved)[1], "late");
    drop(opened);
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    fs::create_dir(dir.path().join("state")).unwrap();
    assert_eq!(refusal(dir.path()), Refusal::Missing(Some(21)));
}

#[test]
fn store_without_counter_is_adopted() {
    let dir = filled();
    let whole = saved(dir.path());
    common::spoil::number(dir.path());
    let opened = Store::open(dir.path()).unwrap();
    assert!(!opened.lossy && opened.damaged.is_empty());
    assert_eq!(opened.saved, whole);
    commit(&opened.store, 1, [alloc(1, "after")].into()).unwrap();
    drop(opened);
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    fs::create_dir(dir.path().join("state")).unwrap();
    assert_eq!(refusal(dir.path()), Refusal::Missing(Some(1)));
}
