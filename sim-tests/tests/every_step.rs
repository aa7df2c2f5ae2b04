//! The same thing done at every moment of a small life: a crash, an operator's wish, the end of
//! the agent.

use drover_core::agent::requests::{CollectGarbage, RestartScope};
use drover_core::input::ShutdownMode;
use drover_core::model::job::Job;
use drover_core::model::policy::RestartMode;
use drover_core::model::task::Hook;
use drover_core::time::Span;
use drover_io_sim::Sim;
use drover_sim_tests::build::{TaskExt, batch, service, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{Scenario, each_crash, replay};

const DAY: Span = Span::secs(24 * 3600);

/// A service with every stage, that stops after a while.
fn every_stage() -> Job {
    service(
        "web",
        [
            task("main").with("kill_after", "1s").leader(),
            task("pre").ends("1s", 0).hook(Hook::Prestart, false),
            task("side").hook(Hook::Prestart, true),
            task("post").ends("1s", 0).hook(Hook::Poststart, false),
            task("end").ends("1s", 0).hook(Hook::Poststop, false),
        ],
    )
}

fn live_and_stop(sim: &mut Sim) -> Scenario {
    sim.register(&every_stage());
    sim.run(Span::secs(100))?;
    sim.deregister("web", false);
    sim.run(Span::secs(200))?;
    sim.converge()?;
    sim.expect_that(sim.world.alive().count() == 0, "nothing lives")?;
    for once in ["pre", "post", "end"] {
        sim.expect_that(sim.world.starts_of(once) == 1, once)?;
    }
    sim.expect_that(
        sim.world.starts_of("main") == 1,
        "a crash of the agent restarts nothing",
    )
}

#[test]
fn service_survives_agent_crash_at_every_step() {
    for seed in 0..12 {
        let steps = each_crash(seed, live_and_stop);
        assert!(steps > 40, "{steps} steps");
    }
}

#[test]
fn batch_job_survives_agent_crash_at_every_step() {
    for seed in 0..12 {
        let steps = each_crash(seed, |sim| {
            let main =
                task("main")
                    .ends("2s", 1)
                    .restarts(2, DAY, Span::secs(1), RestartMode::Fail);
            sim.register(&batch("sum", [main]));
            sim.run(Span::secs(200))?;
            sim.converge()?;
            sim.expect_that(sim.world.starts_of("main") == 3, "one start and two more")
        });
        assert!(steps > 10, "seed {seed}: {steps} steps");
    }
}

/// Runs a service with every stage, does `what` after so many steps, and lets it come to rest.
fn at_every_step(limit: u64, what: impl Fn(&mut Sim) -> Scenario) {
    for seed in 0..6 {
        for at in 0..limit {
            replay(
                || Sim::new(seed * 1000 + at),
                false,
                |sim| {
                    sim.register(&every_stage());
                    for _ in 0..at {
                        sim.step(sim.world.now().at + Span::secs(5))?;
                    }
                    what(sim)
                },
            );
        }
    }
}

#[test]
fn restart_at_every_step_converges() {
    at_every_step(60, |sim| {
        sim.restart_tasks("web", RestartScope::Running);
        sim.run(SOON)?;
        sim.converge()?;
        sim.expect_that(
            sim.runs("web", "main") && sim.runs("web", "side"),
            "it runs",
        )
    });
}

#[test]
fn restart_of_all_tasks_at_every_step_converges() {
    at_every_step(60, |sim| {
        sim.restart_tasks("web", RestartScope::All);
        sim.run(SOON)?;
        sim.converge()?;
        sim.expect_that(
            sim.runs("web", "main") && sim.runs("web", "side"),
            "it runs",
        )
    });
}

#[test]
fn stop_at_every_step_converges() {
    at_every_step(60, |sim| {
        sim.stop_alloc("web");
        sim.signal("web");
        sim.run(SOON)?;
        sim.converge()?;
        sim.expect_that(sim.runs("web", "main"), "its job replaced it")
    });
}

#[test]
fn purge_and_gc_at_every_step_converge() {
    at_every_step(60, |sim| {
        sim.deregister("web", true);
        sim.ask(CollectGarbage);
        sim.run(SOON)?;
        sim.converge()?;
        sim.expect_that(
            sim.view()
                .is_some_and(|view| view.allocs().next().is_none()),
            "gone",
        )
    });
}

#[test]
fn shutdown_stopping_tasks_at_every_step_converges() {
    at_every_step(60, |sim| {
        sim.shutdown(ShutdownMode::StopTasks);
        sim.until(SOON, |sim| sim.stopped)?;
        sim.expect_that(sim.world.alive().count() == 0, "nothing lives")?;
        sim.restart()?;
        sim.run(SOON)?;
        sim.converge()?;
        let known = sim.view().is_some_and(|view| view.jobs().next().is_some());
        sim.expect_that(
            !known || sim.runs("web", "main"),
            "the next agent runs it again",
        )
    });
}

#[test]
fn shutdown_keeping_tasks_at_every_step_converges() {
    at_every_step(60, |sim| {
        sim.shutdown(ShutdownMode::KeepTasks);
        sim.until(SOON, |sim| sim.stopped)?;
        let before: Vec<_> = sim.world.alive().map(|(launch, _)| *launch).collect();
        sim.run(Span::secs(1))?;
        sim.restart()?;
        sim.run(SOON)?;
        let lost = before.iter().any(|launch| {
            let process = sim.world.processes().find(|(id, _)| *id == launch);
            process.is_none_or(|(_, process)| process.exit.as_ref().is_some_and(|e| e.signal != 0))
        });
        sim.expect_that(!lost, "what lived lives on")?;
        sim.converge()
    });
}

#[test]
fn agent_restart_keeps_running_tasks() {
    for seed in 0..100 {
        replay(
            || Sim::new(seed),
            false,
            |sim| {
                sim.register(&every_stage());
                sim.until(SOON, |sim| {
                    sim.runs("web", "main") && sim.dead("web", "post")
                })?;
                for _ in 0..3 {
                    sim.restart()?;
                    sim.run(Span::secs(40))?;
                }
                sim.converge()?;
                sim.expect_that(sim.world.starts_of("main") == 1, "one start")
            },
        );
    }
}
