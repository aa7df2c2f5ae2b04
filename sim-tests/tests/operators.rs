//! Operators override policies: failed allocations are replaced at once, shutdown delays skipped.

use drover_core::agent::requests::{
    Deregister, Evaluate, OpenSession, SessionCommand, Signal, StopAlloc,
};
use drover_core::effect::Reply;
use drover_core::ids::JobKey;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::EventType;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::model::template::ChangeMode;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{GroupExt, TaskExt, group, job, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};

/// A service that fails at once, replaced twice.
fn hopeless() -> Job {
    let main = task("main").ends("2s", 1).restarts(
        0,
        Span::secs(24 * 3600),
        Span::secs(1),
        RestartMode::Fail,
    );
    job(
        "web",
        JobType::Service,
        [group("g", [main]).reschedules(2, Span::secs(10))],
    )
}

/// What no policy replaces any more is replaced when an operator forces it, and may fail as often as the
/// first.
#[test]
fn given_up_alloc_is_replaced_when_forced() {
    for_seeds(60, |sim| {
        sim.register(&hopeless());
        sim.run(Span::secs(3600))?;
        sim.expect_that(sim.world.starts_of("main") == 3, "one and two more")?;
        let force = |force_reschedule| Evaluate {
            job: JobKey::local("web"),
            force_reschedule,
        };
        sim.ask(force(false));
        sim.run(Span::secs(3600))?;
        sim.expect_that(sim.world.starts_of("main") == 3, "its policy holds")?;
        sim.ask(force(true));
        sim.run(Span::secs(3600))?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == 6, "one and two more again")
    });
}

/// A forced replacement leaves alone what runs.
#[test]
fn running_alloc_is_left_alone_when_reschedule_is_forced() {
    for_seeds(60, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.ask(Evaluate {
            job: JobKey::local("web"),
            force_reschedule: true,
        });
        sim.run(SOON)?;
        sim.expect_that(sim.world.starts_of("main") == 1, "it runs on")?;
        sim.converge()
    });
}

/// A service whose group and task have shutdown delays of ten minutes each.
fn slow_to_end() -> Job {
    let mut web = service("web", [task("main")]);
    web.task_groups[0].shutdown_delay = Some(Span::secs(600));
    web.task_groups[0].tasks[0].shutdown_delay = Span::secs(600);
    web
}

#[test]
fn stop_without_shutdown_delay_ends_tasks_soon() {
    for_seeds(60, |sim| {
        sim.register(&slow_to_end());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let job = sim.key_of("web");
        sim.ask(Deregister {
            job,
            purge: false,
            no_shutdown_delay: true,
        });
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.converge()
    });
}

/// What is still starting when it is stopped at once is asked to end as soon as it runs.
#[test]
fn starting_task_stopped_without_delay_ends_as_soon_as_it_runs() {
    for_seeds(60, |sim| {
        let mut web = slow_to_end();
        web.task_groups[0].tasks[0] =
            (web.task_groups[0].tasks[0].clone()).with("start_block_for", "20s");
        sim.register(&web);
        sim.until(SOON, |sim| sim.world.starts_of("main") == 1)?;
        // In one request, or in a second one that takes the delays back.
        if sim.seed() % 2 == 0 {
            sim.deregister("web", false);
            sim.run(Span::secs(2))?;
        }
        let job = sim.key_of("web");
        sim.ask(Deregister {
            job,
            purge: false,
            no_shutdown_delay: true,
        });
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.converge()
    });
}

/// An operator who tires of waiting for the delays of a job asks again.
#[test]
fn shutdown_delays_of_job_that_run_are_ended_by_stop_without_them() {
    for_seeds(60, |sim| {
        sim.register(&slow_to_end());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", false);
        let into = if sim.seed() % 2 == 0 { 60 } else { 660 };
        sim.run(Span::secs(into))?;
        sim.expect_that(sim.living("main") > 0, "it waits")?;
        let job = sim.key_of("web");
        sim.ask(Deregister {
            job,
            purge: false,
            no_shutdown_delay: true,
        });
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.converge()
    });
}

/// An operator who tires of waiting for a delay asks again.
#[test]
fn shutdown_delay_that_runs_is_ended_by_stop_without_it() {
    for_seeds(60, |sim| {
        sim.register(&slow_to_end());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let alloc = sim.live("web").map(|alloc| alloc.record().id);
        let alloc = alloc.unwrap_or_default();
        sim.stop_alloc("web");
        // Within the group's delay, or within the task's.
        let into = if sim.seed() % 2 == 0 { 60 } else { 660 };
        sim.run(Span::secs(into))?;
        sim.expect_that(sim.living("main") > 0, "it waits")?;
        sim.ask(StopAlloc {
            alloc,
            no_shutdown_delay: true,
        });
        sim.until(SOON, |sim| {
            let old = sim.allocs("web").into_iter();
            let mut old = old.filter(|one| one.record().id == alloc);
            old.all(|one| one.record().finished)
        })?;
        sim.converge()
    });
}

/// A task that ends by itself, as its script failed, waits for its delay before its group ends.
#[test]
fn delay_of_failed_task_is_ended_by_stop_without_it() {
    for_seeds(60, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let mut web = slow_to_end();
        let main = web.task_groups[0].tasks[0].clone();
        let mut main = main.template(ChangeMode::Script);
        if let Some(script) = &mut main.templates[0].change_script {
            script.fail_on_error = true;
        }
        web.task_groups[0].tasks[0] = main;
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.world.scene.faults = Faults::only(&[Fault::FailScript], 1000).budget(1);
        sim.a_template_changes();
        let waits = |sim: &Sim| sim.task_events("web", "main", EventType::WaitingShutdownDelay);
        sim.until(SOON, |sim| waits(sim) == 1)?;
        let job = sim.key_of("web");
        sim.ask(Deregister {
            job,
            purge: false,
            no_shutdown_delay: true,
        });
        sim.until(SOON, |sim| sim.living("main") == 0)?;
        sim.converge()
    });
}

/// A service whose task takes two minutes to end when it is asked to.
fn takes_its_time() -> Job {
    let mut main = task("main").with("kill_after", "120s");
    main.kill_timeout = Some(Span::secs(300));
    let mut web = service("web", [main]);
    web.task_groups[0].tasks[0].kill_signal = "SIGQUIT".to_owned();
    web
}

/// Whoever debugs a task that does not end may ask it for its stacks.
#[test]
fn task_that_was_asked_to_end_takes_signals() {
    for_seeds(20, |sim| {
        sim.register(&takes_its_time());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let alloc = sim.live("web").map(|alloc| alloc.record().id);
        sim.deregister("web", false);
        sim.run(Span::secs(10))?;
        sim.expect_that(sim.living("main") == 1, "it takes its time")?;
        let asked = sim.ask(Signal {
            alloc: alloc.unwrap_or_default(),
            task: Some("main".into()),
            signal: "SIGHUP".to_owned(),
        });
        sim.run(Span::secs(5))?;
        let done = matches!(sim.reply(asked), Some(Reply::Done { .. }));
        sim.expect_that(done, "it is passed on")?;
        sim.converge()
    });
}

/// Whoever debugs a task that waits for its shutdown delay reaches it: it lives.
#[test]
fn task_in_shutdown_delay_takes_signals_and_sessions() {
    for_seeds(20, |sim| {
        let mut web = slow_to_end();
        web.task_groups[0].shutdown_delay = None;
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let alloc = sim.live("web").map(|alloc| alloc.record().id);
        let alloc = alloc.unwrap_or_default();
        sim.deregister("web", false);
        sim.run(Span::secs(10))?;
        sim.expect_that(sim.living("main") == 1, "it waits")?;
        let signal = sim.ask(Signal {
            alloc,
            task: Some("main".into()),
            signal: "SIGHUP".to_owned(),
        });
        let session = sim.next_session();
        let session = sim.ask(OpenSession {
            session,
            alloc,
            task: "main".into(),
            run: SessionCommand::Command(vec!["/bin/sh".to_owned()]),
            tty: false,
        });
        sim.run(SOON)?;
        let done = |sim: &Sim, asked| matches!(sim.reply(asked), Some(Reply::Done { .. }));
        sim.expect_that(done(sim, signal), "the signal is passed on")?;
        sim.expect_that(done(sim, session), "the session opens")?;
        sim.until(Span::secs(900), |sim| {
            sim.all_over("web", ClientStatus::Complete)
        })?;
        sim.converge()
    });
}

/// A job that somebody asked to forget is forgotten, also if it is stopped once more while it ends.
#[test]
fn purge_is_not_taken_back_by_a_stop() {
    for_seeds(20, |sim| {
        sim.register(&takes_its_time());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", true);
        sim.run(Span::secs(2))?;
        sim.deregister("web", false);
        sim.run(Span::secs(600))?;
        let known = sim
            .view()
            .is_some_and(|view| view.job(&JobKey::local("web")).is_some());
        sim.expect_that(!known, "it is forgotten")?;
        sim.converge()
    });
}
