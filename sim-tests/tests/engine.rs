//! An engine of containers that dies beneath its tasks, is slow, lies, forgets, and says things twice; and networks that
//! are half there.

use drover_core::agent::Input;
use drover_core::agent::requests::RestartScope;
use drover_core::ids::LaunchId;
use drover_core::input::DriverInput;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::EventType;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::op::Op;
use drover_core::task::runner::{Phase, Stop};
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{GroupExt, TaskExt, batch, group, job, service, task};
use drover_sim_tests::engine::contained;
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{each_crash_on_engine, for_seeds, for_seeds_on_engine};

const MINUTES: Span = Span::secs(600);
const HOUR: Span = Span::secs(3600);
const DAY: Span = Span::secs(24 * 3600);

fn web() -> Job {
    service("web", [contained(task("main"))])
}

/// A task that fails again and again, and never for good.
fn fragile() -> Job {
    let main = task("main").ends("15s", 1);
    let main = main.restarts(3, Span::secs(120), Span::secs(1), RestartMode::Delay);
    service("web", [contained(main)])
}

fn web_runs(sim: &mut Sim) -> Result<(), Violation> {
    sim.register(&web());
    sim.until(SOON, |sim| sim.runs("web", "main"))
}

/// The container of the task that lives.
fn container(sim: &Sim) -> Option<LaunchId> {
    sim.world.alive().map(|(launch, _)| *launch).next()
}

fn recovers(sim: &Sim) -> bool {
    let task = sim.task("web", "main");
    task.is_some_and(|task| matches!(task.phase(), Phase::Recovering(_)))
}

fn is_untouched(sim: &Sim) -> Result<(), Violation> {
    let same = sim.runs("web", "main")
        && sim.world.starts_of("main") == 1
        && sim.restarts("web", "main") == 0;
    sim.expect_that(
        same,
        "the container is the first, and no restart is counted",
    )?;
    let lost = [EventType::Terminated, EventType::FailedRestoring];
    let lost = lost
        .into_iter()
        .any(|kind| sim.task_events("web", "main", kind) > 0);
    sim.expect_that(!lost, "it was never said to be lost")
}

fn driver_is_healthy(sim: &Sim) -> bool {
    let view = sim.view();
    let info = view.and_then(|view| view.node().drivers.get("docker").cloned());
    info.is_some_and(|info| info.healthy)
}

#[test]
fn container_that_outlives_its_engine_is_left_alone() {
    for_seeds_on_engine(100, |sim| {
        web_runs(sim)?;
        sim.world.engine_dies(true);
        sim.run(HOUR)?;
        is_untouched(sim)?;
        sim.expect_that(!driver_is_healthy(sim), "a dead engine is unhealthy")?;
        sim.world.engine_returns();
        sim.run(MINUTES)?;
        is_untouched(sim)?;
        sim.expect_that(driver_is_healthy(sim), "its engine is healthy again")?;
        sim.converge()
    });
}

#[test]
fn next_agent_waits_for_the_engine_of_its_tasks() {
    for_seeds_on_engine(100, |sim| {
        web_runs(sim)?;
        sim.world.engine_dies(true);
        sim.crash();
        sim.restart()?;
        sim.run(HOUR)?;
        sim.expect_that(recovers(sim), "it waits for the engine")?;
        sim.crash();
        sim.restart()?;
        sim.run(HOUR)?;
        sim.world.engine_returns();
        sim.run(MINUTES)?;
        is_untouched(sim)?;
        sim.converge()
    });
}

#[test]
fn container_is_left_alone_wherever_the_agent_dies() {
    let steps = each_crash_on_engine(|sim| {
        web_runs(sim)?;
        let starts = sim.world.starts_of("main");
        sim.world.engine_dies(true);
        sim.run(MINUTES)?;
        sim.expect_that(sim.living("main") == 1, "it lives")?;
        sim.world.engine_returns();
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let same = sim.world.starts_of("main") == starts;
        sim.expect_that(same, "nothing was started again")?;
        sim.converge()
    });
    assert!(steps > 10, "{steps} steps");
}

/// Nobody can say what became of it, so in the end nothing of it may be left when it is started again.
#[test]
fn engine_that_stays_away_too_long_is_given_up() {
    for_seeds_on_engine(30, |sim| {
        web_runs(sim)?;
        sim.world.engine_dies(true);
        sim.crash();
        sim.restart()?;
        sim.run(Span(DAY.0 - HOUR.0))?;
        sim.expect_that(recovers(sim), "it waits for the engine all day")?;
        sim.run(Span::secs(2 * 3600))?;
        let reported = sim.task_events("web", "main", EventType::FailedRestoring) > 0;
        sim.expect_that(reported, "it is told that nobody knows")?;
        sim.world.engine_returns();
        sim.until(MINUTES, |sim| {
            sim.runs("web", "main") && sim.world.starts_of("main") == 2
        })?;
        sim.expect_that(sim.living("main") == 1, "nothing is left of the first")?;
        sim.converge()
    });
}

/// What ended with its engine is started again when that is back.
fn starts_again_with_its_engine(sim: &mut Sim) -> Result<(), Violation> {
    sim.world.engine_returns();
    sim.until(SOON, |sim| {
        sim.runs("web", "main") && sim.living("main") == 1
    })?;
    sim.expect_that(sim.restarts("web", "main") == 1, "its end is counted once")
}

#[test]
fn containers_that_end_with_their_engine_start_again_when_it_is_back() {
    for_seeds_on_engine(100, |sim| {
        web_runs(sim)?;
        sim.world.engine_dies(false);
        sim.run(HOUR)?;
        is_untouched(sim).and(sim.expect_that(sim.living("main") == 0, "nothing lives"))?;
        starts_again_with_its_engine(sim)?;
        sim.converge()
    });
}

#[test]
fn end_with_the_engine_is_reported_to_the_next_agent() {
    for_seeds_on_engine(100, |sim| {
        web_runs(sim)?;
        sim.world.engine_dies(false);
        sim.crash();
        sim.restart()?;
        sim.run(MINUTES)?;
        sim.expect_that(sim.restarts("web", "main") == 0, "nobody knows of an end")?;
        starts_again_with_its_engine(sim)?;
        sim.converge()
    });
}

#[test]
fn job_stopped_while_its_engine_is_away_ends_when_it_is_back() {
    for crashes in [false, true] {
        for_seeds_on_engine(60, |sim| {
            web_runs(sim)?;
            sim.world.engine_dies(true);
            sim.deregister("web", false);
            sim.run(HOUR)?;
            sim.expect_that(sim.living("main") == 1, "nobody can end it")?;
            if crashes {
                sim.crash();
                sim.restart()?;
                sim.run(MINUTES)?;
            }
            sim.world.engine_returns();
            sim.until(MINUTES, |sim| {
                sim.living("main") == 0 && sim.allocs("web").iter().all(|it| it.record().finished)
            })?;
            sim.converge()
        });
    }
}

#[test]
fn job_handed_in_while_the_engine_is_away_starts_when_it_is_back() {
    for_seeds_on_engine(60, |sim| {
        sim.run(SOON)?;
        sim.world.engine_dies(true);
        sim.run(SOON)?;
        sim.register(&web());
        sim.run(HOUR)?;
        sim.expect_that(sim.world.starts_of("main") == 0, "nothing can start")?;
        sim.world.engine_returns();
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.converge()
    });
}

/// Each refused start costs an attempt like any other that fails, and another follows.
#[test]
fn start_that_a_dead_engine_refuses_is_tried_again() {
    for_seeds_on_engine(60, |sim| {
        sim.register(&fragile());
        sim.until(SOON, |sim| sim.restarts("web", "main") == 1)?;
        sim.world.engine_dies(false);
        sim.run(MINUTES)?;
        sim.world.engine_returns();
        sim.until(MINUTES, |sim| sim.runs("web", "main"))?;
        let failed = sim.task("web", "main").is_some_and(|it| it.state().failed);
        sim.expect_that(!failed, "it did not fail for good")?;
        sim.deregister("web", false);
        sim.until(MINUTES, |sim| sim.living("main") == 0)?;
        sim.converge()
    });
}

#[test]
fn slow_engine_never_has_two_containers_of_a_task() {
    for_seeds_on_engine(100, |sim| {
        sim.world.engine_is_slow_for(MINUTES);
        sim.register(&web());
        sim.until(Span::secs(3 * 3600), |sim| sim.runs("web", "main"))?;
        sim.expect_that(sim.living("main") <= 1, "there is one")?;
        sim.world.engine_is_slow_for(MINUTES);
        sim.deregister("web", false);
        sim.until(Span::secs(3 * 3600), |sim| sim.living("main") == 0)?;
        sim.converge()
    });
}

/// An end is believed; whatever lives of it nevertheless is ended before anything follows.
#[test]
fn container_reported_ended_is_removed_before_the_next() {
    for_seeds_on_engine(100, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::EngineLies], 1000).budget(2);
        sim.register(&web());
        sim.until(Span::secs(300), |sim| {
            sim.world.starts_of("main") == 3 && sim.runs("web", "main")
        })
        .or(sim.expect_that(sim.seed() == BENIGN, "two lies cost two containers"))?;
        sim.run(MINUTES)?;
        sim.expect_that(sim.living("main") == 1, "one of them lives")?;
        sim.converge()
    });
}

#[test]
fn lying_engine_leaves_nothing_behind_wherever_the_agent_dies() {
    let steps = each_crash_on_engine(|sim| {
        sim.register(&web());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        if let Some(launch) = container(sim) {
            sim.world.engine_says_ended(launch, 0);
        }
        sim.run(MINUTES)?;
        let one = sim.living("main") == 1 && sim.runs("web", "main");
        sim.expect_that(one, "one container is there and known")?;
        sim.deregister("web", false);
        sim.until(MINUTES, |sim| sim.living("main") == 0)?;
        sim.converge()
    });
    assert!(steps > 10, "{steps} steps");
}

#[test]
fn container_named_as_running_that_is_gone_is_started_again() {
    for_seeds_on_engine(100, |sim| {
        web_runs(sim)?;
        sim.crash();
        if let Some(launch) = container(sim) {
            sim.world.container_gone(launch);
        }
        sim.world.scene.faults = Faults::only(&[Fault::EngineClaims], 1000);
        sim.restart()?;
        sim.until(SOON, |sim| {
            sim.runs("web", "main") && sim.living("main") == 1
        })?;
        sim.expect_that(sim.restarts("web", "main") == 1, "its end is counted once")?;
        sim.converge()
    });
}

/// How it ended cannot be known, so it does not count as success.
#[test]
fn forgotten_container_is_started_again() {
    for crashes in [false, true] {
        for_seeds_on_engine(60, |sim| {
            sim.register(&service("web", [contained(task("main"))]));
            sim.until(SOON, |sim| sim.runs("web", "main"))?;
            if crashes {
                sim.crash();
            }
            if let Some(launch) = container(sim) {
                sim.world.container_gone(launch);
            }
            if crashes {
                sim.restart()?;
            }
            sim.until(SOON, |sim| {
                sim.restarts("web", "main") == 1 && sim.runs("web", "main")
            })?;
            sim.expect_that(sim.living("main") == 1, "there is one again")?;
            sim.converge()
        });
    }
}

#[test]
fn batch_task_with_unknown_exit_code_is_not_complete() {
    for_seeds_on_engine(60, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::EngineLosesCode], 1000);
        let main = task("main").ends("5s", 0);
        let main = main.restarts(1, HOUR, Span::secs(1), RestartMode::Fail);
        sim.register(&batch("sum", [contained(main)]));
        sim.until(MINUTES, |sim| sim.all_over("sum", ClientStatus::Failed))?;
        sim.expect_that(sim.world.starts_of("main") == 2, "it was tried twice")?;
        sim.converge()
    });
}

#[test]
fn end_reported_again_by_recovered_engine_is_counted_once() {
    for_seeds_on_engine(100, |sim| {
        let twice = [
            Fault::EngineRepeats,
            Fault::DoubledExit,
            Fault::DoubledAnswer,
        ];
        sim.world.scene.faults = Faults::only(&twice, 700);
        sim.register(&fragile());
        for _ in 0..20 {
            sim.run(Span::secs(13))?;
            sim.world.engine_dies(true);
            sim.run(Span::secs(1))?;
            sim.world.engine_returns();
        }
        sim.deregister("web", false);
        sim.until(MINUTES, |sim| sim.living("main") == 0)?;
        sim.converge()
    });
}

/// The time that a task has to end is counted from the first word that it was asked to.
#[test]
fn stop_that_is_answered_twice_gives_no_more_time() {
    for_seeds_on_engine(60, |sim| {
        let mut main = task("main").with("kill_after", "600s");
        main.kill_timeout = Some(Span::secs(20));
        sim.register(&service("web", [contained(main)]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| {
            let task = sim.task("web", "main");
            task.is_some_and(|it| matches!(it.phase(), Phase::Stopping(Stop::Sent(_))))
        })?;
        sim.run(Span::secs(15))?;
        let key = sim.task("web", "main").map(|task| task.spec().key.clone());
        if let Some((launch, key)) = container(sim).zip(key) {
            let (op, result) = (Op(7), Ok(()));
            let again = DriverInput::Stopped { op, launch, result };
            sim.send_raw(Input::Driver(key, again));
        }
        sim.until(Span::secs(10), |sim| sim.living("main") == 0)?;
        sim.converge()
    });
}

fn bridged() -> Job {
    let group = group("g", [task("main")]);
    job(
        "web",
        JobType::Service,
        [group.network("bridge").dynamic_port("http")],
    )
}

fn has_whole_network(sim: &Sim) -> bool {
    let id = sim.live("web").map(|alloc| alloc.record().id);
    let network = id.and_then(|id| sim.world.networks.get(id));
    let one = sim.world.networks.owners().count() == 1;
    one && network.is_some_and(|it| !it.half && it.address.is_some())
}

#[test]
fn network_half_made_when_the_agent_died_is_completed() {
    let steps = each_crash_on_engine(|sim| {
        sim.world.scene.faults = Faults::only(&[Fault::CutNetwork], 1000);
        sim.register(&bridged());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.expect_that(has_whole_network(sim), "its network is whole")?;
        sim.converge()
    });
    assert!(steps > 10, "{steps} steps");
    for_seeds(100, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::CutNetwork, Fault::Crash], 300).budget(6);
        sim.register(&bridged());
        sim.until(MINUTES, |sim| sim.runs("web", "main"))?;
        sim.until(SOON, has_whole_network)?;
        sim.converge()
    });
}

#[test]
fn network_that_somebody_removed_is_made_again_by_the_next_agent() {
    for_seeds(60, |sim| {
        sim.register(&bridged());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        if let Some(id) = sim.live("web").map(|alloc| alloc.record().id) {
            sim.world.networks.take_away(id);
        }
        sim.crash();
        sim.restart()?;
        sim.until(SOON, |sim| {
            sim.runs("web", "main") && has_whole_network(sim)
        })?;
        sim.expect_that(sim.world.starts_of("main") == 1, "its task runs on")?;
        sim.converge()
    });
}

/// No start can succeed there, and each costs an attempt; the replacement has a network of its own.
#[test]
fn allocation_without_its_network_is_replaced() {
    for_seeds(60, |sim| {
        sim.register(&bridged());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        if let Some(id) = sim.live("web").map(|alloc| alloc.record().id) {
            sim.world.networks.take_away(id);
        }
        sim.restart_tasks("web", RestartScope::Running);
        sim.until(MINUTES, |sim| sim.allocs("web").len() == 2)?;
        sim.until(MINUTES, |sim| {
            sim.runs("web", "main") && has_whole_network(sim)
        })?;
        sim.converge()
    });
}
