//! Checks of services: when they run, and what follows from what they find.

use std::cell::Cell;

use drover_core::ids::JobKey;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::check::CheckStatus;
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::event::EventType;
use drover_core::model::job::Job;
use drover_core::model::policy::RestartMode;
use drover_core::model::value::Value;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{
    GroupExt, TaskExt, changed, check, check_restart, checked, registered, service, task,
};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

/// In the world of seed 0 no trouble comes, so nothing fails there.
fn nothing_fails(sim: &Sim) -> bool {
    sim.seed() == BENIGN
}

/// Everything comes to rest, without two hours of checks.
fn ends_well(sim: &mut Sim) -> Result<(), Violation> {
    sim.deregister("web", false);
    sim.converge()
}

/// A service whose task is checked so.
fn web(checks: impl Into<Vec<Value>>) -> Job {
    let mut main = task("main").restarts(3, Span::secs(3600), Span::secs(1), RestartMode::Fail);
    main.services = vec![checked(registered("web", "8080"), checks)];
    service("web", [main])
}

fn started(sim: &mut Sim, job: &Job) -> Result<(), Violation> {
    sim.register(job);
    sim.until(SOON, |sim| sim.runs("web", "main"))
}

fn status(sim: &Sim) -> Option<CheckStatus> {
    let alloc = sim.live("web")?;
    alloc.checks().first().map(|check| check.status())
}

/// How often a check restarted the task.
fn restarts(sim: &Sim) -> usize {
    let allocs = sim.allocs("web");
    let tasks = allocs.iter().flat_map(|alloc| alloc.tasks());
    let events = tasks.flat_map(|task| &task.state().events);
    let by_check = events.filter(|event| {
        event.kind == EventType::RestartSignaled && event.display_message.contains("healthcheck")
    });
    by_check.count()
}

fn failing(permille: u16) -> Faults {
    Faults::only(&[Fault::FailCheck], permille)
}

#[test]
fn check_is_pending_until_half_its_interval_and_then_passes() {
    for_seeds(50, |sim| {
        sim.world.scene.faults = Faults::none();
        started(sim, &web([check("http", 60, &[])]))?;
        sim.run(Span::secs(29))?;
        sim.expect_that(status(sim) == Some(CheckStatus::Pending), "not yet")?;
        sim.run(Span::secs(15))?;
        sim.expect_that(status(sim) == Some(CheckStatus::Success), "it passes")?;
        ends_well(sim)
    });
}

#[test]
fn failing_check_restarts_its_task_after_the_limit() {
    for_seeds(50, |sim| {
        if nothing_fails(sim) {
            return Ok(());
        }
        sim.world.scene.faults = failing(1000);
        let restart = check_restart(3, Span::ZERO);
        started(sim, &web([check("http", 10, &[restart])]))?;
        // Runs at 5 to 6.25 s, and each 10 s from then: the third fails after 25 s at the earliest.
        sim.run(Span::secs(24))?;
        sim.expect_that(restarts(sim) == 0, "two failures are too few")?;
        sim.until(Span::secs(10), |sim| restarts(sim) == 1)?;
        sim.until(SOON, |sim| sim.world.starts_of("main") == 2)?;
        ends_well(sim)
    });
}

/// A service that does badly now and then is not restarted: it never did so often in a row.
#[test]
fn failures_before_a_good_answer_do_not_add_up() {
    for_seeds(20, |sim| {
        sim.world.scene.faults = Faults::none();
        let restart = check_restart(3, Span::ZERO);
        started(sim, &web([check("http", 10, &[restart])]))?;
        for _ in 0..4 {
            sim.until(SOON, |sim| status(sim) == Some(CheckStatus::Success))?;
            // It is asked once or twice meanwhile.
            sim.world.break_services(Span::secs(19));
            sim.until(SOON, |sim| status(sim) == Some(CheckStatus::Failure))?;
        }
        sim.until(SOON, |sim| status(sim) == Some(CheckStatus::Success))?;
        sim.expect_that(restarts(sim) == 0, "it is left alone")?;
        ends_well(sim)
    });
}

/// A redirect is an answer, too, and so is one without content.
#[test]
fn each_answer_below_400_passes() {
    for_seeds(20, |sim| {
        sim.world.scene.faults = Faults::none();
        started(sim, &web([check("http", 10, &[])]))?;
        sim.until(SOON, |sim| status(sim) == Some(CheckStatus::Success))?;
        for _ in 0..6 {
            sim.run(Span::secs(10))?;
            sim.expect_that(status(sim) == Some(CheckStatus::Success), "it passes")?;
        }
        ends_well(sim)
    });
}

#[test]
fn restart_by_a_check_is_explained_by_its_failure() {
    for_seeds(20, |sim| {
        if nothing_fails(sim) {
            return Ok(());
        }
        sim.world.scene.faults = failing(1000);
        let restart = check_restart(1, Span::ZERO);
        started(sim, &web([check("http", 10, &[restart])]))?;
        let explained = |sim: &Sim| {
            let job = (sim.view()?).explain_job(sim.world.now(), &JobKey::local("web"))?;
            let task = job.allocs.first()?.tasks.first().cloned()?;
            Some((task.last?.kind, task.cause.map(|event| event.kind)))
        };
        let expected = Some((EventType::Restarting, Some(EventType::RestartSignaled)));
        sim.until(Span::secs(60), |sim| explained(sim) == expected)
    });
}

#[test]
fn failures_within_grace_do_not_count() {
    for_seeds(50, |sim| {
        if nothing_fails(sim) {
            return Ok(());
        }
        sim.world.scene.faults = failing(1000);
        let restart = check_restart(2, Span::secs(100));
        started(sim, &web([check("tcp", 10, &[restart])]))?;
        sim.run(Span::secs(99))?;
        sim.expect_that(restarts(sim) == 0, "it has its grace")?;
        sim.until(Span::secs(40), |sim| restarts(sim) == 1)?;
        ends_well(sim)
    });
}

#[test]
fn restarts_by_a_check_use_up_the_restart_policy() {
    for_seeds(50, |sim| {
        if nothing_fails(sim) {
            return Ok(());
        }
        sim.world.scene.faults = failing(1000);
        let mut job = web([check("http", 10, &[check_restart(1, Span::ZERO)])]);
        let group = &mut job.task_groups[0];
        *group = group.clone().never_again();
        group.tasks[0] =
            group.tasks[0]
                .clone()
                .restarts(2, Span::secs(3600), Span::secs(1), RestartMode::Fail);
        started(sim, &job)?;
        let failed = |sim: &Sim| sim.allocs("web")[0].record().status == ClientStatus::Failed;
        sim.until(Span::secs(120), failed)?;
        sim.expect_that(sim.world.starts_of("main") == 3, "two restarts are allowed")?;
        ends_well(sim)
    });
}

#[test]
fn hanging_check_fails_at_its_timeout() {
    for_seeds(50, |sim| {
        if nothing_fails(sim) {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::HangCheck], 1000);
        started(sim, &web([check("http", 60, &[])]))?;
        sim.run(Span::secs(32))?;
        sim.expect_that(status(sim) == Some(CheckStatus::Pending), "it may take 5 s")?;
        sim.until(Span::secs(15), |sim| {
            status(sim) == Some(CheckStatus::Failure)
        })?;
        let words = sim.live("web").map(|alloc| alloc.checks()[0].words());
        let reported = words.is_some_and(|words| words.contains("no answer within 5s"));
        sim.expect_that(reported, "it says why")?;
        ends_well(sim)
    });
}

#[test]
fn thresholds_delay_what_is_thought_of_a_service() {
    for_seeds(50, |sim| {
        if nothing_fails(sim) {
            return Ok(());
        }
        sim.world.scene.faults = failing(1000).budget(2);
        let fields = [
            ("SuccessBeforePassing", Value::Int(2)),
            ("FailuresBeforeCritical", Value::Int(2)),
        ];
        started(sim, &web([check("http", 20, &fields)]))?;
        sim.run(Span::secs(20))?;
        sim.expect_that(status(sim) == Some(CheckStatus::Pending), "one is too few")?;
        sim.until(SOON, |sim| status(sim) == Some(CheckStatus::Failure))?;
        sim.run(Span::secs(21))?;
        sim.expect_that(status(sim) == Some(CheckStatus::Failure), "one is too few")?;
        sim.until(SOON, |sim| status(sim) == Some(CheckStatus::Success))?;
        ends_well(sim)
    });
}

#[test]
fn deployment_with_a_failing_check_fails_and_says_which() {
    for_seeds(50, |sim| {
        if nothing_fails(sim) {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::HangCheck], 1000);
        let mut job = web([check("http", 60, &[])]);
        job.task_groups[0] = job.task_groups[0].clone().rolls(1);
        started(sim, &job)?;
        let over = |sim: &Sim| {
            let view = sim.view();
            let mut all = view.into_iter().flat_map(|view| view.deployments());
            all.any(|one| one.status == DeploymentStatus::Failed)
        };
        sim.until(Span::secs(700), over)?;
        let events = sim
            .task("web", "main")
            .map(|task| task.state().events.clone());
        let reported = events.into_iter().flatten().any(|event| {
            let words = &event.display_message;
            event.kind == EventType::AllocUnhealthy
                && words.contains("Service \"web\" check \"alive\" failing")
        });
        sim.expect_that(reported, "the check is named")?;
        ends_well(sim)
    });
}

#[test]
fn deployment_without_health_override_waits_for_checks() {
    for_seeds(50, |sim| {
        sim.world.scene.faults = Faults::none();
        for (health_check, at_30) in [("checks", None), ("task_states", Some(true))] {
            let mut job = web([check("http", 60, &[])]);
            job.task_groups[0] = job.task_groups[0].clone().rolls(1);
            if let Some(update) = &mut job.task_groups[0].update {
                update.health_check = health_check.to_owned();
            }
            job.id = format!("web-{health_check}");
            sim.register(&job);
            let id = job.id.clone();
            let known = move |sim: &Sim| {
                let alloc = sim.live(&id)?;
                Some(alloc.record().health?.healthy)
            };
            let id = job.id.clone();
            sim.until(SOON, |sim| sim.runs(&id, "main"))?;
            sim.run(Span::secs(25))?;
            sim.expect_that(known(sim) == at_30, health_check)?;
            sim.until(Span::secs(60), |sim| known(sim) == Some(true))?;
        }
        ends_well(sim)
    });
}

#[test]
fn check_ignored_by_deployments_delays_no_health() {
    for_seeds(50, |sim| {
        sim.world.scene.faults = failing(1000);
        let ignored = [("OnUpdate", Value::from("ignore"))];
        let mut job = web([check("http", 20, &ignored)]);
        job.task_groups[0] = job.task_groups[0].clone().rolls(1);
        started(sim, &job)?;
        sim.until(Span::secs(30), |sim| {
            let alloc = sim.live("web");
            alloc.is_some_and(|alloc| alloc.record().health.is_some_and(|it| it.healthy))
        })?;
        ends_well(sim)
    });
}

#[test]
fn late_answer_of_an_earlier_launch_counts_for_no_other() {
    for_seeds(100, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::SlowAnswer, Fault::FailCheck], 400);
        let restart = check_restart(1, Span::ZERO);
        sim.register(&web([check("http", 10, &[restart])]));
        sim.run(Span::secs(300))?;
        ends_well(sim)
    });
}

#[test]
fn stopped_task_is_not_checked_and_its_stop_waits_for_no_check() {
    for_seeds(50, |sim| {
        if nothing_fails(sim) {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::HangCheck], 1000);
        let patient = ("Timeout", Value::from("1h"));
        started(sim, &web([check("http", 20, &[patient])]))?;
        let asked = |sim: &Sim| {
            let alloc = sim.live("web");
            alloc.is_some_and(|alloc| alloc.checks()[0].awaited().is_some())
        };
        sim.until(SOON, asked)?;
        sim.stop_alloc("web");
        sim.until(SOON, |sim| sim.allocs("web")[0].record().finished)?;
        let check = &sim.allocs("web")[0].checks()[0];
        let over = !check.is_on() && check.awaited().is_none();
        sim.expect_that(over, "nothing is awaited")?;
        ends_well(sim)
    });
}

#[test]
fn change_of_checks_needs_no_new_start() {
    for_seeds(50, |sim| {
        sim.world.scene.faults = Faults::none();
        let first = check("http", 60, &[]);
        let job = web([first.clone()]);
        started(sim, &job)?;
        sim.until(SOON, |sim| status(sim) == Some(CheckStatus::Success))?;
        let second = check("tcp", 60, &[("Name", Value::from("port"))]);
        sim.register(&changed(&job, |group| {
            let service = checked(registered("web", "8080"), [second.clone(), first.clone()]);
            group.tasks[0].services = vec![service];
        }));
        sim.run(Span::secs(5))?;
        let statuses: Vec<_> = sim
            .live("web")
            .into_iter()
            .flat_map(|alloc| alloc.checks().iter().map(|check| check.status()))
            .collect();
        let wanted = [CheckStatus::Pending, CheckStatus::Success];
        sim.expect_that(statuses == wanted, "what is the same goes on")?;
        sim.expect_that(sim.world.starts_of("main") == 1, "the task goes on")?;
        ends_well(sim)
    });
}

#[test]
fn script_check_runs_in_its_task() {
    for_seeds(50, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::BreakService], 300);
        started(sim, &web([check("script", 20, &[])]))?;
        sim.run(Span::secs(300))?;
        sim.run(Span::secs(300))?;
        sim.world.scene.faults = Faults::none();
        sim.run(Span::secs(1200))?;
        sim.expect_that(status(sim) == Some(CheckStatus::Success), "it passes")?;
        ends_well(sim)
    });
}

#[test]
fn agent_dies_at_any_step_of_a_restart_by_a_check() {
    let restarted = Cell::new(0);
    let steps = each_crash(0, |sim| {
        sim.world.break_services(Span::secs(20));
        let restart = check_restart(2, Span::ZERO);
        started(sim, &web([check("http", 10, &[restart])]))?;
        sim.run(Span::secs(60))?;
        let often = restarts(sim);
        sim.expect_that(often <= 1, "it is restarted once at most")?;
        let starts = sim.world.starts_of("main");
        sim.expect_that(starts <= 2, &format!("{starts} starts"))?;
        restarted.set(restarted.get() + often);
        ends_well(sim)?;
        sim.expect_that(sim.world.starts_of("main") == starts, "nothing more")
    });
    assert!(steps > 10, "{steps} steps");
    assert!(restarted.get() > 0, "no check restarted anything");
}

/// What a task's own health check finds counts as what is found from outside; before it found anything, nothing counts.
#[test]
fn own_health_check_passes_after_its_task_started() {
    for_seeds(50, |sim| {
        sim.world.scene.faults = Faults::none();
        started(sim, &web([check("healthcheck", 10, &[])]))?;
        sim.run(Span::secs(10))?;
        sim.expect_that(status(sim) == Some(CheckStatus::Pending), "it starts")?;
        sim.run(Span::secs(10))?;
        sim.expect_that(status(sim) == Some(CheckStatus::Success), "it is healthy")?;
        ends_well(sim)
    });
}

#[test]
fn failing_own_health_check_restarts_its_task() {
    for_seeds(50, |sim| {
        if nothing_fails(sim) {
            return Ok(());
        }
        sim.world.scene.faults = failing(1000);
        let restart = check_restart(2, Span::ZERO);
        started(sim, &web([check("healthcheck", 10, &[restart])]))?;
        // At about 5 s it starts; the second failure is at about 25 s.
        sim.run(Span::secs(23))?;
        sim.expect_that(restarts(sim) == 0, "one failure is too few")?;
        sim.until(Span::secs(10), |sim| restarts(sim) == 1)?;
        sim.until(SOON, |sim| sim.world.starts_of("main") == 2)?;
        ends_well(sim)
    });
}

/// What never answers has failed, in its time.
#[test]
fn silent_own_health_check_fails_in_time() {
    for_seeds(50, |sim| {
        if nothing_fails(sim) {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::HangCheck], 1000);
        started(sim, &web([check("healthcheck", 10, &[])]))?;
        sim.until(Span::secs(60), |sim| {
            status(sim) == Some(CheckStatus::Failure)
        })?;
        ends_well(sim)
    });
}
