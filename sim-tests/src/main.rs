//! Random worlds for as long as you like: `soak --seconds N [--from SEED]`, `replay SEED`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use drover_core::time::SECOND;
use drover_io_sim::{Sim, Violation};
use drover_sim_tests::chaos;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["soak", rest @ ..] => soak(number(rest, "--seconds", 10), number(rest, "--from", 0)),
        ["hunt", rest @ ..] => drover_sim_tests::hunt::command(rest),
        ["search", rest @ ..] => search(number(rest, "--seconds", 10)),
        ["replay", seed] => replay(seed.parse().unwrap_or(0)),
        _ => {
            eprintln!("usage: soak [--seconds N] [--from SEED] | replay SEED");
            ExitCode::FAILURE
        }
    }
}

fn number(words: &[&str], name: &str, default: u64) -> u64 {
    let at = words.iter().position(|word| *word == name);
    let value = at.and_then(|at| words.get(at + 1));
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

/// Tries seeds until the time is over, and says which invariants do not hold under which seed.
fn soak(seconds: u64, from: u64) -> ExitCode {
    let began = Instant::now();
    let (mut seed, mut steps, mut simulated) = (from, 0_u64, 0_u64);
    let mut violated: BTreeMap<&'static str, (u64, u64, String)> = BTreeMap::new();
    let mut reached: BTreeMap<&'static str, u64> = BTreeMap::new();
    while began.elapsed() < Duration::from_secs(seconds) {
        let mut sim = Sim::new(seed);
        let ended = catch_unwind(AssertUnwindSafe(|| chaos::run(&mut sim)));
        let ended = ended.unwrap_or_else(|_| Err(Violation::new("no_panic", "see above")));
        if let Err(violation) = ended {
            let entry = violated
                .entry(violation.invariant)
                .or_insert((0, seed, violation.detail));
            entry.0 += 1;
        }
        for (check, times) in &sim.checker.reached {
            *reached.entry(check).or_default() += times;
        }
        steps += sim.steps;
        simulated += sim.world.now().at.0 / SECOND.unsigned_abs();
        seed += 1;
    }
    println!(
        "{} seeds, {steps} steps, {} simulated hours",
        seed - from,
        simulated / 3600
    );
    for (check, times) in &reached {
        println!("{times:>12} {check}");
    }
    for (invariant, (times, first, detail)) in &violated {
        println!("VIOLATED {invariant}: {times} times, first with seed {first}: {detail}");
    }
    if violated.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Tries seeds until something is found.
fn search(seconds: u64) -> ExitCode {
    let began = Instant::now();
    let mut seed = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        let mut sim = Sim::new(seed);
        let ended = catch_unwind(AssertUnwindSafe(|| chaos::run(&mut sim)));
        let ended = ended.unwrap_or_else(|_| Err(Violation::new("no_panic", "see above")));
        seed += 1;
        if let Err(violation) = ended {
            println!(
                "{{\"found\":true,\"property\":{:?},\"search\":\"seed\",\"runs\":{seed},\"seconds\":{:.2},\"schedule_len\":{}}}",
                violation.invariant,
                began.elapsed().as_secs_f64(),
                sim.steps
            );
            return ExitCode::SUCCESS;
        }
    }
    println!(
        "{{\"found\":false,\"search\":\"seed\",\"runs\":{seed},\"seconds\":{:.2},\"schedule_len\":null}}",
        began.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}

fn replay(seed: u64) -> ExitCode {
    let mut sim = Sim::new(seed);
    let ended = chaos::run(&mut sim);
    for line in sim.world.trace.lines() {
        println!("{line}");
    }
    println!("trace {:016x}", sim.world.trace.hash());
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Violation { invariant, detail }) => {
            println!("VIOLATED {invariant}: {detail}");
            ExitCode::FAILURE
        }
    }
}
