//! Bugs that other node agents had with what is remembered, each under the name of the bug.

use drover_core::agent::requests::CollectGarbage;
use drover_core::input::ShutdownMode;
use drover_core::model::alloc::ClientStatus;
use drover_core::task::runner::Phase;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{TaskExt, batch, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{Inspect, SOON};

#[test]
fn crash_between_alloc_and_task_record_leaves_nothing() {
    for_seeds(300, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::Crash, Fault::FailCommit], 150);
        sim.register(&service("web", [task("main")]));
        sim.run(Span::secs(5))?;
        sim.deregister("web", true);
        sim.run(Span::secs(5))?;
        sim.converge()?;
        sim.expect_that(sim.allocs("web").is_empty(), "gone")
    });
}

/// While the disk is full nothing starts that is reported dead, and no kill gives up on a driver
/// that was never asked.
#[test]
fn full_disk_fails_no_task() {
    for_seeds(200, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.register(&service("second", [task("other")]));
        sim.world.disk.full = true;
        sim.deregister("web", false);
        sim.run(Span::secs(1200))?;
        sim.expect_that(sim.living("main") == 1, "not asked yet")?;
        sim.deregister("second", false);
        sim.run(Span::secs(600))?;
        sim.world.disk.full = false;
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.converge()?;
        sim.expect_that(sim.world.alive().count() == 0, "nothing lives")
    });
}

/// When everything is forgotten, the index of the state goes on from where it was.
#[test]
fn index_never_goes_back() {
    for_seeds(100, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", true);
        sim.run(SOON)?;
        let before = sim.view().map_or(0, |view| view.index());
        sim.restart()?;
        let after = sim.view().map_or(0, |view| view.index());
        sim.expect_that(before <= after, "not before what it was")
    });
}

#[test]
fn shutdown_keeping_tasks_ends_on_full_disk() {
    for_seeds(100, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.world.disk.full = true;
        sim.signal("web");
        sim.run(Span::secs(1))?;
        sim.shutdown(ShutdownMode::KeepTasks);
        sim.until(SOON, |sim| sim.stopped)?;
        sim.world.disk.full = false;
        sim.restart()?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == 1, "it runs on")
    });
}

/// An index that was acknowledged outlives the agent, also when it rose because of a driver.
#[test]
fn index_raised_by_driver_survives_restart() {
    for_seeds(20, |sim| {
        sim.driver(false);
        sim.run(SOON)?;
        sim.ask(CollectGarbage);
        sim.run(SOON)?;
        let before = sim.view().map_or(0, |view| view.index());
        sim.restart()?;
        let after = sim.view().map_or(0, |view| view.index());
        sim.expect_that(before <= after, "not before what it was")
    });
}

/// Of several tries to end a launch one succeeds: those that did not leave yet never leave.
#[test]
fn ended_launch_is_not_destroyed_again() {
    for_seeds(40, |sim| {
        sim.register(&batch("sum", [task("main").ends("1s", 0)]));
        sim.until(SOON, |sim| {
            sim.task("sum", "main")
                .is_some_and(|task| matches!(task.phase(), Phase::Cleaning(_)))
        })?;
        sim.world.scene.faults = Faults::only(&[Fault::SlowAnswer], 500).budget(2);
        sim.run(Span::secs(10))?;
        sim.world.disk.full = true;
        // One change is under way to the disk, and another one waits for it.
        sim.register(&service("web", [task("main")]));
        sim.run(Span::secs(1))?;
        sim.register(&service("other", [task("main")]));
        sim.run(Span::secs(3700))?;
        sim.world.disk.full = false;
        sim.converge()
    });
}

/// After a long time without room on the disk, what had waited for it left with next to no time for
/// its answer: a start that took a second was given up at once.
#[test]
fn held_effect_gets_full_timeout() {
    // The deadline of a start that waits moves by ten minutes at a time.
    for at in [599, 600, 601, 1199, 1200, 1201] {
        for seed in 0..4 {
            let world = || Sim::new(seed);
            drover_sim_tests::replay(world, false, |sim| {
                sim.register(&service(
                    "web",
                    [task("main").with("start_block_for", "3s")],
                ));
                sim.until(SOON, |sim| {
                    sim.task("web", "main")
                        .is_some_and(|task| matches!(task.phase(), Phase::Preparing(_)))
                })?;
                sim.world.disk.full = true;
                sim.run(Span::secs(at))?;
                sim.world.disk.full = false;
                sim.until(SOON, |sim| sim.runs("web", "main"))?;
                sim.expect_that(sim.world.starts_of("main") == 1, "one start")?;
                sim.converge()
            });
        }
    }
}

/// The same of a destroy: the driver's time began when it was decided, though it was asked only when
/// there was room again, so who took a second had taken too long, and was asked once more.
#[test]
fn held_destroy_gets_full_timeout() {
    // The deadline of one that waits moves by a quarter of a minute at a time.
    for at in [13, 14, 15, 28, 29, 30] {
        for_seeds(40, |sim| {
            sim.register(&batch("sum", [task("main").ends("5s", 0)]));
            sim.until(SOON, |sim| sim.runs("sum", "main"))?;
            sim.world.disk.full = true;
            sim.until(SOON, |sim| {
                sim.task("sum", "main")
                    .is_some_and(|task| matches!(task.phase(), Phase::Cleaning(_)))
            })?;
            sim.run(Span::secs(at))?;
            sim.world.disk.full = false;
            sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
            let in_vain = sim.view().map(|view| view.counters().overdue);
            sim.expect_that(in_vain == Some(0), "two seconds are in time")?;
            sim.converge()
        });
    }
}
