//! A batch job that is registered again: what is complete does not run again in the same version, and does
//! in a new one. A job that was stopped, or of which everything was garbage-collected, gets a new version.

use drover_core::agent::requests::CollectGarbage;
use drover_core::model::alloc::ClientStatus;
use drover_core::time::Span;
use drover_io_sim::Sim;
use drover_sim_tests::build::{TaskExt, batch, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{Scenario, for_seeds};

fn sum() -> drover_core::model::job::Job {
    batch("sum", [task("main").ends("5s", 0)])
}

fn run_to_completion(sim: &mut Sim) -> Scenario {
    sim.register(&sum());
    sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))
}

fn expect_starts(sim: &Sim, wanted: u32) -> Scenario {
    let starts = sim.world.starts_of("main");
    sim.expect_that(starts == wanted, &format!("{wanted} starts, not {starts}"))
}

#[test]
fn complete_batch_job_registered_again_unchanged_does_not_run_again() {
    for_seeds(60, |sim| {
        run_to_completion(sim)?;
        sim.register(&sum());
        sim.run(Span::secs(60))?;
        sim.expect_that(sim.version("sum") == Some(0), "the same version")?;
        expect_starts(sim, 1)?;
        sim.converge()
    });
}

#[test]
fn stopped_batch_job_registered_again_runs_again() {
    for_seeds(60, |sim| {
        run_to_completion(sim)?;
        sim.deregister("sum", false);
        sim.register(&sum());
        sim.until(SOON, |sim| sim.world.starts_of("main") == 2)?;
        sim.expect_that(sim.version("sum") == Some(1), "a new version")?;
        sim.converge()?;
        expect_starts(sim, 2)
    });
}

#[test]
fn purged_batch_job_registered_again_runs_again() {
    for_seeds(60, |sim| {
        run_to_completion(sim)?;
        sim.deregister("sum", true);
        sim.register(&sum());
        sim.until(SOON, |sim| sim.world.starts_of("main") == 2)?;
        sim.converge()?;
        expect_starts(sim, 2)
    });
}

/// It used to stay complete for ever, with exit code 0 for whoever ran it again.
#[test]
fn collected_batch_job_registered_again_runs_again() {
    for_seeds(60, |sim| {
        run_to_completion(sim)?;
        sim.ask(CollectGarbage);
        sim.until(SOON, |sim| sim.allocs("sum").is_empty())?;
        sim.run(Span::secs(60))?;
        expect_starts(sim, 1)?;
        sim.register(&sum());
        sim.until(SOON, |sim| sim.world.starts_of("main") == 2)?;
        sim.converge()?;
        expect_starts(sim, 2)
    });
}
