//! Whoever asks what a job, an allocation or a task is doing is always answered: in each of their states there is a
//! sentence about what is awaited, or about what comes next.

use std::cell::RefCell;
use std::collections::BTreeSet;

use drover_core::agent::requests::{CollectGarbage, PauseDeployment};
use drover_core::agent::{JobExplanation, TaskExplanation, View, Waiting};
use drover_core::alloc::runner::{AllocRunner, Phase as AllocPhase};
use drover_core::ids::JobKey;
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::model::task::Hook;
use drover_core::model::value::Value;
use drover_core::task::runner::{Phase as TaskPhase, TaskRunner};
use drover_core::time::{Now, Span};
use drover_io_sim::{Fault, Faults, Sim, Stepped, Violation};
use drover_sim_tests::build::{
    GroupExt, TaskExt, batch, changed, check, check_restart, checked, group, job, periodic,
    registered, service, task,
};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{Scenario, for_seeds};

/// At 22:15, 22:20 and so on, up to 22:55; worlds begin at 22:13:21 that day.
const EACH_FIVE: &str = "0 15-55/5 22 14 11 * 2023";

/// Every state that has to be met. `Destroyed` is none that anybody sees, and a task is deregistered in a cluster.
const STATES: [&str; 20] = [
    "allocation: prerun",
    "allocation: tasks",
    "allocation: finished",
    "allocation: destroying",
    "task: waiting",
    "task: preparing",
    "task: starting",
    "task: recovering",
    "task: running",
    "task: delaying",
    "task: stopping",
    "task: cleaning",
    "task: pausing",
    "task: dead",
    "deployment: running",
    "deployment: paused",
    "deployment: successful",
    "deployment: failed",
    "deployment: cancelled",
    "job: periodic",
];

fn of_alloc(alloc: &AllocRunner) -> &'static str {
    match alloc.phase() {
        AllocPhase::Prerun(_) => "allocation: prerun",
        AllocPhase::Tasks(_) => "allocation: tasks",
        AllocPhase::Finished => "allocation: finished",
        AllocPhase::Destroying(_) => "allocation: destroying",
        AllocPhase::DestroyPause(_) => "allocation: destroy pause",
        AllocPhase::Destroyed => "allocation: destroyed",
    }
}

fn of_task(task: &TaskRunner) -> &'static str {
    match task.phase() {
        TaskPhase::Waiting => "task: waiting",
        TaskPhase::Preparing(_) => "task: preparing",
        TaskPhase::Starting(_) => "task: starting",
        TaskPhase::Recovering(_) => "task: recovering",
        TaskPhase::Running => "task: running",
        TaskPhase::Delaying(_) => "task: delaying",
        TaskPhase::Deregistering(_) => "task: deregistering",
        TaskPhase::Stopping(_) => "task: stopping",
        TaskPhase::Cleaning(_) => "task: cleaning",
        TaskPhase::Pausing(_) => "task: pausing",
        TaskPhase::Dead(_) => "task: dead",
    }
}

fn of_deployment(status: DeploymentStatus) -> &'static str {
    match status {
        DeploymentStatus::Running => "deployment: running",
        DeploymentStatus::Paused => "deployment: paused",
        DeploymentStatus::Successful => "deployment: successful",
        DeploymentStatus::Failed => "deployment: failed",
        DeploymentStatus::Cancelled => "deployment: cancelled",
    }
}

/// Whether a task waits for nothing in this state.
fn rests(task: &TaskRunner) -> bool {
    matches!(
        task.phase(),
        TaskPhase::Waiting | TaskPhase::Running | TaskPhase::Dead(_)
    )
}

type Met = RefCell<BTreeSet<&'static str>>;

/// Lets so much time pass, and asks about everything after each step.
fn pass(sim: &mut Sim, span: Span, met: &Met) -> Scenario {
    let until = sim.world.now().at + span;
    ask(sim, met)?;
    while sim.step(until)? == Stepped::Done {
        ask(sim, met)?;
    }
    Ok(())
}

fn ask(sim: &Sim, met: &Met) -> Scenario {
    let (Some(view), now) = (sim.view(), sim.world.now()) else {
        return Ok(());
    };
    for record in view.jobs() {
        let key = record.job.key();
        let Some(explanation) = view.explain_job(now, &key) else {
            return fail(&format!("{key} is not explained"));
        };
        if record.job.schedule().is_some() {
            met.borrow_mut().insert("job: periodic");
        }
        if let Some(one) = record.deployment.and_then(|id| view.deployment(id)) {
            met.borrow_mut().insert(of_deployment(one.status));
            let is_awaited = !explanation.waiting.is_empty() || record.job.stop;
            sim.expect_that(!one.is_active() || is_awaited, "an active roll-out waits")?;
        }
        check_waiting(&explanation.waiting, explanation.next)?;
        allocs(view, now, &key, &explanation, met)?;
    }
    Ok(())
}

fn allocs(
    view: View<'_>,
    now: Now,
    key: &JobKey,
    explanation: &JobExplanation,
    met: &Met,
) -> Scenario {
    for alloc in view.allocs_of(key) {
        let state = of_alloc(alloc);
        met.borrow_mut().insert(state);
        let Some(one) = view.explain_alloc(now, alloc.record().id) else {
            return fail(&format!("{state}: it is not explained"));
        };
        if !alloc.record().finished && !explanation.allocs.contains(&one) {
            return fail(&format!("{state}: its job says nothing of it"));
        }
        check_waiting(&one.waiting, one.next)?;
        if matches!(
            alloc.phase(),
            AllocPhase::Prerun(_) | AllocPhase::Destroying(_)
        ) && one.waiting.is_empty()
        {
            return fail(&format!("{state}: nothing is awaited"));
        }
        for (task, explanation) in alloc.tasks().iter().zip(&one.tasks) {
            met.borrow_mut().insert(of_task(task));
            check_task(task, explanation)?;
        }
    }
    Ok(())
}

fn check_task(task: &TaskRunner, explanation: &TaskExplanation) -> Scenario {
    let state = of_task(task);
    if !rests(task) && explanation.waiting.is_none() {
        return fail(&format!("{state}: nothing is awaited"));
    }
    check_waiting(explanation.waiting.as_slice(), explanation.next)
}

/// Each that is awaited has words for what, and for what follows.
fn check_waiting(waiting: &[Waiting], next: &str) -> Scenario {
    let says = |one: &Waiting| !one.what.is_empty() && !one.then.is_empty();
    match waiting.iter().all(says) && !next.is_empty() {
        true => Ok(()),
        false => fail(&format!("{waiting:?}, {next:?}")),
    }
}

fn fail(why: &str) -> Scenario {
    Err(Violation::new("scenario_expectation_holds", why.to_owned()))
}

fn rolling(tasks: TaskGroup) -> Job {
    job("web", JobType::Service, [tasks.rolls(1).never_again()])
}

/// A group whose end takes its time, after tasks that come before and after the main one.
fn lasting() -> TaskGroup {
    let mut main = task("main");
    main.shutdown_delay = Span::secs(5);
    let mut group = group(
        "g",
        [
            task("first").ends("2s", 0).hook(Hook::Prestart, false),
            main,
            task("beside").hook(Hook::Prestart, true),
            task("last").ends("2s", 0).hook(Hook::Poststop, false),
        ],
    );
    group.shutdown_delay = Some(Span::secs(5));
    group
}

#[test]
fn every_state_has_a_sentence() {
    let met = Met::default();
    for_seeds(40, |sim| {
        sim.register(&rolling(lasting()));
        let failing = task("main").ends("1s", 1);
        let failing = failing.restarts(2, Span::secs(600), Span::secs(5), RestartMode::Fail);
        sim.register(&service("fails", [failing]));
        sim.register(&batch("sum", [task("main").ends("10s", 0)]));
        sim.register(&periodic(
            batch("cron", [task("main").ends("2s", 0)]),
            EACH_FIVE,
        ));
        sim.register(&service(
            "nowhere",
            [task("main").devices("nowhere/none", 1)],
        ));
        pass(sim, Span::secs(40), &met)?;
        sim.restart()?;
        pass(sim, Span::secs(10), &met)?;
        let second = changed(&rolling(lasting()), |group| {
            group.tasks[1].env = [("V".to_owned(), "2".to_owned())].into()
        });
        sim.register(&second);
        pass(sim, Span::secs(1), &met)?;
        let view = sim.view();
        let deployment = view.and_then(|view| view.job(&JobKey::local("web"))?.deployment);
        if let Some(deployment) = deployment {
            let pause = true;
            sim.ask(PauseDeployment { deployment, pause });
        }
        pass(sim, Span::secs(5), &met)?;
        let broken = changed(&second, |group| group.tasks[1] = task("main").ends("1s", 1));
        sim.register(&broken);
        pass(sim, Span::secs(60), &met)?;
        for job in ["web", "fails", "sum", "nowhere"] {
            sim.deregister(job, true);
        }
        pass(sim, Span::secs(60), &met)?;
        sim.ask(CollectGarbage {});
        pass(sim, Span::secs(30), &met)
    });
    let met = met.into_inner();
    let missing: Vec<&str> = (STATES.into_iter())
        .filter(|it| !met.contains(it))
        .collect();
    assert!(missing.is_empty(), "never met: {missing:?}");
}

/// What a job waits for.
fn waits(sim: &Sim, id: &str) -> Vec<Waiting> {
    let explained = sim
        .view()
        .and_then(|view| view.explain_job(sim.world.now(), &JobKey::local(id)));
    explained.map(|job| job.waiting).unwrap_or_default()
}

/// What its first allocation waits for.
fn alloc_waits(sim: &Sim, id: &str) -> Vec<Waiting> {
    let explained = sim
        .view()
        .and_then(|view| view.explain_job(sim.world.now(), &JobKey::local(id)));
    let alloc = explained.and_then(|job| job.allocs.into_iter().next());
    alloc.map(|alloc| alloc.waiting).unwrap_or_default()
}

fn until(waits: &[Waiting], what: &str, sim: &Sim) -> Option<Span> {
    let wait = waits.iter().find(|one| one.what == what)?;
    Some(wait.until? - sim.world.now().wall)
}

#[test]
fn holder_of_a_static_port_is_named() {
    for_seeds(20, |sim| {
        let on_port = |id: &str| {
            job(
                id,
                JobType::Service,
                [group("g", [task("main")]).static_port("http", 8080)],
            )
        };
        sim.register(&on_port("first"));
        sim.until(SOON, |sim| sim.runs("first", "main"))?;
        sim.register(&on_port("second"));
        let named = |sim: &Sim| {
            let Some(holder) = sim.live("first").map(|alloc| alloc.record().id.short()) else {
                return false;
            };
            let words = format!("held by allocation {holder} of job \"first\", group \"g\"");
            let waits = waits(sim, "second");
            waits
                .iter()
                .any(|one| one.what.contains("http=8080") && one.what.contains(&words))
        };
        sim.until(SOON, named)?;
        sim.converge()
    });
}

#[test]
fn group_that_is_left_alone_before_its_end_says_until_when() {
    for_seeds(20, |sim| {
        let mut web = group("g", [task("main")]);
        web.shutdown_delay = Some(Span::secs(100));
        sim.register(&job("web", JobType::Service, [web]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", false);
        let words = "the shutdown_delay of its group";
        let left = |sim: &Sim| until(&alloc_waits(sim, "web"), words, sim);
        sim.until(Span::secs(90), |sim| left(sim).is_some())?;
        let in_time = left(sim).is_some_and(|left| Span::ZERO < left && left <= Span::secs(100));
        sim.expect_that(in_time, "as long as the job file says")?;
        sim.converge()
    });
}

#[test]
fn end_of_max_run_duration_is_explained() {
    for_seeds(20, |sim| {
        let mut sum = group("g", [task("main")]);
        sum.max_run_duration = Some(Span::secs(1000));
        sim.register(&job("sum", JobType::Batch, [sum]));
        sim.until(SOON, |sim| sim.runs("sum", "main"))?;
        let left = until(
            &alloc_waits(sim, "sum"),
            "the end of its max_run_duration",
            sim,
        );
        let in_time = left.is_some_and(|left| Span::ZERO < left && left <= Span::secs(1000));
        sim.expect_that(in_time, &format!("{left:?}"))?;
        sim.converge()
    });
}

#[test]
fn periodic_job_explains_next_and_last_launch() {
    for_seeds(20, |sim| {
        sim.register(&periodic(
            batch("cron", [task("main").ends("2s", 0)]),
            EACH_FIVE,
        ));
        sim.until(SOON, |sim| {
            until(&waits(sim, "cron"), "the first of its times", sim).is_some()
        })?;
        let done = |sim: &Sim| {
            let waits = waits(sim, "cron");
            waits.iter().any(|one| {
                let complete = one.then.contains("of the last one: job \"cron/periodic-")
                    && one.then.ends_with("was made, and is complete");
                one.what == "the next of its times" && one.until.is_some() && complete
            })
        };
        sim.until(Span::secs(1500), done)?;
        sim.converge()
    });
}

#[test]
fn deployment_that_waits_for_people_says_what_they_are_to_do() {
    for_seeds(20, |sim| {
        let mut web = group("g", [task("main")]).rolls(1);
        if let Some(update) = &mut web.update {
            update.health_check = "manual".to_owned();
        }
        sim.register(&job("web", JobType::Service, [web]));
        let manual = |one: &Waiting| one.what.contains("health_check = \"manual\"");
        sim.until(SOON, |sim| waits(sim, "web").iter().any(manual))?;
        sim.until(SOON, |sim| {
            let waits = alloc_waits(sim, "web");
            let says = |one: &Waiting| one.then.contains("/v1/deployment/allocation-health/");
            waits.iter().any(|one| manual(one) && says(one))
        })
    });
}

/// A service that is rolled out, whose only check is this one.
fn checked_by(check: Value) -> Job {
    let mut main = task("main");
    main.services = vec![checked(registered("front", "8080"), [check])];
    rolling(group("g", [main]))
}

#[test]
fn failing_check_that_holds_up_health_is_named_and_counted() {
    for_seeds(20, |sim| {
        // In the world without faults no check fails.
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::FailCheck], 1000);
        let restart = check_restart(9, Span::ZERO);
        sim.register(&checked_by(check("http", 10, &[restart])));
        let named = |one: &Waiting| {
            let check = one
                .what
                .contains("check \"alive\" of service \"front\" (failing");
            check && one.what.contains("as its deployment demands") && one.until.is_some()
        };
        sim.until(SOON, |sim| alloc_waits(sim, "web").iter().any(named))?;
        let now = sim.world.now();
        let explained = sim
            .view()
            .and_then(|view| view.explain_job(now, &JobKey::local("web")));
        let task = explained.and_then(|job| job.allocs.first()?.tasks.first().cloned());
        let waiting = task.and_then(|task| task.waiting);
        let counts = |one: &Waiting| one.what.contains(" of 9 failures in a row are counted");
        let counted = waiting.as_ref().is_some_and(counts);
        sim.expect_that(counted, &format!("{waiting:?}"))?;
        sim.deregister("web", false);
        sim.converge()
    });
}

#[test]
fn in_place_deployment_explains_its_progress_deadline() {
    for_seeds(20, |sim| {
        sim.world.scene.faults = Faults::none();
        let first = checked_by(check("http", 10, &[]));
        sim.register(&first);
        let rolled_out = |sim: &Sim| {
            let record = sim.view().and_then(|view| view.job(&JobKey::local("web")));
            record.is_some_and(|record| record.job.stable)
        };
        sim.until(Span::secs(300), rolled_out)?;
        let second = changed(&first, |group| {
            let path = ("Path", "/other".into());
            let other = check("http", 10, &[path]);
            group.tasks[0].services = vec![checked(registered("front", "8080"), [other])];
        });
        sim.register(&second);
        let words = "all copies of its new version to be healthy";
        let left = |sim: &Sim| until(&waits(sim, "web"), words, sim);
        sim.until(SOON, |sim| left(sim).is_some())?;
        let in_time = left(sim).is_some_and(|left| left <= Span::secs(600));
        sim.expect_that(in_time, "its progress_deadline is 10 minutes")?;
        sim.deregister("web", false);
        sim.converge()
    });
}

#[test]
fn failed_allocation_explains_remaining_reschedules() {
    for_seeds(20, |sim| {
        sim.world.scene.faults = Faults::none();
        let failing = task("main").ends("1s", 1);
        let failing = failing.restarts(0, Span::secs(600), Span::secs(5), RestartMode::Fail);
        let group = group("g", [failing]).reschedules(1, Span::secs(30));
        sim.register(&job("web", JobType::Service, [group]));
        let described = |sim: &Sim| {
            let key = JobKey::local("web");
            let explained = sim.view()?.explain_job(sim.world.now(), &key);
            explained?.allocs.first().cloned()
        };
        let says = |sim: &Sim, words: &str| {
            described(sim).is_some_and(|alloc| alloc.description.ends_with(words))
        };
        sim.until(SOON, |sim| {
            let delay = until(
                &alloc_waits(sim, "web"),
                "the reschedule delay of its group",
                sim,
            );
            delay.is_some() && says(sim, "0 of 1 reschedules in 24h0m0s are used")
        })?;
        let over = "its reschedule policy allows no other in its place";
        sim.until(Span::secs(300), |sim| {
            let given_up = described(sim).is_some_and(|alloc| alloc.next.contains(over));
            given_up && says(sim, "1 of 1 reschedules in 24h0m0s are used")
        })?;
        sim.converge()
    });
}
