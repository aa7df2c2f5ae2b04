//! Bugs that other node agents had in ends and restarts, each under the name of the bug.

use drover_core::agent::requests::RestartScope;
use drover_core::input::ShutdownMode;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::EventType;
use drover_core::model::job::JobType;
use drover_core::model::policy::RestartMode;
use drover_core::model::task::Hook;
use drover_core::store::Key;
use drover_core::task::runner::Phase;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults};
use drover_sim_tests::build::{GroupExt, TaskExt, batch, group, job, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{Inspect, SOON};

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
        sim.converge()?;
        sim.expect_that(
            sim.world.disk.records().len() == 1,
            "only the node's record is left",
        )
    });
}

/// A replacement that waits for its predecessor is stopped although the predecessor never ends.
#[test]
fn blocked_on_previous_can_be_stopped() {
    for_seeds(200, |sim| {
        sim.world.scene.faults =
            Faults::only(&[Fault::HangStop, Fault::HangDestroy], 1000).budget(3);
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
        sim.converge()
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
        sim.converge()
    });
}

#[test]
fn restart_counter_survives_agent_restart() {
    for_seeds(300, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::Crash], 60);
        let main = task("main")
            .ends("2s", 1)
            .restarts(3, DAY, Span::secs(1), RestartMode::Fail);
        sim.register(&batch("sum", [main]));
        sim.until(Span::secs(3600), |sim| {
            sim.all_over("sum", ClientStatus::Failed)
        })?;
        sim.converge()?;
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
        sim.converge()
    });
}

#[test]
fn task_killed_during_start_is_stopped() {
    for_seeds(300, |sim| {
        let main = task("main").with("start_block_for", "4s");
        sim.register(&service("web", [main]));
        sim.until(SOON, |sim| {
            sim.task("web", "main")
                .is_some_and(|task| matches!(task.phase(), Phase::Starting(_)))
        })?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.converge()?;
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
        sim.converge()?;
        sim.expect_that(sim.living("main") == 0, "nothing lives")
    });
}

#[test]
fn alloc_past_max_run_duration_runs_no_poststop() {
    for_seeds(300, |sim| {
        let tasks = [
            task("main"),
            task("end").ends("1s", 0).hook(Hook::Poststop, false),
        ];
        let mut sum = batch("sum", tasks);
        sum.task_groups[0].max_run_duration = Some(Span::secs(20));
        sim.register(&sum);
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("end") == 0, "no poststop")
    });
}

#[test]
fn poststop_runs_once_across_crashes() {
    for_seeds(300, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::Crash], 60);
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
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("end") == 1, "poststop once")
    });
}

/// A stop meets the setup of the allocation, which never ends: no main task runs, and nothing is there that
/// something could come after.
#[test]
fn poststop_does_not_run_without_main() {
    for_seeds(200, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::HangHook], 1000);
        let tasks = [
            task("main"),
            task("end").ends("1s", 0).hook(Hook::Poststop, false),
        ];
        sim.register(&service("web", tasks));
        sim.until(SOON, |sim| sim.live("web").is_some())?;
        sim.deregister("web", false);
        sim.until(Span::secs(600), |sim| {
            sim.all_over("web", ClientStatus::Complete)
        })?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == 0, "it was stopped before")?;
        sim.expect_that(sim.world.starts_of("end") == 0, "no poststop")
    });
}

/// However far the allocation is when the stop comes.
#[test]
fn alloc_stopped_at_once_does_not_fail() {
    for_seeds(200, |sim| {
        let tasks = [
            task("main"),
            task("end").ends("1s", 0).hook(Hook::Poststop, false),
        ];
        sim.register(&service("web", tasks));
        sim.deregister("web", false);
        sim.run(SOON)?;
        let ended = sim.world.starts_of("end");
        sim.expect_that(ended <= 1, "poststop once")?;
        sim.expect_that(sim.living("main") == 0, "nothing lives")?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("end") == ended, "it is over")?;
        let failed = sim
            .allocs("web")
            .iter()
            .any(|alloc| alloc.record().status == ClientStatus::Failed);
        sim.expect_that(!failed, "stopped, not failed")
    });
}

#[test]
fn alloc_stopped_after_prestart_starts_no_main_task() {
    for_seeds(300, |sim| {
        let tasks = [
            task("main"),
            task("pre").ends("1s", 0).hook(Hook::Prestart, false),
        ];
        sim.register(&service("web", tasks));
        sim.until(SOON, |sim| sim.dead("web", "pre"))?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.converge()?;
        sim.expect_that(sim.living("main") == 0, "nothing lives")
    });
}

#[test]
fn signal_is_always_answered() {
    for_seeds(300, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::HangStop], 500);
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let request = sim.signal("web");
        sim.deregister("web", true);
        sim.run(SOON)?;
        sim.expect_that(
            request.is_some_and(|request| sim.reply(request).is_some()),
            "an answer",
        )?;
        sim.converge()
    });
}

/// Sidecars of a finished group end, also when the agent died while it stopped them.
#[test]
fn sidecars_end_despite_crash_during_stop() {
    for_seeds(300, |sim| {
        sim.world.scene.faults =
            Faults::only(&[Fault::Crash, Fault::LoseLaunch, Fault::KillProcess], 80);
        let tasks = [
            task("main").ends("5s", 0),
            task("one").hook(Hook::Prestart, true),
            task("two").hook(Hook::Poststart, true),
        ];
        sim.register(&batch("sum", tasks));
        sim.run(Span::secs(300))?;
        sim.converge()?;
        let over = sim
            .allocs("sum")
            .iter()
            .all(|alloc| alloc.record().finished);
        sim.expect_that(over && sim.world.alive().count() == 0, "over")
    });
}

/// When all tasks run again, what comes after the start of the main tasks waits for that start.
#[test]
fn restart_of_all_tasks_runs_stages_in_order() {
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
        sim.converge()
    });
}

#[test]
fn driver_answer_after_timeout_is_accepted() {
    for_seeds(100, |sim| {
        sim.register(&service("web", [task("main").with("kill_after", "1h")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.world.scene.faults = Faults::only(&[Fault::SlowAnswer], 1000).budget(1_000_000);
        sim.deregister("web", false);
        sim.run(Span::secs(5 * 3600))?;
        sim.world.scene.faults = Faults::none();
        let clean = sim
            .task("web", "main")
            .is_some_and(|task| !task.has_remains());
        sim.expect_that(clean, "nothing is left")?;
        sim.converge()
    });
}

/// Whoever stops an allocation whose setup takes for ever does not wait for the setup's deadline.
#[test]
fn alloc_can_be_stopped_during_slow_setup() {
    for_seeds(100, |sim| {
        sim.register(&service("web", [task("main")]));
        let saved = |key: &Key| matches!(key, Key::Alloc(_));
        sim.until(SOON, |sim| sim.world.disk.records().keys().any(saved))?;
        // The next thing that takes its time is the setup, which waited for that commit.
        sim.world.scene.faults = Faults::only(&[Fault::SlowAnswer], 1000).budget(1);
        sim.run(Span::secs(2))?;
        sim.deregister("web", false);
        sim.until(Span::secs(30), |sim| {
            let allocs = sim.allocs("web");
            allocs.iter().all(|alloc| alloc.record().finished)
        })?;
        sim.converge()
    });
}

/// The time of an allocation was over while its poststop task paused between two starts: the task
/// was dead at once, and nobody saw that the allocation was finished with it.
#[test]
fn timed_out_alloc_finishes_during_restart_delay() {
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
        sim.converge()
    });
}

/// A signal of an agent that died arrived after its death, and the next agent, which found the task
/// running and had not asked for its end yet, was not told of it.
#[test]
fn kill_of_earlier_agent_is_reported() {
    for_seeds(100, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::SwallowExit], 1000);
        let mut web = service("web", [task("main").with("kill_after", "1s")]);
        web.task_groups[0].shutdown_delay = Some(SOON);
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", false);
        sim.until(Span::secs(70), |sim| {
            sim.task("web", "main")
                .is_some_and(|task| matches!(task.phase(), Phase::Stopping(_)))
        })?;
        // Somewhere between the commit and the arrival of the signal. The next agent begins with
        // the delay again.
        sim.run(Span::millis((sim.seed() % 10) as i64 * 200))?;
        sim.restart()?;
        sim.run(Span::secs(20))?;
        sim.expect_that(
            sim.living("main") == 1 || !sim.runs("web", "main"),
            "what ended is known to have ended",
        )?;
        sim.converge()
    });
}

/// A group's delay before its end was over while the agent left its tasks alone and only waited for
/// its last commits: an answer of the disk made it look at the allocation, and it asked the task to
/// end.
#[test]
fn shutdown_delay_passing_during_agent_stop_kills_nothing() {
    for_seeds(300, |sim| {
        let side = task("side").hook(Hook::Poststart, true);
        let mut web = service("web", [task("main"), side]);
        web.task_groups[0].shutdown_delay = Some(Span::millis(500));
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "side"))?;
        sim.restart_tasks("web", RestartScope::Task("side".into()));
        sim.run(Span::millis(1))?;
        sim.stop_alloc("web");
        sim.run(Span::millis(100))?;
        sim.shutdown(ShutdownMode::KeepTasks);
        sim.until(SOON, |sim| sim.stopped)?;
        sim.restart()?;
        sim.converge()
    });
}
