//! Running a scenario under many seeds, and one of them again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::current;

use drover_core::claims::resources::Amounts;
use drover_core::config::Config;
use drover_io_sim::{Sim, Violation, client_of_cluster, listening, node, timeline, with_engine};

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
    for_worlds(count, Sim::new, scenario);
}

/// The same, with an agent that keeps so many ended allocations.
///
/// # Panics
/// When the scenario fails.
#[track_caller]
pub fn for_seeds_keeping(count: u64, ended: usize, scenario: impl Fn(&mut Sim) -> Scenario) {
    let world = |seed| {
        let mut config = Config::new(0, node(), "/alloc");
        config.keep_terminal = ended;
        config.retention = None;
        Sim::with_config(seed, config)
    };
    for_worlds(count, world, scenario);
}

/// The same, on a machine that has so much of what is counted.
///
/// # Panics
/// When the scenario fails.
#[track_caller]
pub fn for_seeds_on(has: Amounts, count: u64, scenario: impl Fn(&mut Sim) -> Scenario) {
    let world = |seed| {
        let config = listening(Config::new(0, node(), "/alloc"));
        Sim::with_resources(seed, config, Some(has))
    };
    for_worlds(count, world, scenario);
}

/// The same, on a node that is in a cluster.
///
/// # Panics
/// When the scenario fails.
#[track_caller]
pub fn for_seeds_in_cluster(count: u64, scenario: impl Fn(&mut Sim) -> Scenario) {
    for_worlds(count, in_cluster, scenario);
}

/// The same, on a node that has an engine of containers.
///
/// # Panics
/// When the scenario fails.
#[track_caller]
pub fn for_seeds_on_engine(count: u64, scenario: impl Fn(&mut Sim) -> Scenario) {
    for_worlds(count, on_engine, scenario);
}

fn on_engine(seed: u64) -> Sim {
    let config = listening(Config::new(0, node(), "/alloc"));
    Sim::with_config(seed, with_engine(config))
}

fn in_cluster(seed: u64) -> Sim {
    let config = listening(Config::new(0, node(), "/alloc"));
    Sim::with_config(seed, client_of_cluster(config))
}

#[track_caller]
fn for_worlds(count: u64, world: impl Fn(u64) -> Sim, scenario: impl Fn(&mut Sim) -> Scenario) {
    let chosen = std::env::var("DROVER_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = match chosen {
        Some(seed) => seed..=seed,
        None => 0..=count.saturating_sub(1),
    };
    for seed in seeds {
        replay(|| world(seed), chosen.is_some(), &scenario);
    }
}

/// Runs a scenario in a new world; tells the whole story if asked. Returns the world at its end.
///
/// # Panics
/// When the scenario fails.
#[track_caller]
pub fn replay(
    world: impl Fn() -> Sim,
    with_story: bool,
    scenario: impl Fn(&mut Sim) -> Scenario,
) -> Sim {
    let mut sim = world();
    let failed = match catch_unwind(AssertUnwindSafe(|| scenario(&mut sim))) {
        Ok(ended) => ended.err(),
        Err(_) => Some(Violation::new("no_panic", "see above")),
    };
    if !with_story && failed.is_none() {
        return sim;
    }
    // The story is only written when somebody reads it.
    let mut again = world();
    again.world.scene.trace.keep();
    let _ = catch_unwind(AssertUnwindSafe(|| scenario(&mut again)));
    if with_story {
        print!("{}", timeline::draw(again.world.scene.trace.events()));
    }
    if let Some(Violation { invariant, detail }) = failed {
        let seed = sim.seed();
        let tail = again.world.scene.trace.tail(TAIL).join("\n");
        let name = current().name().unwrap_or("").to_owned();
        let again = format!("DROVER_SEED={seed} cargo test -p drover-sim-tests {name}");
        panic!("seed {seed} violates {invariant}: {detail}\n{tail}\nagain: {again}");
    }
    sim
}

/// Runs a scenario once for each of its steps, with the agent dying after that step. Returns how
/// many steps there were.
///
/// # Panics
/// When the scenario fails.
#[track_caller]
#[must_use = "who never dies proves nothing: check how many steps there were"]
pub fn each_crash(seed: u64, scenario: impl Fn(&mut Sim) -> Scenario) -> u64 {
    each_crash_of(|| Sim::new(seed), scenario)
}

/// The same, on a node that is in a cluster.
///
/// # Panics
/// When the scenario fails.
#[track_caller]
#[must_use = "who never dies proves nothing: check how many steps there were"]
pub fn each_crash_in_cluster(scenario: impl Fn(&mut Sim) -> Scenario) -> u64 {
    each_crash_of(|| in_cluster(0), scenario)
}

/// The same, on a node that has an engine of containers.
///
/// # Panics
/// When the scenario fails.
#[track_caller]
#[must_use = "who never dies proves nothing: check how many steps there were"]
pub fn each_crash_on_engine(scenario: impl Fn(&mut Sim) -> Scenario) -> u64 {
    each_crash_of(|| on_engine(0), scenario)
}

#[track_caller]
fn each_crash_of(new: impl Fn() -> Sim, scenario: impl Fn(&mut Sim) -> Scenario) -> u64 {
    let mut at = 0;
    loop {
        let world = || {
            let mut sim = new();
            sim.crash_at = Some(at);
            sim
        };
        let sim = replay(world, false, &scenario);
        if sim.crash_at.is_some() {
            return at;
        }
        at += 1;
    }
}
