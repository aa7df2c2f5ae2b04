//! Which notices operators get, and how often.

use drover_core::config::{Config, DiskUsageLimits};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::job::JobType;
use drover_core::model::policy::RestartMode;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, listening, node};
use drover_sim_tests::build::{TaskExt, batch, changed, group, job, task};
use drover_sim_tests::inspect::{Inspect, SOON, times_checked};
use drover_sim_tests::{Scenario, for_seeds};

/// Looks at the disk that fail, and that nobody answers, change nothing of what was told.
#[test]
fn disk_pressure_is_notified_once_despite_failed_checks() {
    let mut notified = 0;
    for seed in 0..40 {
        let mut config = listening(Config::new(0, node(), "/alloc"));
        config.notices = true;
        config.disk_limits = Some(DiskUsageLimits::default());
        let mut sim = Sim::with_config(seed, config);
        let done = story(&mut sim);
        assert_eq!(done, Ok(()), "seed {seed}");
        notified += times_checked(&sim, "disk_pressure_is_told_once");
    }
    assert!(notified >= 40, "{notified}");
}

/// A job whose first version failed and whose second is complete is complete.
#[test]
fn dead_job_is_notified_by_its_last_allocation() {
    for_seeds(40, |sim| {
        let work = batch("work", [task("main").ends("1s", 1)]);
        sim.register(&changed(&work, |group| {
            let main = group.tasks[0].clone();
            group.tasks[0] = main.restarts(0, Span::secs(3600), Span::secs(1), RestartMode::Fail);
        }));
        sim.until(SOON, |sim| sim.all_over("work", ClientStatus::Failed))?;
        sim.run(SOON)?;
        sim.register(&batch("work", [task("main").ends("1s", 0)]));
        sim.until(SOON, |sim| {
            let last = sim.allocs("work").pop();
            last.is_some_and(|last| last.record().status == ClientStatus::Complete)
        })?;
        sim.run(SOON)?;
        let times = times_checked(sim, "notice_of_dead_job_is_true");
        sim.expect_that(times == 2, &format!("told twice, not {times} times"))?;
        sim.converge()
    });
}

fn story(sim: &mut Sim) -> Scenario {
    let trouble = [Fault::DiskPressure, Fault::HangProbe, Fault::FailProbe];
    sim.world.scene.faults = Faults::only(&trouble, 300);
    sim.register(&job("web", JobType::Service, [group("g", [task("main")])]));
    sim.run(Span::secs(3600))?;
    sim.converge()
}
