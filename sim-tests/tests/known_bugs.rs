//! Bugs that other node agents had, each under the name of the bug.

use drover_core::alloc::runner::AllocRunner;
use drover_core::input::{LocalInput, OperatorInput, RestartScope, ShutdownMode};
use drover_core::model::alloc::{ClientStatus, DesiredStatus, TaskLife};
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::event::EventType;
use drover_core::model::job::JobType;
use drover_core::model::policy::RestartMode;
use drover_core::model::task::Hook;
use drover_core::store::Key;
use drover_core::task::runner::Phase;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{GroupWords, TaskWords, batch, changed, group, job, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::look::{Look, SOON};

const DAY: Span = Span::secs(24 * 3600);

#[test]
fn destroy_before_run_ends() {
    for_seeds(200, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.live("web").is_some())?;
        sim.deregister("web", true);
        sim.until(SOON, |sim| {
            sim.view().is_some_and(|view| view.jobs().next().is_none())
        })?;
        sim.peace()?;
        sim.expect_that(
            sim.world.disk.records().len() == 1,
            "only the node's record is left",
        )
    });
}

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
        sim.peace()?;
        sim.expect_that(sim.allocs("sum").len() == 1, "updated in place")?;
        sim.expect_that(sim.world.starts_of("main") == 3, "one start and two more")
    });
}

/// A replacement that waits for its predecessor is stopped although the predecessor never ends.
#[test]
fn blocked_on_previous_can_be_stopped() {
    for_seeds(200, |sim| {
        sim.world.faults = Faults::only(&[Fault::HangStop, Fault::HangDestroy], 1000).budget(3);
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.stop_alloc("web");
        sim.until(SOON, |sim| sim.allocs("web").len() == 2)?;
        sim.deregister("web", false);
        sim.until(Span::secs(3), |sim| {
            sim.allocs("web")
                .last()
                .is_some_and(|alloc| alloc.record().finished)
        })?;
        sim.expect_that(sim.living("main") == 1, "the predecessor still lives")?;
        sim.peace()
    });
}

/// The one that comes after a stopped waiting replacement waits for the same predecessor.
#[test]
fn a_replacement_of_one_that_never_ran_waits_for_the_one_before() {
    for_seeds(200, |sim| {
        sim.world.faults = Faults::only(&[Fault::HangStop, Fault::HangDestroy], 1000).budget(2);
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
        sim.peace()
    });
}

#[test]
fn gc_takes_one_for_one_over() {
    for seed in 0..40 {
        let world = || {
            let mut config = drover_core::config::Config::new(0, drover_io_sim::node(), "/alloc");
            config.keep_terminal = 3;
            Sim::with_config(seed, config)
        };
        drover_sim_tests::replay(world, false, |sim| {
            for index in 0..5 {
                sim.register(&batch(&format!("b{index}"), [task("main").ends("1s", 0)]));
                sim.run(Span::secs(30))?;
                let allocs = sim.view().map_or(0, |view| view.allocs().count());
                sim.expect_that(allocs == (index + 1).min(3), "the oldest goes, and only it")?;
            }
            sim.peace()
        });
    }
}

#[test]
fn gc_of_a_batch_allocation_does_not_run_it_again() {
    for_seeds(200, |sim| {
        sim.world.faults = Faults::only(&[Fault::FailHook], 500).budget(4);
        let sum = batch("sum", [task("main").ends("1s", 0)]);
        sim.register(&sum);
        sim.until(Span::secs(600), |sim| {
            sim.allocs("sum")
                .iter()
                .all(|alloc| alloc.record().finished)
                && !sim.allocs("sum").is_empty()
        })?;
        let starts = sim.world.starts_of("main");
        sim.ask(LocalInput::Collect);
        for _ in 0..3 {
            sim.ask(LocalInput::Evaluate { job: sum.key() });
        }
        sim.run(SOON)?;
        sim.peace()?;
        sim.expect_that(sim.world.starts_of("main") == starts, "no further start")
    });
}

#[test]
fn stopping_a_completed_batch_allocation_does_not_run_it_again() {
    for_seeds(100, |sim| {
        sim.register(&batch("sum", [task("main").ends("1s", 0)]));
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
        let alloc = sim.allocs("sum")[0].record().id;
        sim.operate(OperatorInput::StopAlloc { alloc });
        sim.run(SOON)?;
        sim.peace()?;
        sim.expect_that(sim.world.starts_of("main") == 1, "one start")
    });
}

/// The exit code of a task that ends by itself while it is being killed is its own.
#[test]
fn exit_during_kill_keeps_code() {
    for_seeds(300, |sim| {
        let main = task("main").ends("10s", 7).with("kill_after", "10s");
        sim.register(&batch("sum", [main]));
        sim.until(SOON, |sim| sim.runs("sum", "main"))?;
        sim.run(Span::secs(8))?;
        sim.deregister("sum", false);
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
        let seven = sim.task("sum", "main").is_some_and(|task| {
            task.state().events.iter().any(|event| {
                event.kind == EventType::Terminated
                    && event.details.get("exit_code").is_some_and(|c| c == "7")
            })
        });
        sim.expect_that(seven, "7")?;
        sim.peace()
    });
}

#[test]
fn restart_counter_survives_agent_restart() {
    for_seeds(300, |sim| {
        sim.world.faults = Faults::only(&[Fault::Crash], 60);
        let main = task("main")
            .ends("2s", 1)
            .restarts(3, DAY, Span::secs(1), RestartMode::Fail);
        sim.register(&batch("sum", [main]));
        sim.until(Span::secs(3600), |sim| {
            sim.all_over("sum", ClientStatus::Failed)
        })?;
        sim.peace()?;
        sim.expect_that(sim.world.starts_of("main") == 4, "one start and three more")
    });
}

#[test]
fn finished_at_reset_on_rerun() {
    for_seeds(200, |sim| {
        let tasks = [
            task("main"),
            task("pre").ends("1s", 0).hook(Hook::Prestart, false),
        ];
        sim.register(&service("web", tasks));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.restart_tasks("web", RestartScope::All);
        sim.until(SOON, |sim| {
            sim.world.starts_of("pre") == 2 && sim.world.starts_of("main") == 2
        })?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.expect_that(
            sim.task("web", "main")
                .is_some_and(|task| task.state().finished_at.is_none()),
            "what runs has no end",
        )?;
        sim.stop_alloc("web");
        sim.peace()
    });
}

#[test]
fn kill_during_start() {
    for_seeds(300, |sim| {
        let main = task("main").with("start_block_for", "4s");
        sim.register(&service("web", [main]));
        sim.until(SOON, |sim| {
            sim.task("web", "main")
                .is_some_and(|task| matches!(task.phase(), Phase::Starting(_)))
        })?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.peace()?;
        sim.expect_that(sim.living("main") == 0, "nothing lives")
    });
}

#[test]
fn restart_during_kill_does_not_revive() {
    for_seeds(300, |sim| {
        sim.register(&service("web", [task("main").with("kill_after", "3s")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", false);
        sim.restart_tasks("web", RestartScope::Running);
        sim.restart_tasks("web", RestartScope::All);
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.peace()?;
        sim.expect_that(sim.living("main") == 0, "nothing lives")
    });
}

#[test]
fn crash_between_alloc_and_task_record() {
    for_seeds(300, |sim| {
        sim.world.faults = Faults::only(&[Fault::Crash, Fault::FailCommit], 150);
        sim.register(&service("web", [task("main")]));
        sim.run(Span::secs(5))?;
        sim.deregister("web", true);
        sim.run(Span::secs(5))?;
        sim.peace()?;
        sim.expect_that(sim.allocs("web").is_empty(), "gone")
    });
}

#[test]
fn poststop_never_after_deadline() {
    for_seeds(300, |sim| {
        let tasks = [
            task("main"),
            task("end").ends("1s", 0).hook(Hook::Poststop, false),
        ];
        let mut sum = batch("sum", tasks);
        sum.task_groups[0].max_run_duration = Some(Span::secs(20));
        sim.register(&sum);
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
        sim.peace()?;
        sim.expect_that(sim.world.starts_of("end") == 0, "no poststop")
    });
}

#[test]
fn poststop_runs_once_across_crashes() {
    for_seeds(300, |sim| {
        sim.world.faults = Faults::only(&[Fault::Crash], 60);
        let tasks = [
            task("main"),
            task("end").ends("2s", 0).hook(Hook::Poststop, false),
        ];
        sim.register(&service("web", tasks));
        sim.until(Span::secs(3600), |sim| sim.runs("web", "main"))?;
        sim.deregister("web", false);
        sim.until(Span::secs(3600), |sim| {
            sim.all_over("web", ClientStatus::Complete)
        })?;
        sim.peace()?;
        sim.expect_that(sim.world.starts_of("end") == 1, "poststop once")
    });
}

#[test]
fn poststop_does_not_follow_what_never_ran() {
    for_seeds(200, |sim| {
        let tasks = [
            task("main"),
            task("end").ends("1s", 0).hook(Hook::Poststop, false),
        ];
        sim.register(&service("web", tasks));
        sim.deregister("web", false);
        sim.run(SOON)?;
        sim.peace()?;
        let failed = sim
            .allocs("web")
            .iter()
            .any(|alloc| alloc.record().status == ClientStatus::Failed);
        sim.expect_that(!failed, "stopped, not failed")
    });
}

#[test]
fn terminal_update_between_prestart_and_start() {
    for_seeds(300, |sim| {
        let tasks = [
            task("main"),
            task("pre").ends("1s", 0).hook(Hook::Prestart, false),
        ];
        sim.register(&service("web", tasks));
        sim.until(SOON, |sim| sim.dead("web", "pre"))?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.peace()?;
        sim.expect_that(sim.living("main") == 0, "nothing lives")
    });
}

/// While the disk is full nothing starts that is reported dead, and no kill gives up on a driver
/// that was never asked.
#[test]
fn a_full_disk_is_nobodys_fault() {
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
        sim.peace()?;
        sim.expect_that(sim.world.alive().count() == 0, "nothing lives")
    });
}

#[test]
fn what_cannot_be_killed_keeps_its_port() {
    for_seeds(100, |sim| {
        sim.world.faults = Faults::only(&[Fault::HangStop, Fault::HangDestroy], 1000).budget(10);
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
        sim.peace()?;
        sim.expect_that(
            sim.living("one") == 0 && sim.living("two") == 1,
            "one after the other",
        )
    });
}

#[test]
fn a_signal_is_always_answered() {
    for_seeds(300, |sim| {
        sim.world.faults = Faults::only(&[Fault::HangStop], 500);
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let request = sim.signal("web");
        sim.deregister("web", true);
        sim.run(SOON)?;
        sim.expect_that(
            request.is_some_and(|request| sim.reply(request).is_some()),
            "an answer",
        )?;
        sim.peace()
    });
}

/// Sidecars of a finished group end, also when the agent died while it stopped them.
#[test]
fn sidecars_end_after_a_restart_during_their_end() {
    for_seeds(300, |sim| {
        sim.world.faults = Faults::only(&[Fault::Crash, Fault::LoseLaunch, Fault::KillProcess], 80);
        let tasks = [
            task("main").ends("5s", 0),
            task("one").hook(Hook::Prestart, true),
            task("two").hook(Hook::Poststart, true),
        ];
        sim.register(&batch("sum", tasks));
        sim.run(Span::secs(300))?;
        sim.peace()?;
        let over = sim
            .allocs("sum")
            .iter()
            .all(|alloc| alloc.record().finished);
        sim.expect_that(over && sim.world.alive().count() == 0, "over")
    });
}

/// A job that is changed while its driver does not work goes on as it was.
#[test]
fn an_update_without_a_place_leaves_the_old_version_running() {
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
        sim.peace()
    });
}

/// A failed allocation that waits for a place is cleaned away, and its place is filled later.
#[test]
fn gc_does_not_give_up_a_place_that_waits() {
    for_seeds(100, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.driver(false);
        sim.run(Span::secs(5))?;
        sim.stop_alloc("web");
        sim.run(SOON)?;
        sim.ask(LocalInput::Collect);
        sim.run(SOON)?;
        sim.driver(true);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let running = sim
            .task("web", "main")
            .is_some_and(|task| task.state().state == TaskLife::Running);
        sim.expect_that(running, "the place is filled")?;
        sim.peace()
    });
}

/// When everything is forgotten, the index of the state goes on from where it was.
#[test]
fn the_index_never_goes_back() {
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

/// When all tasks run again, what comes after the start of the main tasks waits for that start.
#[test]
fn stages_follow_each_other_when_all_run_again() {
    for_seeds(200, |sim| {
        let tasks = [
            task("main").with("kill_after", "3s"),
            task("post").ends("1s", 0).hook(Hook::Poststart, false),
        ];
        sim.register(&service("web", tasks));
        sim.until(SOON, |sim| {
            sim.runs("web", "main") && sim.dead("web", "post")
        })?;
        sim.restart_tasks("web", RestartScope::All);
        sim.until(SOON, |sim| sim.world.starts_of("post") == 2)?;
        sim.expect_that(sim.world.starts_of("main") == 2, "main runs again first")?;
        sim.peace()
    });
}

#[test]
fn a_driver_slower_than_patience_is_believed() {
    for_seeds(100, |sim| {
        sim.register(&service("web", [task("main").with("kill_after", "1h")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.world.faults = Faults::only(&[Fault::SlowAnswer], 1000).budget(1_000_000);
        sim.deregister("web", false);
        sim.run(Span::secs(5 * 3600))?;
        sim.world.faults = Faults::none();
        let clean = sim
            .task("web", "main")
            .is_some_and(|task| !task.has_remains());
        sim.expect_that(clean, "nothing is left")?;
        sim.peace()
    });
}

#[test]
fn an_agent_that_leaves_its_tasks_ends_though_the_disk_is_full() {
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
        sim.peace()?;
        sim.expect_that(sim.world.starts_of("main") == 1, "it runs on")
    });
}

/// Whoever stops an allocation whose setup takes for ever does not wait for the setup's deadline.
#[test]
fn a_slow_setup_can_be_cancelled() {
    for_seeds(100, |sim| {
        sim.register(&service("web", [task("main")]));
        let saved = |key: &Key| matches!(key, Key::Alloc(_));
        sim.until(SOON, |sim| sim.world.disk.records().keys().any(saved))?;
        // The next thing that takes its time is the setup, which waited for that commit.
        sim.world.faults = Faults::only(&[Fault::SlowAnswer], 1000).budget(1);
        sim.run(Span::secs(2))?;
        sim.deregister("web", false);
        sim.until(Span::secs(30), |sim| {
            let allocs = sim.allocs("web");
            allocs.iter().all(|alloc| alloc.record().finished)
        })?;
        sim.peace()
    });
}

/// A copy that proved healthy, failed later and was cleaned away was counted no more, and its
/// roll-out went on for ever.
#[test]
fn a_rollout_counts_what_could_be_collected() {
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
        sim.ask(LocalInput::Collect);
        sim.run(Span::secs(60))?;
        let over = sim.view().is_some_and(|view| {
            let mut rollouts = view.deployments();
            rollouts.all(|rollout| rollout.status == DeploymentStatus::Successful)
        });
        sim.expect_that(over, "the roll-out is over")?;
        sim.peace()
    });
}

/// An index that was acknowledged outlives the agent, also when it rose because of a driver.
#[test]
fn an_index_that_a_driver_raised_is_not_forgotten() {
    for_seeds(20, |sim| {
        sim.driver(false);
        sim.run(SOON)?;
        sim.ask(LocalInput::Collect);
        sim.run(SOON)?;
        let before = sim.view().map_or(0, |view| view.index());
        sim.restart()?;
        let after = sim.view().map_or(0, |view| view.index());
        sim.expect_that(before <= after, "not before what it was")
    });
}

/// A task whose end is known does not run, however long its remains are cleaned away.
#[test]
fn a_task_that_ended_does_not_make_its_allocation_healthy() {
    for_seeds(50, |sim| {
        let web = group("g", [task("main").ends("5s", 0)]).rolls(1);
        sim.world.faults = Faults::only(&[Fault::HangDestroy], 1000);
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
fn an_update_in_place_does_not_let_a_rolling_update_take_another_copy() {
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
        sim.peace()
    });
}

/// Of several tries to end a launch one succeeds: those that did not leave yet never leave.
#[test]
fn a_launch_that_is_over_is_not_destroyed_again() {
    for_seeds(40, |sim| {
        sim.register(&batch("sum", [task("main").ends("1s", 0)]));
        sim.until(SOON, |sim| {
            sim.task("sum", "main")
                .is_some_and(|task| matches!(task.phase(), Phase::Cleaning(_)))
        })?;
        sim.world.faults = Faults::only(&[Fault::SlowAnswer], 500).budget(2);
        sim.run(Span::secs(10))?;
        sim.world.disk.full = true;
        // One change is under way to the disk, and another one waits for it.
        sim.register(&service("web", [task("main")]));
        sim.run(Span::secs(1))?;
        sim.register(&service("other", [task("main")]));
        sim.run(Span::secs(3700))?;
        sim.world.disk.full = false;
        sim.peace()
    });
}

/// A copy that was found unhealthy in one version and took the next one in place counted as nothing,
/// so that two copies of two were on their way at once.
#[test]
fn an_unhealthy_copy_counts_in_the_next_rollout() {
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

/// The time of an allocation was over while its poststop task paused between two starts: the task
/// was dead at once, and nobody saw that the allocation was finished with it.
#[test]
fn an_allocation_is_finished_when_its_time_ends_a_pause() {
    for_seeds(50, |sim| {
        let end = task("end")
            .hook(Hook::Poststop, false)
            .ends("0s", 1)
            .restarts(1000, DAY, Span::secs(60), RestartMode::Fail);
        let mut limited = group("g", [task("main").ends("1s", 0), end]).never_again();
        limited.max_run_duration = Some(Span::secs(30));
        sim.register(&job("sum", JobType::Batch, [limited]));
        sim.run(Span::secs(35))?;
        let finished = sim
            .allocs("sum")
            .iter()
            .all(|alloc| alloc.record().finished);
        sim.expect_that(finished, "it is finished")?;
        sim.peace()
    });
}

/// After a long time without room on the disk, what had waited for it left with next to no time for
/// its answer: a start that took a second was given up at once.
#[test]
fn what_waited_for_the_disk_gets_its_time() {
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
                sim.peace()
            });
        }
    }
}
