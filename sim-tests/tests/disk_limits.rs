//! What allocations' directories take: measured, reported and limited.

use drover_core::config::Config;
use drover_core::model::event::EventType;
use drover_core::model::job::JobType;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, listening, node};
use drover_sim_tests::Scenario;
use drover_sim_tests::build::{group, job, task};
use drover_sim_tests::inspect::Inspect;

const INTERVAL: Span = Span::secs(60);

fn world(seed: u64, quota: bool) -> Sim {
    let mut config = listening(Config::new(0, node(), "/alloc"));
    config.dir_usage = Some(INTERVAL);
    config.disk_quota = quota;
    Sim::with_config(seed, config)
}

fn run(story: impl Fn(&mut Sim) -> Scenario) {
    // In the world of seed 0 no trouble comes.
    for seed in 1..20 {
        let mut sim = world(seed, true);
        assert_eq!(story(&mut sim), Ok(()), "seed {seed}");
    }
}

fn web(sim: &mut Sim) -> Scenario {
    let tasks = [task("main"), task("other")];
    sim.register(&job("web", JobType::Service, [group("g", tasks)]));
    sim.run(Span::secs(30))
}

/// How often each task was told.
fn reports(sim: &Sim) -> Vec<usize> {
    let tasks = sim
        .allocs("web")
        .into_iter()
        .flat_map(|alloc| alloc.tasks().to_vec());
    let reports = |events: &[std::sync::Arc<drover_core::model::event::TaskEvent>]| {
        events
            .iter()
            .filter(|event| event.kind == EventType::DiskExceeded)
            .count()
    };
    tasks.map(|task| reports(&task.state().events)).collect()
}

#[test]
fn oversized_directory_is_reported_once_to_each_task() {
    run(|sim| {
        web(sim)?;
        // It takes too much from the first look on.
        sim.world.scene.faults = Faults::only(&[Fault::FillDir], 1000).budget(1);
        sim.run(Span::secs(600))?;
        sim.expect_that(reports(sim) == [1, 1], "both tasks are told, and once")?;
        sim.converge()
    });
}

/// From too much to almost too much and back again is one story.
#[test]
fn almost_oversized_directory_is_not_reported_again() {
    run(|sim| {
        web(sim)?;
        sim.world.scene.faults = Faults::only(&[Fault::FillDir], 1000).budget(3);
        sim.run(Span::secs(600))?;
        sim.expect_that(reports(sim) == [1, 1], "it never took clearly less")?;
        // Little, and too much again.
        sim.world.scene.faults = Faults::only(&[Fault::FillDir], 1000).budget(2);
        sim.run(Span::secs(600))?;
        sim.expect_that(reports(sim) == [2, 2], "it took clearly less in between")?;
        sim.converge()
    });
}

/// Looks that fail, and that nobody answers, are made again.
#[test]
fn unanswered_measurement_is_repeated() {
    run(|sim| {
        web(sim)?;
        sim.world.scene.faults = Faults::only(&[Fault::HangProbe, Fault::FailProbe], 500);
        sim.run(Span::secs(3600))?;
        sim.world.scene.faults = Faults::only(&[Fault::FillDir], 1000).budget(1);
        sim.until(Span::secs(1800), |sim| reports(sim) == [1, 1])?;
        sim.converge()
    });
}

/// Where nothing runs, nobody looks.
#[test]
fn idle_node_measures_no_directories() {
    run(|sim| {
        sim.run(Span::secs(3600))?;
        let asked = |sim: &Sim| {
            let reached = sim.checker.reached();
            let mut reached = reached.filter(|(name, _)| *name == "dirs_are_measured_in_intervals");
            reached.next().map_or(0, |(_, times)| times)
        };
        sim.expect_that(asked(sim) == 0, "nothing runs")?;
        web(sim)?;
        sim.run(Span::secs(3600))?;
        sim.expect_that(asked(sim) >= 50, "it is looked at each minute")?;
        sim.converge()
    });
}

#[test]
fn directory_is_limited_to_size_of_job_file() {
    run(|sim| {
        let mut job = job("web", JobType::Service, [group("g", [task("main")])]);
        let disk = drover_core::model::group::EphemeralDisk {
            size_mb: 50,
            ..Default::default()
        };
        job.task_groups[0].ephemeral_disk = Some(disk);
        sim.register(&job);
        sim.run(Span::secs(30))?;
        let limits: Vec<u64> = sim.world.dirs.quotas.values().copied().collect();
        sim.expect_that(limits == [50 * 1024 * 1024], "50 MiB and no more")?;
        sim.converge()
    });
}

#[test]
fn directory_has_no_limit_unless_that_is_wanted() {
    for seed in 0..5 {
        let mut sim = world(seed, false);
        assert_eq!(web(&mut sim), Ok(()), "seed {seed}");
        assert!(sim.world.dirs.quotas.is_empty(), "seed {seed}");
    }
}
