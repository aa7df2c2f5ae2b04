//! Recordings of real agents, played again: the agent of today does what those did.
//!
//! An incident becomes a test by copying its recording into `recordings/`. With `DROVER_BLESS=1` what
//! the agent of today does is written into each of them, for when it does something else on purpose.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::fs;
use std::path::{Path, PathBuf};

use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::Effect;
use drover_core::time::Now;
use drover_io_sim::replay::entity::Entity;
use drover_io_sim::replay::{Interval, Player, Recording, Segment, outcome, story, verify, why};
use drover_recorder::redact::{How, Redacted, TokenKey};
use drover_recorder::{ContentHash, Outcome, Start, Step, file};
use serde::Serialize;

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
fn recordings_replay_with_same_effects() {
    let paths = all();
    assert!(paths.len() >= 2, "{paths:?}");
    for path in paths {
        let mut recording = Recording::open(&path).unwrap();
        if std::env::var_os("DROVER_BLESS").is_some() {
            recording = blessed(&recording, usize::MAX);
            write(&path, &recording.segments()[0]);
        }
        let verdict = verify(&recording);
        assert!(verdict.steps > 10, "{path:?} has hardly anything to play");
        assert_eq!(verdict.damages, [], "{path:?}");
        if let Some((Interval { last, .. }, difference)) = verdict.difference {
            panic!("{}, step {last}: {difference}", path.display());
        }
    }
}

/// The recording's segment as the agent of today would have it recorded, with a hash of one state in so
/// many. Those that are kept here have none: what is saved keeps its layout, and a state need not.
fn blessed(recording: &Recording, hashed_each: usize) -> Recording {
    let mut segment = recording.segments()[0].clone();
    let mut player = Player::new(recording);
    while let Some(played) = player.step() {
        let effects: Vec<Effect> = played.effects.into_iter().map(|(it, _)| it).collect();
        match played.number.checked_sub(2) {
            None => {
                if let Start::Restore { outcome: of, .. } = &mut segment.header.start {
                    *of = outcome(&effects, None);
                }
            }
            Some(step) => {
                let hashed = player
                    .agent()
                    .filter(|_| step % hashed_each == hashed_each - 1);
                segment.steps[step].outcome = outcome(&effects, hashed);
            }
        }
    }
    Recording::of(vec![segment])
}

/// Writes a segment of which nothing is to be hidden any more.
fn write(path: &Path, segment: &Segment) {
    let mut bytes = Vec::new();
    file::member(&mut bytes, &line(&segment.header)).unwrap();
    for steps in segment.steps.chunks(10) {
        let lines: Vec<u8> = steps.iter().flat_map(line).collect();
        file::member(&mut bytes, &lines).unwrap();
    }
    fs::write(path, bytes).unwrap();
}

fn line<T: Serialize>(value: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap();
    line.push(b'\n');
    line
}

/// The recording with another step.
fn with_another(recording: &Recording, at: usize, step: Step) -> Recording {
    let mut segments: Vec<Segment> = recording.segments().to_vec();
    segments[0].steps[at] = step;
    Recording::of(segments)
}

#[test]
fn difference_is_located_between_hashes() {
    let recording = blessed(&named("service-starts"), 10);
    let steps = &recording.segments()[0].steps;
    let mut agreed = 0;
    let (mut commits, mut states) = (0, 0);
    for (at, step) in steps.iter().enumerate() {
        // The beginning of the segment is step 1.
        let number = at + 2;
        let found = |change: fn(&mut Outcome)| {
            let mut step = step.clone();
            change(&mut step.outcome);
            let verdict = verify(&with_another(&recording, at, step));
            let (interval, difference) = verdict.difference.unwrap();
            assert_eq!((interval.first, interval.last), (agreed + 1, number));
            difference.to_string()
        };
        let words = found(|outcome| outcome.effects += 1);
        assert!(words.starts_with("the number of effects"), "{words}");
        if step.outcome.commit.is_some() {
            let words = found(|outcome| outcome.commit = Some(ContentHash(0)));
            assert!(words.starts_with("what is saved"), "{words}");
            assert!(words.contains("expected: 0000000000000000"), "{words}");
            assert!(words.contains("today:    commit"), "{words}");
            commits += 1;
        }
        if step.outcome.state.is_some() {
            let words = found(|outcome| outcome.state = Some(ContentHash(0)));
            assert!(words.starts_with("the state"), "{words}");
            states += 1;
        }
        if step.outcome.commit.is_some() || step.outcome.state.is_some() {
            agreed = number;
        }
    }
    assert!(commits > 3 && states > 2, "{commits} and {states} hashes");
}

#[test]
fn missing_input_is_detected() {
    let recording = named("service-starts");
    let mut segments: Vec<Segment> = recording.segments().to_vec();
    let saved = segments[0]
        .steps
        .iter()
        .position(|step| step.outcome.effects > 0)
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
fn recording_continues_from_each_snapshot() {
    for path in all() {
        let recording = Recording::open(&path).unwrap();
        for steps in (0..recording.segments()[0].steps.len()).step_by(3) {
            let both = Recording::of(cut(&recording, steps).to_vec());
            if let Some((Interval { last, .. }, difference)) = verify(&both).difference {
                let name = path.display();
                panic!("{name}, cut after {steps}, step {last}: {difference}");
            }
        }
    }
}

#[test]
fn wrong_snapshot_is_detected() {
    let recording = named("rolling-update");
    let [first, mut second] = cut(&recording, 60);
    // It begins with the state of a step later.
    let [_, later] = cut(&recording, 61);
    second.header.start = later.header.start;
    let verdict = verify(&Recording::of(vec![first, second]));
    let (_, difference) = verdict.difference.unwrap();
    assert!(
        difference.to_string().starts_with("the state"),
        "{difference}"
    );
}

#[test]
fn stepping_back_reaches_same_state() {
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
fn timeline_names_entities() {
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
        "→ the agent starts",
        "← main: recover",
        "found running",
        "deregister shop",
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
    let mut allocs = agent.view().allocs().map(AllocRunner::record);
    let alloc = allocs.next().unwrap().id;
    let other = format!("{}/", allocs.next().unwrap().name);
    let task = Entity::find(&recording, &format!("{}/log", alloc.short())).unwrap();
    let chain = why::chain(&recording, &task);
    assert!(!chain.is_empty());
    for link in &chain {
        // Its leader's end touches it; what becomes of the other copy's tasks does not.
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

/// What is saved of an allocation along with one of its tasks is about that task alone.
#[test]
fn why_leaves_out_what_becomes_of_another_task() {
    let recording = named("service-starts");
    let mut player = Player::new(&recording);
    player.go_to(recording.len());
    let agent = player.agent().unwrap();
    for alloc in agent.view().allocs() {
        let inputs_about_init = |task: &str| {
            let name = format!("{}/{task}", alloc.record().id.short());
            let task = Entity::find(&recording, &name).unwrap();
            let inputs = why::chain(&recording, &task).into_iter();
            let inputs = inputs.map(|link| link.input);
            inputs.filter(|input| input.contains("/init ")).collect()
        };
        let its_own: Vec<String> = inputs_about_init("init");
        assert!(its_own.len() > 2, "{its_own:?}");
        assert_eq!(inputs_about_init("log"), Vec::<String>::new());
    }
}
