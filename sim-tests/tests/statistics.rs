//! What people see of statistics while counters vanish, jump back and come late. The properties of
//! `io-sim/src/check/statistics.rs` are checked at every look; the scenarios here make what is rare common.

use std::sync::atomic::{AtomicU32, Ordering};

use drover_core::agent::requests::RestartScope;
use drover_core::ids::TaskName;
use drover_core::model::job::JobType;
use drover_core::stats::board::AllocUsage;
use drover_core::stats::running::Running;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{TaskExt, group, job, service, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{Scenario, for_seeds};

/// Everything that can befall what is measured.
const TROUBLE: &[Fault] = &[
    Fault::LoseCounters,
    Fault::ResetCounters,
    Fault::LateStatistics,
    Fault::OddStatistics,
];

/// What people see of the latest allocation of a job that is not over.
fn usage(sim: &Sim, job: &str) -> AllocUsage {
    let Some(alloc) = sim.live(job) else {
        return AllocUsage::default();
    };
    let record = alloc.record();
    (sim.world.board()).of(record.id, &record.devices, &Running::of(alloc))
}

/// Somebody is asked to do something again and again, so that there are many looks.
fn samples(sim: &mut Sim, count: u32) -> Scenario {
    for _ in 0..count {
        sim.run(Span::secs(30))?;
        sim.signal("web");
    }
    Ok(())
}

#[test]
fn device_group_of_two_tasks_is_listed_once() {
    for_seeds(60, |sim| {
        let tasks = ["main", "second"].map(|name| task(name).devices("fpga", 1));
        sim.register(&service("web", tasks));
        sim.until(SOON, |sim| {
            sim.runs("web", "main") && sim.runs("web", "second")
        })?;
        samples(sim, 20)?;
        let usage = usage(sim, "web");
        let groups = usage.devices.groups();
        sim.expect_that(groups.len() == 1, "two tasks hold devices of one group")?;
        let devices = groups[0].instances.len();
        sim.expect_that(devices == 2, "both devices are listed")?;
        sim.converge()
    });
}

#[test]
fn vanished_or_reset_counters_are_unset() {
    for_seeds(150, |sim| {
        sim.world.scene.faults = Faults::only(TROUBLE, 150).budget(1000);
        sim.register(&service("web", ["main", "second", "third"].map(task)));
        sim.until(SOON, |sim| sim.runs("web", "third"))?;
        samples(sim, 40)?;
        sim.converge()
    });
}

#[test]
fn restarted_task_has_no_usage_of_earlier_launch() {
    for_seeds(150, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::LateStatistics], 400).budget(1000);
        sim.register(&service("web", ["main", "second"].map(task)));
        sim.until(SOON, |sim| sim.runs("web", "second"))?;
        for _ in 0..10 {
            samples(sim, 3)?;
            sim.restart_tasks("web", RestartScope::Running);
        }
        sim.converge()
    });
}

#[test]
fn ended_task_keeps_last_usage() {
    let kept = AtomicU32::new(0);
    for_seeds(60, |sim| {
        let tasks = [task("main"), task("side").ends("300s", 0)];
        sim.register(&job("web", JobType::Batch, [group("g", tasks)]));
        sim.until(SOON, |sim| sim.runs("web", "side"))?;
        samples(sim, 12)?;
        sim.until(SOON, |sim| sim.dead("web", "side"))?;
        let is_kept = usage(sim, "web")
            .tasks
            .contains_key(&TaskName::from("side"));
        kept.fetch_add(u32::from(is_kept), Ordering::Relaxed);
        sim.converge()
    });
    let kept = kept.into_inner();
    assert!(kept > 10, "of {kept} ended tasks something is shown");
}
