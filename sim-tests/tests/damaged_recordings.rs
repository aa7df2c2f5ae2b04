//! Recordings with damaged files: each is named with what is wrong and which steps it costs, and all
//! others are played.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::fs;
use std::path::{Path, PathBuf};

use drover_core::time::Span;
use drover_io_sim::Sim;
use drover_io_sim::replay::{Damage, Player, Recording, Segment, verify};
use drover_recorder::redact::{How, TokenKey};
use drover_recorder::{Start, file};
use drover_sim_tests::build::{TaskExt, service, task};
use drover_sim_tests::inspect::Inspect;

/// How many steps each file of the recording has, but for the last.
const STEPS: usize = 10;

/// How many files there are.
const FILES: usize = 5;

/// The life of an agent, as a recorder cuts it into files.
fn segments(seed: u64) -> Vec<Segment> {
    let mut sim = Sim::new(seed);
    for job in ["web", "shop", "mail"] {
        sim.register(&service(job, [task("main").ends("3s", 1)]));
    }
    let _ = sim.run(Span::secs(120));
    let life = sim.recording().unwrap();
    assert!(
        life.steps.len() > STEPS * FILES,
        "only {}",
        life.steps.len()
    );
    let whole = Recording::of(vec![life.clone()]);
    let mut player = Player::new(&whole);
    let cut = |at: usize| {
        let mut segment = life.clone();
        segment.steps = life.steps[at * STEPS..(at + 1) * STEPS].to_vec();
        segment.header.step = u64::try_from(at * STEPS).unwrap();
        if let Some(last) = (at * STEPS).checked_sub(1) {
            player.go_to(last + 2);
            segment.header.start = Start::Snapshot {
                agent: Box::new(player.agent().unwrap().clone()),
                now: life.steps[last].now,
            };
        }
        segment
    };
    (0..FILES).map(cut).collect()
}

/// A member with this text.
fn member(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    file::member(&mut bytes, text.as_bytes()).unwrap();
    bytes
}

/// A directory of its own with the files of a recording; it is removed when dropped. Of each file the
/// members: its beginning, and each step.
struct Files(PathBuf, Vec<Vec<Vec<u8>>>);

impl Files {
    fn new(name: &str) -> Files {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("damaged-{name}"));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let how = How::Token(TokenKey::new(5));
        let mut all = Vec::new();
        for segment in segments(1) {
            let mut members = vec![file::member_of(&segment.header, how).unwrap()];
            for step in &segment.steps {
                members.push(file::member_of(step, how).unwrap());
            }
            all.push(members);
        }
        let mut files = Files(dir, all);
        for at in 0..files.1.len() {
            files.change(at, |_| {});
        }
        files
    }

    /// Changes the members of a file.
    fn change(&mut self, file: usize, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
        change(&mut self.1[file]);
        let path = self.0.join(format!("{file:08}.rec"));
        fs::write(path, self.1[file].concat()).unwrap();
    }

    /// The number of steps that are played, all with the same effects, and what is damaged.
    #[track_caller]
    fn played(&self) -> (usize, Vec<Damage>) {
        let recording = Recording::open(&self.0).unwrap();
        let verdict = verify(&recording);
        if let Some((interval, difference)) = verdict.difference {
            panic!("{interval:?}: {difference}");
        }
        (verdict.steps, verdict.damages)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One bit in the middle of the member is another one.
fn flip(member: &mut [u8]) {
    let at = member.len() / 2;
    member[at] ^= 1;
}

#[track_caller]
fn one(damages: Vec<Damage>) -> Damage {
    let [damage] = <[Damage; 1]>::try_from(damages).unwrap();
    damage
}

/// All steps, the beginnings of files included.
const ALL: usize = FILES * (STEPS + 1);

#[test]
fn complete_recording_is_played_to_end() {
    let files = Files::new("not");
    assert_eq!(files.played(), (ALL, Vec::new()));
}

#[test]
fn segment_with_damaged_header_is_skipped_and_named() {
    for (file, missing) in [
        // Where the first one began and the last one ended, nobody knows.
        (0, (None, Some(10))),
        (2, (Some(21), Some(30))),
        (FILES - 1, (None, None)),
    ] {
        let mut files = Files::new(&format!("beginning-{file}"));
        files.change(file, |lines| flip(&mut lines[0]));
        let (steps, damages) = files.played();
        assert_eq!(steps, ALL - STEPS - 1, "file {file}");
        let damage = one(damages);
        assert_eq!(damage.file, format!("{file:08}.rec"));
        assert!(damage.why.contains("its header is incomplete"));
        assert_eq!(damage.played, None);
        assert_eq!((damage.first_missing, damage.last_missing), missing);
    }
}

#[test]
fn segment_with_unreadable_state_is_skipped_with_steps() {
    for (file, missing) in [
        (0, (Some(1), Some(10))),
        (2, (Some(21), Some(30))),
        (FILES - 1, (Some(41), None)),
    ] {
        let mut files = Files::new(&format!("state-{file}"));
        files.change(file, |lines| {
            // As an id that was hidden.
            let text = String::from_utf8(file::read(&lines[0]).0).unwrap();
            let broken = text.replacen("\"allocs\":{", "\"allocs\":[\"redacted:0\"],\"x\":{", 1);
            assert_ne!(broken, text);
            lines[0] = member(&broken);
        });
        let (steps, damages) = files.played();
        assert_eq!(steps, ALL - STEPS - 1, "file {file}");
        let damage = one(damages);
        assert!(damage.why.contains("written by version"), "{damage}");
        assert!(damage.life.is_some());
        assert_eq!((damage.first_missing, damage.last_missing), missing);
    }
}

#[test]
fn segment_with_damaged_step_is_played_up_to_it() {
    for file in 0..FILES {
        let mut files = Files::new(&format!("step-{file}"));
        files.change(file, |lines| flip(&mut lines[4]));
        let (steps, damages) = files.played();
        assert_eq!(steps, ALL - 7, "file {file}");
        let damage = one(damages);
        assert_eq!(damage.played, Some(3));
        assert!(damage.why.starts_with("what follows"), "{damage}");
        let before = u64::try_from(file * STEPS).unwrap();
        assert_eq!(damage.first_missing, Some(before + 4));
        // Where the last file ended, nobody knows.
        let last = (file < FILES - 1).then_some(before + 10);
        assert_eq!(damage.last_missing, last);
        // A step that was written as it should not have been costs the same.
        files.change(file, |lines| lines[4] = member("{\"now\":7}\n"));
        let (steps, damages) = files.played();
        assert_eq!((steps, one(damages).played), (ALL - 7, Some(3)));
    }
}

#[test]
fn torn_end_is_damage_only_before_more_steps() {
    let tear = |lines: &mut Vec<Vec<u8>>| {
        let last = lines.last_mut().unwrap();
        last.truncate(last.len() - 15);
    };
    let mut files = Files::new("end");
    files.change(1, tear);
    let (steps, damages) = files.played();
    assert_eq!(steps, ALL - 1);
    let damage = one(damages);
    assert_eq!(
        (damage.first_missing, damage.last_missing),
        (Some(20), Some(20))
    );
    assert!(damage.to_string().contains("step 20 of life "), "{damage}");

    let mut files = Files::new("last-end");
    files.change(FILES - 1, tear);
    assert_eq!(files.played(), (ALL - 1, Vec::new()));
}

#[test]
fn all_damaged_segments_are_named() {
    let mut files = Files::new("several");
    files.change(1, |lines| flip(&mut lines[0]));
    files.change(2, |lines| lines[0] = member("[]\n"));
    fs::write(files.0.join("notes.rec"), "remember the milk").unwrap();
    let (steps, damages) = files.played();
    assert_eq!(steps, ALL - 2 * (STEPS + 1));
    let words: Vec<String> = damages.iter().map(Damage::to_string).collect();
    assert_eq!(words.len(), 3, "{words:?}");
    let missing = "steps 11 to 30 of life ";
    assert!(
        words.iter().any(|words| words.contains(missing)),
        "{words:?}"
    );
    assert!(
        words
            .iter()
            .any(|words| words.starts_with("notes.rec is left out"))
    );
}

#[test]
fn recording_with_all_segments_damaged_is_refused() {
    let mut files = Files::new("all");
    for file in 0..FILES {
        files.change(file, |lines| flip(&mut lines[0]));
    }
    let why = Recording::open(&files.0).unwrap_err().to_string();
    assert!(why.contains("can be read"), "{why}");
    assert_eq!(why.lines().count(), 1 + FILES, "{why}");
}
