//! Tasks that wait for services.

use drover_core::agent::{TaskWait, Wait};
use drover_core::model::job::Job;
use drover_core::model::policy::RestartMode;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{EVER, TaskExt, batch, check, checked, registered, service, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

const MINUTE: Span = Span::secs(60);

/// A service without checks.
fn database() -> Job {
    let mut main = task("database").restarts(3, Span::secs(3600), Span::secs(1), RestartMode::Fail);
    main.services = vec![registered("db", "5432")];
    service("database", [main])
}

/// The same with a check each minute: the first result is there within that time.
fn checked_database() -> Job {
    let mut job = database();
    let every = check("tcp", 60, &[]);
    job.task_groups[0].tasks[0].services = vec![checked(registered("db", "5432"), [every])];
    job
}

fn web() -> Job {
    let web = task("web").restarts(3, Span::secs(3600), Span::secs(1), RestartMode::Fail);
    service("web", [web.waits_for("db")])
}

fn waits(sim: &Sim) -> bool {
    let pending = sim.agent().map(|agent| agent.pending()).unwrap_or_default();
    let waits = |wait: &Wait| matches!(wait, Wait::Task(key, TaskWait::Services) if key.task.as_str() == "web");
    pending.awaiting.iter().any(|one| waits(&one.wait))
}

fn ends_well(sim: &mut Sim) -> Result<(), Violation> {
    sim.deregister("web", false);
    sim.deregister("database", false);
    sim.converge()
}

#[test]
fn task_starts_when_its_service_is_registered() {
    for_seeds(100, |sim| {
        sim.register(&web());
        sim.until(SOON, waits)?;
        sim.run(MINUTE)?;
        sim.expect_that(sim.living("web") == 0, "it waits")?;
        sim.register(&database());
        sim.until(SOON, |sim| sim.runs("web", "web"))?;
        sim.expect_that(!waits(sim), "it waits no more")?;
        ends_well(sim)
    });
}

#[test]
fn task_starts_when_the_checks_of_its_service_pass() {
    for_seeds(50, |sim| {
        sim.world.scene.faults = Faults::none();
        sim.register(&web());
        sim.register(&checked_database());
        sim.until(SOON, |sim| sim.runs("database", "database"))?;
        sim.run(Span::secs(25))?;
        sim.expect_that(sim.living("web") == 0, "no check has passed yet")?;
        sim.until(MINUTE, |sim| sim.runs("web", "web"))?;
        ends_well(sim)
    });
}

#[test]
fn task_does_not_start_while_the_check_of_its_service_fails() {
    for_seeds(20, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::FailCheck], 1000).budget(1000);
        if sim.seed() == BENIGN {
            // In the world of seed 0 nothing fails.
            return Ok(());
        }
        sim.register(&web());
        sim.register(&checked_database());
        sim.run(Span::secs(600))?;
        sim.expect_that(sim.living("web") == 0, "the check fails")?;
        sim.world.scene.faults = Faults::none();
        sim.until(Span::secs(120), |sim| sim.runs("web", "web"))?;
        ends_well(sim)
    });
}

#[test]
fn waiting_task_that_is_stopped_is_dead() {
    for_seeds(100, |sim| {
        sim.register(&web());
        sim.until(SOON, waits)?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.dead("web", "web"))?;
        sim.expect_that(!waits(sim), "nobody waits any more")?;
        sim.converge()
    });
}

#[test]
fn restarted_task_waits_again() {
    for_seeds(50, |sim| {
        sim.world.scene.faults = Faults::none();
        sim.register(&database());
        sim.until(SOON, |sim| sim.runs("database", "database"))?;
        let job = batch(
            "web",
            [task("web").ends("30s", 1).waits_for("db").restarts(
                1,
                Span::secs(3600),
                Span::secs(1),
                RestartMode::Fail,
            )],
        );
        sim.register(&job);
        sim.until(SOON, |sim| sim.runs("web", "web"))?;
        sim.deregister("database", false);
        sim.until(SOON, waits)?;
        sim.run(MINUTE)?;
        sim.expect_that(sim.world.starts_of("web") == 1, "it waits again")?;
        sim.register(&database());
        sim.until(SOON, |sim| sim.world.starts_of("web") == 2)?;
        sim.deregister("database", false);
        sim.converge()
    });
}

#[test]
fn service_that_goes_away_stops_no_waiting_task() {
    for_seeds(50, |sim| {
        sim.register(&database());
        sim.register(&web());
        sim.until(SOON, |sim| sim.runs("web", "web"))?;
        sim.deregister("database", false);
        sim.run(MINUTE)?;
        sim.expect_that(sim.runs("web", "web") || waits(sim), "it goes on")?;
        ends_well(sim)
    });
}

#[test]
fn two_tasks_wait_for_each_other_until_one_is_changed() {
    for_seeds(50, |sim| {
        let both = |own: &str, other: &str| {
            let mut main = task(own).ends(EVER, 0).waits_for(other);
            main.services = vec![registered(own, "8080")];
            service(own, [main])
        };
        sim.register(&both("one", "two"));
        sim.register(&both("two", "one"));
        sim.run(MINUTE)?;
        sim.expect_that(sim.living("one") + sim.living("two") == 0, "nobody begins")?;
        let mut alone = both("one", "two");
        alone.task_groups[0].tasks[0].wait_for.clear();
        sim.register(&alone);
        sim.until(SOON, |sim| sim.runs("one", "one") && sim.runs("two", "two"))?;
        sim.deregister("one", false);
        sim.deregister("two", false);
        sim.converge()
    });
}

#[test]
fn wait_survives_crash_at_every_step() {
    let steps = each_crash(7, |sim| {
        sim.register(&web());
        sim.until(SOON, waits)?;
        sim.register(&database());
        sim.until(SOON, |sim| sim.runs("web", "web"))?;
        ends_well(sim)
    });
    assert!(steps > 20, "{steps}");
}
