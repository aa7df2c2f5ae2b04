//! The searching program: see `usage`.

mod args;

use std::fs;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::slice::from_ref;
use std::time::Instant;

use args::Args;
use drover_io_sim::Violation;
use drover_io_sim::script::Script;
use drover_sim_tests::report::{Failure, report, story};
use drover_sim_tests::small::{Small, WORLDS};
use drover_sim_tests::soak::{Plan, Soaked, World, soak};
use drover_sim_tests::{chaos, fleet, hunt};

const USAGE: &str = "\
usage: drover-sim-tests COMMAND

  soak      tries random worlds, some of them fleets, and reports what does not hold
            [--seconds 10] [--from SEED] [--seeds N] [--threads N] [--verbose]
  search    tries random worlds until something does not hold, and prints one line of JSON
            [--seconds 60] [--from SEED] [--threads 1]
  replay    plays one world again and draws its story (of a fleet, that of each node): a seed, or
            a script that a failure wrote
            SEED | FILE  [--shrink]
  exhaust   tries every order in small worlds, all of them or the named one
            [NAME] [--states 200000]
  hunt      plants each known bug in a copy of the tree, builds it and searches for it
            [NAMES] [--check] [--some N --by WORD] [--seconds 60] [--json]
  fleet     measures how large and how fast a fleet of nodes is
            [--nodes 1000] [--seconds 600]
  hashes    prints a number for the run of each seed, to compare machines
            [--from SEED] [--seeds 100]";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    if command == "hunt" {
        return hunt::command(words);
    }
    let done = Args::parse(words).and_then(|args| match command.as_str() {
        "soak" => soak_command(&args),
        "search" => search_command(&args),
        "replay" => replay_command(&args),
        "exhaust" => exhaust_command(&args),
        "fleet" => fleet_command(&args),
        "hashes" => hashes_command(&args),
        _ => Err(USAGE.to_owned()),
    });
    done.unwrap_or_else(|why| {
        eprintln!("{why}");
        ExitCode::from(2)
    })
}

fn plan(args: &Args, seconds: u64, threads: u64, first_only: bool) -> Result<Plan, String> {
    Ok(Plan {
        from: args.number("--from", 0)?,
        seeds: args.number("--seeds", u64::MAX)?,
        seconds: args.number("--seconds", seconds)?,
        threads: usize::try_from(args.number("--threads", threads)?).unwrap_or(1),
        first_only,
    })
}

/// Tries seeds until the time is over, and reports each property that does not hold.
fn soak_command(args: &Args) -> Result<ExitCode, String> {
    let live = stderr().is_terminal();
    let soaked = quietly(|plan| {
        soak(plan, |seconds, seeds| {
            if live {
                eprint!("\r{seconds} s, {seeds} seeds ");
            }
        })
    })(plan(args, 10, 1, false)?);
    if live {
        eprintln!();
    }
    let counters = soaked.reached.iter().filter(|_| args.has("--verbose"));
    for (check, times) in counters {
        println!("{times:>12} {check}");
    }
    println!("{}", totals(&soaked));
    for (times, world, violation) in soaked.violated.values() {
        let folder = Some(Path::new("failures"));
        let report = quietly(|(): ()| report(world, violation, folder))(());
        println!("\n{times} times:\n{report}");
    }
    Ok(if soaked.violated.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn fleet_command(args: &Args) -> Result<ExitCode, String> {
    let nodes = usize::try_from(args.number("--nodes", 1000)?).unwrap_or(usize::MAX);
    let measured = fleet::measure(nodes, args.number("--seconds", 600)?);
    let measured = measured.map_err(|it| format!("{}: {}", it.invariant, it.detail))?;
    println!("{measured}");
    Ok(ExitCode::SUCCESS)
}

fn totals(soaked: &Soaked) -> String {
    let (seeds, steps) = (soaked.seeds, soaked.steps);
    let hours = soaked.simulated / 3600;
    format!("{seeds} seeds, {steps} steps, {hours} simulated hours")
}

/// Tries seeds until something does not hold, for whoever reads JSON.
fn search_command(args: &Args) -> Result<ExitCode, String> {
    let began = Instant::now();
    let soaked = quietly(|plan| soak(plan, |_, _| {}))(plan(args, 60, 1, true)?);
    let seconds = began.elapsed().as_secs_f64();
    let found = soaked.violated.into_values().next();
    let line = match &found {
        Some((_, World::Fleet(seed), violation)) => serde_json::json!({
            "found": true,
            "property": violation.invariant,
            "runs": soaked.seeds,
            "seconds": seconds,
            "seed": seed,
        }),
        Some((_, World::Node(script), violation)) => {
            let failure = quietly(|(): ()| Failure::of(script, violation))(());
            serde_json::json!({
                "found": true,
                "property": violation.invariant,
                "search": script.search,
                "runs": soaked.seeds,
                "seconds": seconds,
                "seed": script.seed,
                "schedule_len": failure.smallest.len(),
            })
        }
        None => serde_json::json!({
            "found": false,
            "runs": soaked.seeds,
            "seconds": seconds,
        }),
    };
    println!("{line}");
    Ok(ExitCode::from(u8::from(found.is_some())))
}

/// Panics inside of worlds are findings, and not for the terminal.
fn quietly<T, U>(work: impl FnOnce(T) -> U) -> impl FnOnce(T) -> U {
    |with| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let done = work(with);
        std::panic::set_hook(hook);
        done
    }
}

fn replay_command(args: &Args) -> Result<ExitCode, String> {
    let what = args.word().ok_or(USAGE)?;
    let script: Script = match what.parse() {
        Ok(seed) if fleet::is_fleet(seed) => return Ok(replay_fleet(seed)),
        Ok(seed) => chaos::script(seed),
        Err(_) => {
            let text = fs::read(what).map_err(|why| format!("{what}: {why}"))?;
            serde_json::from_slice(&text).map_err(|why| format!("{what} is no script: {why}"))?
        }
    };
    let (ran, picture) = story(&script);
    print(&format!(
        "{picture}trace {:016x}\n",
        ran.sim.world.scene.trace.hash()
    ));
    let Err(violation) = ran.verdict else {
        return Ok(ExitCode::SUCCESS);
    };
    if args.has("--shrink") {
        print(&Failure::of(&script, &violation).to_string());
    } else {
        let Violation { invariant, detail } = violation;
        println!("VIOLATED {invariant}: {detail}");
    }
    Ok(ExitCode::FAILURE)
}

fn replay_fleet(seed: u64) -> ExitCode {
    let played = quietly(|seed| fleet::play(seed, fleet::FEW, true))(seed);
    print(&format!(
        "{}trace {:016x}\n",
        played.stories(),
        played.hash()
    ));
    let Err(violation) = played.verdict else {
        return ExitCode::SUCCESS;
    };
    let after = played.fleet.at();
    let Violation { invariant, detail } = violation;
    println!("VIOLATED {invariant} after {after}: {detail}");
    ExitCode::FAILURE
}

fn exhaust_command(args: &Args) -> Result<ExitCode, String> {
    let states = usize::try_from(args.number("--states", 200_000)?).unwrap_or(usize::MAX);
    let worlds = match args.word() {
        None => WORLDS,
        Some(name) => from_ref(Small::named(name).ok_or(format!("there is no world {name}"))?),
    };
    let mut found = false;
    println!(
        "{:<10} {:>8} {:>9} {:>6} {:>8}",
        "world", "states", "turns", "depth", "seconds"
    );
    for world in worlds {
        let began = Instant::now();
        let explored = world.explore(states);
        println!(
            "{:<10} {:>8} {:>9} {:>6} {:>8.2}  {}{}",
            world.name,
            explored.states,
            explored.turns,
            explored.depth,
            began.elapsed().as_secs_f64(),
            if explored.complete {
                ""
            } else {
                "(not all of it) "
            },
            world.about
        );
        if let Some((steps, Violation { invariant, detail })) = explored.failure {
            found = true;
            print(&world.draw(&steps));
            println!("VIOLATED {invariant} after {} steps: {detail}", steps.len());
        }
    }
    Ok(ExitCode::from(u8::from(found)))
}

/// Prints as much as the reader wants: who pipes into `head` has seen enough.
fn print(text: &str) {
    let _ = stdout().write_all(text.as_bytes());
}

fn hashes_command(args: &Args) -> Result<ExitCode, String> {
    let from = args.number("--from", 0)?;
    for seed in from..from + args.number("--seeds", 100)? {
        let hash = match World::of(seed) {
            World::Node(script) => script.run(Default::default()).sim.world.scene.trace.hash(),
            World::Fleet(seed) => fleet::play(seed, fleet::FEW, false).hash(),
        };
        println!("{seed} {hash:016x}");
    }
    Ok(ExitCode::SUCCESS)
}
