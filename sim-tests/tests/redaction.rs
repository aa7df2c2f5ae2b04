//! What is hidden in recordings makes no difference: agents of random worlds, with all their troubles,
//! do the same when they get the same without its secrets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::sync::Arc;

use drover_core::agent::requests::{CollectGarbage, Register};
use drover_core::model::job::JobType;
use drover_core::time::Span;
use drover_io_sim::replay::{Player, Recording, Segment, verify};
use drover_io_sim::{Fault, Faults, Sim};
use drover_recorder::redact::{How, Redacted, TokenKey};
use drover_recorder::{Header, Start, Step};
use drover_sim_tests::build::{TaskExt, group, job, task};
use drover_sim_tests::chaos;
use drover_sim_tests::inspect::Inspect;
use drover_sim_tests::specimen::Specimens;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const SEEDS: u64 = 60;

/// The same, written without its secrets and read again.
fn hidden<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let shown = Redacted::new(value, How::Token(TokenKey::new(11)));
    serde_json::from_str(&serde_json::to_string(&shown).unwrap()).unwrap()
}

/// The last life of an agent with random jobs in a random world, whose jobs are changed, and whose
/// texts refer to each other.
fn life(seed: u64) -> Segment {
    let mut sim = Sim::new(seed);
    sim.world.scene.faults = Faults::swarm(seed);
    for round in 0..4 {
        for (nth, job) in chaos::script(seed).jobs.iter().enumerate() {
            let mut job = job.clone();
            for task in job
                .task_groups
                .iter_mut()
                .flat_map(|group| &mut group.tasks)
            {
                let env = [
                    ("PASSWORD", "not for everybody".to_owned()),
                    ("ROUND", format!("the secret of round {}", round / 2)),
                    (
                        "URL",
                        "db://${PASSWORD}@${ROUND}/${NOMAD_TASK_NAME}".to_owned(),
                    ),
                ];
                task.env
                    .extend(env.map(|(name, value)| (name.to_owned(), value)));
                task.meta.insert("run_for".to_owned(), format!("{round}s"));
            }
            job.meta
                .insert("owner".to_owned(), format!("somebody {nth}"));
            sim.ask(Register {
                job: Arc::new(job),
                expect_index: None,
                submission: None,
            });
        }
        // What a world violates is for others to find.
        let _ = sim.run(Span::secs(20));
    }
    sim.recording().unwrap()
}

/// The recording that the real recorder would have written of this life.
fn recorded(life: &Segment) -> Segment {
    Segment {
        header: hidden::<Header>(&life.header),
        steps: life.steps.iter().map(hidden::<Step>).collect(),
        ..life.clone()
    }
}

#[track_caller]
fn plays_the_same(recording: &Recording, seed: u64) {
    if let Some((interval, difference)) = verify(recording).difference {
        panic!("seed {seed}, {interval:?}: {difference}");
    }
}

#[test]
fn redacted_inputs_give_same_effects() {
    let mut steps = 0;
    for seed in 0..SEEDS {
        let recorded = recorded(&life(seed));
        steps += recorded.steps.len();
        plays_the_same(&Recording::of(vec![recorded]), seed);
    }
    assert!(steps > 2_000, "only {steps} steps were played");
}

#[test]
fn redacted_state_gives_same_effects() {
    for seed in 0..SEEDS / 3 {
        let life = life(seed);
        let whole = Recording::of(vec![life.clone()]);
        let recorded = recorded(&life);
        for steps in (1..life.steps.len()).step_by(61) {
            let mut player = Player::new(&whole);
            player.go_to(steps + 1);
            let now = life.steps[steps - 1].now;
            let mut second = recorded.clone();
            second.steps.drain(..steps);
            second.header.step = u64::try_from(steps).unwrap();
            second.header.start = Start::Snapshot {
                agent: Box::new(hidden(player.agent().unwrap())),
                now,
            };
            let mut first = recorded.clone();
            first.steps.truncate(steps);
            plays_the_same(&Recording::of(vec![first, second]), seed);
        }
    }
}

/// How many steps are played after each state that is looked at.
const STEPS_AFTER: usize = 10;

/// Ended allocations that are garbage-collected two at a time, some of whose directories resist.
fn life_of_destroys(seed: u64) -> Segment {
    let mut sim = Sim::new(seed);
    let mut many = job(
        "many",
        JobType::Batch,
        [group("g", [task("main").ends("1s", 0)])],
    );
    many.task_groups[0].count = Some(6);
    sim.register(&many);
    let _ = sim.run(Span::secs(60));
    if seed % 2 == 1 {
        sim.world.scene.faults = Faults::only(&[Fault::FailHook, Fault::HangHook], 300);
    }
    sim.ask(CollectGarbage);
    let _ = sim.run(Span::secs(600));
    sim.recording().unwrap()
}

#[test]
fn redacted_state_during_destroys_gives_same_effects() {
    let mut busy = 0;
    for seed in 0..6 {
        let life = life_of_destroys(seed);
        let whole = Recording::of(vec![life.clone()]);
        let recorded = recorded(&life);
        let mut player = Player::new(&whole);
        for steps in 1..life.steps.len() {
            player.go_to(steps + 1);
            let agent = player.agent().unwrap();
            let state = serde_json::to_value(agent).unwrap();
            let destroys = state["shared"]["destroys"]["busy"].as_array().unwrap();
            busy += usize::from(!destroys.is_empty());
            let mut after = recorded.clone();
            after.steps.drain(..steps);
            after.steps.truncate(STEPS_AFTER);
            after.header.start = Start::Snapshot {
                agent: Box::new(hidden(agent)),
                now: life.steps[steps - 1].now,
            };
            plays_the_same(&Recording::of(vec![after]), seed);
        }
    }
    assert!(
        busy > 50,
        "only {busy} states were in the middle of a destroy"
    );
}

/// Fails unless the value, written without its secrets, is read again, and is what was written.
fn is_read_again<T: Serialize + DeserializeOwned>(value: &T) {
    let shown = Redacted::new(value, How::Token(TokenKey::new(11)));
    let text = serde_json::to_string(&shown).unwrap();
    let read: T = serde_json::from_str(&text).unwrap_or_else(|why| {
        let before = &text[why.column().saturating_sub(400)..why.column()];
        panic!("{why}, after {before}")
    });
    let again = serde_json::to_value(&read).unwrap();
    assert_eq!(again, serde_json::from_str::<Value>(&text).unwrap());
}

#[test]
fn redacted_types_round_trip() {
    let (mut headers, mut steps) = (Specimens::default(), Specimens::default());
    let mut rounds = 0;
    while rounds == 0 || !headers.unseen().is_empty() || !steps.unseen().is_empty() {
        is_read_again::<Header>(&headers.draw());
        is_read_again::<Step>(&steps.draw());
        rounds += 1;
        let missing = (headers.unseen(), steps.unseen());
        assert!(rounds < 20_000, "variants that never came: {missing:?}");
    }
}
