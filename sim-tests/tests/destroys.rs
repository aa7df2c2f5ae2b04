//! Garbage collection: only so many at once, and nobody waits for ever for those that cannot be.

use drover_core::agent::requests::CollectGarbage;
use drover_core::config::Config;
use drover_core::model::job::{Job, JobType};
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{TaskExt, group, job, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

/// Six allocations that end soon.
fn many() -> Job {
    let mut job = job(
        "many",
        JobType::Batch,
        [group("g", [task("main").ends("1s", 0)])],
    );
    job.task_groups[0].count = Some(6);
    job
}

fn all_ended(sim: &mut Sim) -> Result<(), Violation> {
    sim.register(&many());
    sim.until(Span::secs(600), |sim| {
        let all = sim.allocs("many");
        all.len() == 6 && all.iter().all(|alloc| alloc.record().finished)
    })
}

fn none_left(sim: &Sim) -> bool {
    sim.allocs("many").is_empty() && sim.world.dirs.allocs.is_empty()
}

#[test]
fn removals_run_two_at_a_time() {
    assert_eq!(
        Config::new(0, drover_io_sim::node(), "/").parallel_destroys,
        2
    );
    for_seeds(200, |sim| {
        all_ended(sim)?;
        sim.ask(CollectGarbage);
        sim.until(SOON, none_left)?;
        sim.converge()
    });
}

/// The slots of those whose directories resist are free for others.
#[test]
fn failing_removal_blocks_no_other() {
    for_seeds(200, |sim| {
        all_ended(sim)?;
        sim.world.scene.faults = Faults::only(&[Fault::FailHook, Fault::HangHook], 400);
        sim.ask(CollectGarbage);
        sim.until(Span::secs(7200), none_left)?;
        sim.converge()
    });
}

/// An agent that dies goes on with those that were to go, by the same measure.
#[test]
fn restarted_agent_keeps_removal_limit() {
    for seed in 0..5 {
        let steps = each_crash(seed, |sim| {
            all_ended(sim)?;
            sim.ask(CollectGarbage);
            sim.run(Span::secs(300))?;
            // Who died before it could answer forgot that it was asked.
            sim.ask(CollectGarbage);
            sim.until(Span::secs(600), none_left)?;
            sim.converge()
        });
        assert!(steps > 20, "seed {seed}: {steps} steps");
    }
}

/// A disk that does not say how full it is is asked again, and what is too much for it goes then.
#[test]
fn unanswered_disk_usage_query_is_repeated() {
    for_seeds(40, |sim| {
        all_ended(sim)?;
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::HangProbe], 1000);
        sim.run(Span::secs(1500))?;
        sim.expect_that(sim.allocs("many").len() == 6, "nobody knows of a full disk")?;
        sim.world.scene.faults = Faults::only(&[Fault::DiskPressure], 1000);
        sim.until(Span::secs(1200), |sim| sim.allocs("many").len() < 6)?;
        sim.converge()
    });
}
