//! Running a scenario under many seeds, and one of them again.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::current;

use drover_io_sim::{Sim, Violation};

/// How a scenario ends.
pub type Scenario = Result<(), Violation>;

const TAIL: usize = 60;

/// Runs a scenario in a new world for each of `count` seeds. `DROVER_SEED` chooses one instead.
///
/// # Panics
/// When the scenario fails: with the seed, the invariant, the end of the story, and how to see it
/// again.
#[track_caller]
pub fn for_seeds(count: u64, scenario: impl Fn(&mut Sim) -> Scenario) {
    let chosen = std::env::var("DROVER_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = match chosen {
        Some(seed) => seed..=seed,
        None => 0..=count.saturating_sub(1),
    };
    for seed in seeds {
        replay(&mut Sim::new(seed), chosen.is_some(), &scenario);
    }
}

/// Runs a scenario in `sim`; tells the whole story if asked.
///
/// # Panics
/// When the scenario fails.
#[track_caller]
pub fn replay(sim: &mut Sim, tell: bool, scenario: impl Fn(&mut Sim) -> Scenario) {
    let seed = sim.seed();
    let ended = catch_unwind(AssertUnwindSafe(|| scenario(sim)));
    if tell {
        for line in sim.world.trace.lines() {
            println!("{line}");
        }
    }
    let name = current().name().unwrap_or("").to_owned();
    let again = format!("DROVER_SEED={seed} cargo test -p drover-sim-tests {name}");
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(Violation { invariant, detail })) => {
            let tail = sim.world.trace.tail(TAIL).join("\n");
            panic!("seed {seed} violates {invariant}: {detail}\n{tail}\nagain: {again}");
        }
        Err(panic) => {
            eprintln!(
                "seed {seed}\n{}\nagain: {again}",
                sim.world.trace.tail(TAIL).join("\n")
            );
            resume_unwind(panic);
        }
    }
}

/// Runs a scenario once for each of its steps, with the agent dying after that step. Returns how
/// many steps there were.
///
/// # Panics
/// When the scenario fails.
#[track_caller]
pub fn each_crash(seed: u64, scenario: impl Fn(&mut Sim) -> Scenario) -> u64 {
    let mut at = 0;
    loop {
        let mut sim = Sim::new(seed);
        sim.crash_at = Some(at);
        replay(&mut sim, false, &scenario);
        if sim.crash_at.is_some() {
            return at;
        }
        at += 1;
    }
}
