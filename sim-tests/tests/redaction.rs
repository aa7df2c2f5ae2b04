//! What is hidden in recordings makes no difference: agents of random worlds, with all their troubles,
//! do the same when they are told the same without its secrets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::sync::Arc;

use drover_core::input::LocalInput;
use drover_core::record::redact::{How, Redacted, TokenKey};
use drover_core::record::{Header, Start, Step};
use drover_core::time::Span;
use drover_io_sim::replay::{Player, Recording, Segment, verify};
use drover_io_sim::{Faults, Sim};
use drover_sim_tests::chaos;
use serde::Serialize;
use serde::de::DeserializeOwned;

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
    sim.world.faults = Faults::swarm(seed);
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
            sim.ask(LocalInput::Register {
                job: Arc::new(job),
                expect_index: None,
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
    if let Some((step, difference)) = verify(recording).difference {
        panic!("seed {seed}, step {step}: {difference}");
    }
}

#[test]
fn without_its_secrets_a_life_goes_the_same_way() {
    let mut steps = 0;
    for seed in 0..SEEDS {
        let recorded = recorded(&life(seed));
        steps += recorded.steps.len();
        plays_the_same(&Recording::of(vec![recorded]), seed);
    }
    assert!(steps > 2_000, "only {steps} steps were played");
}

#[test]
fn a_state_without_its_secrets_goes_on_the_same_way() {
    for seed in 0..SEEDS / 3 {
        let life = life(seed);
        let whole = Recording::of(vec![life.clone()]);
        let recorded = recorded(&life);
        for steps in (1..life.steps.len()).step_by(23) {
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
