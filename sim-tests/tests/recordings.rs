//! Recordings of real agents, played again: the agent of today does what those did.
//!
//! An incident becomes a test by copying its recording into `recordings/`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::fs;
use std::path::{Path, PathBuf};

use drover_core::record::Start;
use drover_core::record::redact::{How, Redacted, TokenKey};
use drover_core::time::Now;
use drover_io_sim::replay::entity::Entity;
use drover_io_sim::replay::{Player, Recording, Segment, story, verify, why};

fn all() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_recording = |path: &PathBuf| path.extension().is_some_and(|end| end == "rec");
    let mut paths: Vec<PathBuf> = entries.filter(is_recording).collect();
    paths.sort();
    paths
}

fn named(name: &str) -> Recording {
    let path = all()
        .into_iter()
        .find(|path| path.file_stem().is_some_and(|stem| stem == name));
    Recording::open(&path.unwrap()).unwrap()
}

#[test]
fn every_recording_has_the_same_effects() {
    let paths = all();
    assert!(paths.len() >= 2, "{paths:?}");
    for path in paths {
        let recording = Recording::open(&path).unwrap();
        let verdict = verify(&recording);
        assert!(verdict.steps > 10, "{path:?} has hardly anything to play");
        assert_eq!(verdict.damages, [], "{path:?}");
        if let Some((step, difference)) = verdict.difference {
            panic!("{}, step {step}: {difference}", path.display());
        }
    }
}

/// The recording with one mark of the first segment changed.
fn with_another_mark(recording: &Recording, step: usize) -> Recording {
    let mut segments: Vec<Segment> = recording.segments().to_vec();
    let mark = segments[0].steps[step].marks.last_mut().unwrap();
    mark.fingerprint = 0;
    Recording::of(segments)
}

#[test]
fn a_difference_is_found_where_it_is() {
    let recording = named("service-starts");
    let steps = &recording.segments()[0].steps;
    let with_effects = (0..steps.len()).filter(|step| !steps[*step].marks.is_empty());
    for step in with_effects {
        let verdict = verify(&with_another_mark(&recording, step));
        let (found, difference) = verdict.difference.unwrap();
        // The beginning of the segment is step 1.
        assert_eq!(found, step + 2);
        let words = difference.to_string();
        assert!(words.contains("00000000000000"), "{words}");
        assert!(
            words.contains("the same kind, with other contents"),
            "{words}"
        );
    }
}

#[test]
fn an_input_that_is_left_out_makes_a_difference() {
    let recording = named("service-starts");
    let mut segments: Vec<Segment> = recording.segments().to_vec();
    let saved = segments[0]
        .steps
        .iter()
        .position(|step| !step.marks.is_empty())
        .unwrap();
    segments[0].steps.remove(saved);
    let verdict = verify(&Recording::of(segments));
    assert!(verdict.difference.is_some());
}

/// The recording's only segment cut in two after so many steps: the second begins with the state
/// of the agent, written without secrets and read again.
fn cut(recording: &Recording, steps: usize) -> [Segment; 2] {
    let mut first = recording.segments()[0].clone();
    let mut second = first.clone();
    second.steps = first.steps.split_off(steps);
    let mut player = Player::new(recording);
    player.go_to(steps + 1);
    let agent = player.agent().unwrap();
    let hidden = Redacted::new(agent, How::Token(TokenKey::new(7)));
    let text = serde_json::to_string(&hidden).unwrap();
    second.header.step += u64::try_from(steps).unwrap();
    second.header.start = Start::Snapshot {
        agent: Box::new(serde_json::from_str(&text).unwrap()),
        now: first.steps.last().map_or(Now::default(), |step| step.now),
    };
    [first, second]
}

#[test]
fn every_recording_goes_on_from_each_of_its_states() {
    for path in all() {
        let recording = Recording::open(&path).unwrap();
        for steps in (0..recording.segments()[0].steps.len()).step_by(3) {
            let both = Recording::of(cut(&recording, steps).to_vec());
            if let Some((step, difference)) = verify(&both).difference {
                let name = path.display();
                panic!("{name}, cut after {steps}, step {step}: {difference}");
            }
        }
    }
}

#[test]
fn a_snapshot_that_does_not_go_on_is_found() {
    let recording = named("rolling-update");
    let [first, mut second] = cut(&recording, 60);
    // It begins with the state of a step later.
    let [_, later] = cut(&recording, 61);
    second.header.start = later.header.start;
    let verdict = verify(&Recording::of(vec![first, second]));
    let (_, difference) = verdict.difference.unwrap();
    assert!(
        difference.to_string().contains("another state"),
        "{difference}"
    );
}

#[test]
fn going_back_comes_to_the_same_state() {
    let recording = named("agent-killed-and-tasks-found-again");
    let mut player = Player::new(&recording);
    let mut states = vec![None];
    while player.step().is_some() {
        states.push(player.agent().cloned());
    }
    for number in (1..=recording.len()).rev().step_by(7) {
        player.go_to(number);
        assert_eq!(player.at(), number);
        assert_eq!(player.agent(), states[number].as_ref(), "step {number}");
    }
}

#[test]
fn the_story_names_who_acts() {
    let text = story::text(&named("agent-killed-and-tasks-found-again"));
    let mut lines = text.lines();
    let title = lines.next().unwrap();
    for column in [
        "seconds",
        "step",
        "agent",
        "people",
        "store",
        "shop.web[0]",
        "shop.web[1]",
    ] {
        assert!(title.contains(column), "{title}");
    }
    for line in [
        "→ the agent begins",
        "← main: look for",
        "found running",
        "→ stop job shop",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
}

#[test]
fn why_follows_one_task_only() {
    let recording = named("agent-killed-and-tasks-found-again");
    let agent = {
        let mut player = Player::new(&recording);
        player.go_to(recording.len());
        player.agent().unwrap().clone()
    };
    let alloc = agent.view().allocs().next().unwrap().record().id;
    let task = Entity::find(&recording, &format!("{}/log", alloc.short())).unwrap();
    let chain = why::chain(&recording, &task);
    assert!(!chain.is_empty());
    for link in &chain {
        // Its leader's end touches it; what becomes of the task before it does not.
        let other = format!("{}/init", alloc.short());
        assert!(!link.input.contains(&other), "{link:?}");
    }
    let found = |link: &why::Link| link.input.contains("/log found ended");
    assert!(chain.iter().any(found), "{chain:?}");
    let whole = why::chain(&recording, &Entity::find(&recording, "shop").unwrap());
    assert!(whole.len() > chain.len());
    let wrong = Entity::find(&recording, "no-such-thing")
        .unwrap_err()
        .to_string();
    assert!(wrong.contains("jobs are shop"), "{wrong}");
    let ambiguous = Entity::find(&recording, "log").unwrap_err().to_string();
    assert!(ambiguous.contains("may be any of"), "{ambiguous}");
}
