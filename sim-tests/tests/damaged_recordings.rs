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

use drover_core::record::redact::{How, Redacted, TokenKey};
use drover_core::record::{Start, seal};
use drover_core::time::Span;
use drover_io_sim::Sim;
use drover_io_sim::replay::{Damage, Player, Recording, Segment, verify};
use drover_sim_tests::build::{TaskWords, service, task};
use drover_sim_tests::look::Look;
use serde::Serialize;
use serde_json::json;

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

/// A frame as a recorder writes it.
fn frame<T: Serialize>(value: &T) -> String {
    let text = serde_json::to_string(value).unwrap();
    format!("{}{text}\n", seal::head(text.as_bytes()))
}

fn shown<T: Serialize>(value: &T) -> Redacted<'_, T> {
    Redacted::new(value, How::Token(TokenKey::new(5)))
}

/// A directory of its own with the files of a recording; it is removed when dropped.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Files {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("damaged-{name}"));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        for (at, segment) in segments(1).iter().enumerate() {
            let header = json!({ "shared": [], "value": shown(&segment.header) });
            let steps = segment.steps.iter().map(|step| frame(&shown(step)));
            let text: String = [frame(&header)].into_iter().chain(steps).collect();
            fs::write(dir.join(format!("{at:08}.rec")), text).unwrap();
        }
        Files(dir)
    }

    /// Changes the lines of a file: the first is its beginning, each other a step.
    fn change(&self, file: usize, change: impl FnOnce(&mut Vec<String>)) {
        let path = self.0.join(format!("{file:08}.rec"));
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        change(&mut lines);
        fs::write(path, lines.concat()).unwrap();
    }

    /// The number of steps that are played, all with the same effects, and what is damaged.
    #[track_caller]
    fn played(&self) -> (usize, Vec<Damage>) {
        let recording = Recording::open(&self.0).unwrap();
        let verdict = verify(&recording);
        if let Some((step, difference)) = verdict.difference {
            panic!("step {step}: {difference}");
        }
        (verdict.steps, verdict.damages)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One character in the middle of the line is another one.
fn flip(line: &mut String) {
    let at = line.len() / 2;
    let other = if &line[at..=at] == "x" { "y" } else { "x" };
    line.replace_range(at..=at, other);
}

/// A line whose content is another one, sealed again.
fn reseal(line: &mut String, content: &str) {
    *line = format!("{}{content}\n", seal::head(content.as_bytes()));
}

#[track_caller]
fn one(damages: Vec<Damage>) -> Damage {
    let [damage] = <[Damage; 1]>::try_from(damages).unwrap();
    damage
}

/// All steps, the beginnings of files included.
const ALL: usize = FILES * (STEPS + 1);

#[test]
fn whole_recording_is_played_to_its_end() {
    let files = Files::new("not");
    assert_eq!(files.played(), (ALL, Vec::new()));
}

#[test]
fn file_with_a_damaged_beginning_is_left_out_and_named() {
    for (file, missing) in [
        // Where the first one began and the last one ended, nobody knows.
        (0, (None, Some(10))),
        (2, (Some(21), Some(30))),
        (FILES - 1, (None, None)),
    ] {
        let files = Files::new(&format!("beginning-{file}"));
        files.change(file, |lines| flip(&mut lines[0]));
        let (steps, damages) = files.played();
        assert_eq!(steps, ALL - STEPS - 1, "file {file}");
        let damage = one(damages);
        assert_eq!(damage.file, format!("{file:08}.rec"));
        assert!(damage.why.contains("its beginning is not whole"));
        assert_eq!(damage.played, None);
        assert_eq!((damage.first_missing, damage.last_missing), missing);
    }
}

#[test]
fn file_with_an_unreadable_state_is_left_out_and_says_its_steps() {
    for (file, missing) in [
        (0, (Some(1), Some(10))),
        (2, (Some(21), Some(30))),
        (FILES - 1, (Some(41), None)),
    ] {
        let files = Files::new(&format!("state-{file}"));
        files.change(file, |lines| {
            // As an id that was hidden.
            let text = lines[0][26..].trim_end().to_owned();
            let id = text.find("\"allocs\":{").unwrap();
            let broken = format!("{}\"allocs\":[\"redacted:0\"],\"x\":{{", &text[..id]);
            let content = format!("{broken}{}", &text[id + "\"allocs\":{".len()..]);
            reseal(&mut lines[0], &content);
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
fn file_with_a_damaged_step_is_played_up_to_it() {
    for file in 0..FILES {
        let files = Files::new(&format!("step-{file}"));
        files.change(file, |lines| flip(&mut lines[4]));
        let (steps, damages) = files.played();
        assert_eq!(steps, ALL - 7, "file {file}");
        let damage = one(damages);
        assert_eq!(damage.played, Some(3));
        assert!(damage.why.starts_with("step 4 cannot be read"), "{damage}");
        let before = u64::try_from(file * STEPS).unwrap();
        assert_eq!(damage.first_missing, Some(before + 4));
        assert_eq!(damage.last_missing, Some(before + 10));
        // A step that was written as it should not have been costs the same.
        files.change(file, |lines| reseal(&mut lines[4], "{\"now\":7}"));
        let (steps, damages) = files.played();
        assert_eq!((steps, one(damages).played), (ALL - 7, Some(3)));
    }
}

#[test]
fn torn_end_is_damage_only_where_the_life_goes_on() {
    let tear = |lines: &mut Vec<String>| {
        let last = lines.last_mut().unwrap();
        last.truncate(last.len() - 5);
    };
    let files = Files::new("end");
    files.change(1, tear);
    let (steps, damages) = files.played();
    assert_eq!(steps, ALL - 1);
    let damage = one(damages);
    assert_eq!(
        (damage.first_missing, damage.last_missing),
        (Some(20), Some(20))
    );
    assert!(damage.to_string().contains("step 20 of life "), "{damage}");

    let files = Files::new("last-end");
    files.change(FILES - 1, tear);
    assert_eq!(files.played(), (ALL - 1, Vec::new()));
}

#[test]
fn several_damaged_files_are_all_named() {
    let files = Files::new("several");
    files.change(1, |lines| flip(&mut lines[0]));
    files.change(2, |lines| reseal(&mut lines[0], "[]"));
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
fn recording_of_damaged_files_only_is_refused_with_all_reasons() {
    let files = Files::new("all");
    for file in 0..FILES {
        files.change(file, |lines| flip(&mut lines[0]));
    }
    let why = Recording::open(&files.0).unwrap_err().to_string();
    assert!(why.contains("can be read"), "{why}");
    assert_eq!(why.lines().count(), 1 + FILES, "{why}");
}
