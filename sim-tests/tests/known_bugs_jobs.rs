//! Bugs that other node agents had in what should run: versions, places, roll-outs, garbage collection; each
//! under the name of the bug.

use drover_core::agent::requests::{CollectGarbage, Evaluate, StopAlloc};
use drover_core::alloc::runner::AllocRunner;
use drover_core::model::alloc::{ClientStatus, DesiredStatus, TaskLife};
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::job::JobType;
use drover_core::model::policy::RestartMode;
use drover_core::model::task::Hook;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults};
use drover_sim_tests::build::{GroupExt, TaskExt, batch, changed, group, job, service, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{for_seeds, for_seeds_keeping};

const DAY: Span = Span::secs(24 * 3600);

#[test]
fn policy_update_reaches_a_running_task() {
    for_seeds(200, |sim| {
        let old = batch(
            "sum",
            [task("main")
                .ends("10s", 1)
                .restarts(0, DAY, Span::secs(1), RestartMode::Fail)],
        );
        sim.register(&old);
        sim.until(SOON, |sim| sim.runs("sum", "main"))?;
        let new = changed(&old, |group| {
            group.tasks[0] =
                task("main")
                    .ends("10s", 1)
                    .restarts(2, DAY, Span::secs(1), RestartMode::Fail);
        });
        sim.register(&new);
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Failed))?;
        sim.converge()?;
        sim.expect_that(sim.allocs("sum").len() == 1, "updated in place")?;
        sim.expect_that(sim.world.starts_of("main") == 3, "one start and two more")
    });
}

/// The one that comes after a stopped waiting replacement waits for the same predecessor.
#[test]
fn replacement_of_unstarted_alloc_waits_for_earlier_one() {
    for_seeds(200, |sim| {
        sim.world.scene.faults =
            Faults::only(&[Fault::HangStop, Fault::HangDestroy], 1000).budget(2);
        let mut web = service("web", [task("main")]);
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        for value in ["1", "2", "3"] {
            web = changed(&web, |group| {
                group.tasks[0].env.insert("V".to_owned(), value.to_owned());
            });
            sim.register(&web);
        }
        sim.until(Span::secs(300), |sim| {
            sim.allocs("web").len() == 4 && sim.runs("web", "main")
        })?;
        sim.expect_that(sim.living("main") == 1, "one at a time")?;
        sim.converge()
    });
}

#[test]
fn gc_collects_one_over_limit() {
    for_seeds_keeping(40, 3, |sim| {
        for index in 0..5 {
            sim.register(&batch(&format!("b{index}"), [task("main").ends("1s", 0)]));
            sim.run(Span::secs(30))?;
            let allocs = sim.view().map_or(0, |view| view.allocs().count());
            sim.expect_that(allocs == (index + 1).min(3), "the oldest goes, and only it")?;
        }
        sim.converge()
    });
}

#[test]
fn gc_of_a_batch_allocation_does_not_run_it_again() {
    for_seeds(200, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::FailHook], 500).budget(4);
        let sum = batch("sum", [task("main").ends("1s", 0)]);
        sim.register(&sum);
        sim.until(Span::secs(600), |sim| {
            sim.allocs("sum")
                .iter()
                .all(|alloc| alloc.record().finished)
                && !sim.allocs("sum").is_empty()
        })?;
        let starts = sim.world.starts_of("main");
        sim.ask(CollectGarbage);
        for _ in 0..3 {
            sim.ask(Evaluate {
                job: sum.key(),
                force_reschedule: false,
            });
        }
        sim.run(SOON)?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == starts, "no further start")
    });
}

#[test]
fn stopping_a_completed_batch_allocation_does_not_run_it_again() {
    for_seeds(100, |sim| {
        sim.register(&batch("sum", [task("main").ends("1s", 0)]));
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
        let alloc = sim.allocs("sum")[0].record().id;
        sim.ask(StopAlloc {
            alloc,
            no_shutdown_delay: false,
        });
        sim.run(SOON)?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == 1, "one start")
    });
}

#[test]
fn unkillable_process_keeps_its_port() {
    for_seeds(100, |sim| {
        sim.world.scene.faults =
            Faults::only(&[Fault::HangStop, Fault::HangDestroy], 1000).budget(10);
        let first = job(
            "first",
            drover_core::model::job::JobType::Service,
            [group("g", [task("one")]).static_port("http", 8080)],
        );
        let second = job(
            "second",
            drover_core::model::job::JobType::Service,
            [group("g", [task("two")]).static_port("http", 8080)],
        );
        sim.register(&first);
        sim.until(SOON, |sim| sim.runs("first", "one"))?;
        sim.deregister("first", false);
        sim.until(Span::secs(600), |sim| {
            sim.allocs("first")
                .first()
                .is_some_and(|alloc| alloc.record().finished)
        })?;
        sim.register(&second);
        sim.run(Span::secs(5))?;
        sim.converge()?;
        sim.expect_that(
            sim.living("one") == 0 && sim.living("two") == 1,
            "one after the other",
        )
    });
}

/// A job that is changed while its driver does not work goes on as it was.
#[test]
fn unplaceable_update_keeps_old_version_running() {
    for_seeds(100, |sim| {
        let old = service("web", [task("main")]);
        sim.register(&old);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.driver(false);
        sim.run(Span::secs(5))?;
        let new = changed(&old, |group| {
            group.tasks[0].env.insert("V".to_owned(), "2".to_owned());
        });
        sim.register(&new);
        sim.run(SOON)?;
        sim.expect_that(
            sim.living("main") == 1 && sim.world.starts_of("main") == 1,
            "as it was",
        )?;
        sim.driver(true);
        sim.until(SOON, |sim| sim.world.starts_of("main") == 2)?;
        sim.converge()
    });
}

/// A failed allocation that waits for a placement is garbage-collected, and its replacement is placed later.
#[test]
fn gc_keeps_alloc_awaiting_reschedule() {
    for_seeds(100, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.driver(false);
        sim.run(Span::secs(5))?;
        sim.stop_alloc("web");
        sim.run(SOON)?;
        sim.ask(CollectGarbage);
        sim.run(SOON)?;
        sim.driver(true);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let running = sim
            .task("web", "main")
            .is_some_and(|task| task.state().state == TaskLife::Running);
        sim.expect_that(running, "the place is filled")?;
        sim.converge()
    });
}

/// A copy that proved healthy, failed later and was garbage-collected was counted no more, and its
/// roll-out went on for ever.
#[test]
fn rollout_keeps_counted_allocs() {
    for_seeds(100, |sim| {
        let main = task("main")
            .ends("30s", 1)
            .restarts(0, DAY, Span::secs(1), RestartMode::Fail);
        let late = task("pre")
            .with("start_block_for", "20s")
            .hook(Hook::Prestart, true);
        let quick = group("quick", [main]).rolls(1).never_again();
        let slow = group("slow", [task("main"), late]).rolls(1);
        sim.register(&job("web", JobType::Service, [quick, slow]));
        sim.run(Span::secs(31))?;
        sim.ask(CollectGarbage);
        sim.run(Span::secs(60))?;
        let over = sim.view().is_some_and(|view| {
            let states: Vec<_> = view.deployments().map(|rollout| rollout.status).collect();
            states == [DeploymentStatus::Successful]
        });
        sim.expect_that(over, "the roll-out is over")?;
        sim.converge()
    });
}

/// A task whose end is known does not run, however long its remains are garbage-collected.
#[test]
fn ended_task_does_not_make_alloc_healthy() {
    for_seeds(50, |sim| {
        let web = group("g", [task("main").ends("5s", 0)]).rolls(1);
        sim.world.scene.faults = Faults::only(&[Fault::HangDestroy], 1000);
        sim.register(&job("web", JobType::Service, [web]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.run(Span::secs(14))?;
        let healthy = |alloc: &&AllocRunner| alloc.record().health.is_some();
        let any = sim.allocs("web").iter().any(healthy);
        sim.expect_that(!any, "nobody knows yet")
    });
}

/// A copy that takes a version as it is, but did not prove itself in the one before, counts.
#[test]
fn in_place_update_counts_in_rolling_update() {
    for_seeds(50, |sim| {
        let first = group("g", [task("main")]).count(2).rolls(1);
        let first = job("web", JobType::Service, [first]);
        sim.register(&first);
        sim.run(SOON)?;
        let second = changed(&first, |group| {
            group.tasks[0].env.insert("V".to_owned(), "2".to_owned());
        });
        let third = changed(&second, |group| {
            group.tasks[0].kill_timeout = Some(Span::secs(1));
        });
        sim.register(&second);
        sim.until(SOON, |sim| sim.allocs("web").len() == 3)?;
        sim.register(&third);
        sim.run(Span::millis(500))?;
        sim.expect_that(sim.allocs("web").len() == 3, "the other copy still runs")?;
        sim.converge()
    });
}

/// A copy that was found unhealthy in one version and took the next one in place counted as nothing,
/// so that two copies of two were on their way at once.
#[test]
fn unhealthy_alloc_counts_in_next_rollout() {
    for_seeds(100, |sim| {
        // The start takes longer than the roll-out waits for health.
        let slow = task("main").with("start_block_for", "9m");
        let old = group("g", [slow.clone()]).count(2).rolls(1).never_again();
        let old = job("web", JobType::Service, [old]);
        sim.register(&old);
        sim.run(Span::secs(20 * 60))?;
        let next = changed(&old, |group| {
            group.tasks[0].env.insert("V".to_owned(), "1".to_owned());
        });
        sim.register(&next);
        sim.run(Span::secs(7 * 60))?;
        sim.register(&changed(&next, |group| {
            group.tasks[0].kill_timeout = Some(Span::secs(1));
        }));
        sim.run(Span::secs(60))?;
        let on_their_way = sim.allocs("web").into_iter().filter(|alloc| {
            let record = alloc.record();
            record.desired == DesiredStatus::Run && record.status == ClientStatus::Pending
        });
        sim.expect_that(on_their_way.count() <= 1, "one at a time")
    });
}
