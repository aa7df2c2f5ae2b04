//! The wall clock is set, and nothing that counts a length of time is the later for it.

use drover_core::agent::requests::Evaluate;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::time::Span;
use drover_sim_tests::build::{GroupExt, TaskExt, batch, group, job, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{Inspect, SOON};

const DAY: Span = Span::secs(24 * 3600);
const HOUR_BACK: Span = Span::secs(-3600);

/// A service that fails once it ran for a while, and whose allocation is replaced after ten seconds.
fn fails() -> Job {
    let main = task("main")
        .ends("20s", 1)
        .restarts(0, DAY, Span::secs(1), RestartMode::Fail);
    let group = group("g", [main]).reschedules(5, Span::secs(10));
    job("web", JobType::Service, [group])
}

#[test]
fn clock_set_back_delays_no_reschedule() {
    for_seeds(60, |sim| {
        sim.register(&fails());
        sim.until(SOON, |sim| sim.dead("web", "main"))?;
        sim.run(Span::secs(5))?;
        sim.world.scene.jump_wall(HOUR_BACK);
        sim.until(Span::secs(30), |sim| sim.world.starts_of("main") == 2)?;
        sim.until(SOON, |sim| sim.dead("web", "main"))?;
        sim.converge()
    });
}

#[test]
fn clock_set_forward_hastens_no_reschedule() {
    for_seeds(60, |sim| {
        sim.register(&fails());
        sim.until(SOON, |sim| sim.dead("web", "main"))?;
        sim.world.scene.jump_wall(Span::secs(3600));
        sim.ask(Evaluate {
            job: fails().key(),
            force_reschedule: false,
        });
        sim.run(Span::secs(5))?;
        sim.expect_that(sim.world.starts_of("main") == 1, "not before its time")?;
        sim.until(Span::secs(30), |sim| sim.world.starts_of("main") == 2)
    });
}

/// Of what was before an agent's restart only wall time is left: the delay bounds what it says.
#[test]
fn clock_set_back_while_down_costs_one_delay_at_most() {
    for_seeds(60, |sim| {
        sim.register(&fails());
        sim.until(SOON, |sim| sim.dead("web", "main"))?;
        sim.run(Span::secs(5))?;
        sim.world.scene.jump_wall(HOUR_BACK);
        sim.restart()?;
        sim.until(Span::secs(30), |sim| sim.world.starts_of("main") == 2)
    });
}

#[test]
fn clock_set_back_while_down_costs_one_restart_delay_at_most() {
    for_seeds(60, |sim| {
        let main = task("main")
            .ends("10s", 1)
            .restarts(3, DAY, Span::secs(8), RestartMode::Fail);
        sim.register(&service("web", [main]));
        sim.until(SOON, |sim| {
            sim.task("web", "main")
                .is_some_and(|task| task.record().paused_until.is_some())
        })?;
        sim.run(Span::secs(2))?;
        sim.world.scene.jump_wall(HOUR_BACK);
        sim.restart()?;
        sim.until(Span::secs(30), |sim| sim.world.starts_of("main") == 2)
    });
}

#[test]
fn clock_set_back_resets_no_restart_budget() {
    for_seeds(60, |sim| {
        let main = task("main").ends("10s", 1).restarts(
            2,
            Span::secs(600),
            Span::secs(1),
            RestartMode::Fail,
        );
        sim.register(&batch("sum", [main]));
        for starts in 1..=2 {
            sim.until(SOON, |sim| sim.world.starts_of("main") == starts)?;
            sim.world.scene.jump_wall(HOUR_BACK);
        }
        sim.until(Span::secs(300), |sim| {
            sim.all_over("sum", ClientStatus::Failed)
        })?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == 3, "one start and two more")
    });
}

/// A service that was replaced as often as it may be fails once more, after the clock was set.
fn replaced_after(by: Span, starts: u32) {
    for_seeds(60, |sim| {
        let main = task("main")
            .ends("20s", 1)
            .restarts(0, DAY, Span::secs(1), RestartMode::Fail);
        let group = group("g", [main]).reschedules(2, Span::secs(10));
        sim.register(&job("web", JobType::Service, [group]));
        sim.until(Span::secs(300), |sim| sim.world.starts_of("main") == 3)?;
        sim.world.scene.jump_wall(by);
        sim.run(Span::secs(600))?;
        let all = sim.world.starts_of("main");
        sim.expect_that(all == starts, &format!("{all} starts"))?;
        sim.converge()
    });
}

#[test]
fn clock_set_back_resets_no_reschedules() {
    replaced_after(HOUR_BACK, 3);
}

/// What was written under a clock that was years ahead is as old as what is years old.
#[test]
fn clock_set_far_back_uses_up_no_reschedules() {
    replaced_after(Span(-4000 * DAY.0), 5);
}
