//! Templates: a start finds what is rendered, and a task is told of each change once, whatever
//! happens meanwhile.

use std::cell::Cell;

use drover_core::agent::Input;
use drover_core::agent::requests::RestartScope;
use drover_core::ids::TaskKey;
use drover_core::input::TemplateInput;
use drover_core::model::event::EventType;
use drover_core::model::job::Job;
use drover_core::model::task::Task;
use drover_core::model::template::{ChangeMode, Wait};
use drover_core::op::Op;
use drover_core::task::runner::Phase;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{TaskExt, changed, service, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

fn web(mode: ChangeMode) -> Job {
    service("web", [task("main").template(mode)])
}

fn started(sim: &mut Sim, main: Task) -> Result<(), Violation> {
    sim.register(&service("web", [main]));
    sim.until(SOON, |sim| sim.runs("web", "main"))
}

#[test]
fn template_change_restarts_task() {
    for_seeds(100, |sim| {
        started(sim, task("main").template(ChangeMode::Restart))?;
        sim.expect_that(
            sim.knows("web", "main") == Some(0),
            "what is rendered first",
        )?;
        sim.a_template_changes();
        sim.until(SOON, |sim| {
            sim.knows("web", "main") == Some(1) && sim.runs("web", "main")
        })?;
        sim.expect_that(sim.restarts("web", "main") == 1, "one restart")?;
        sim.converge()
    });
}

/// How a task is told changes without a start, and so does how long changes are collected.
#[test]
fn template_settings_change_in_place() {
    for_seeds(100, |sim| {
        let old = web(ChangeMode::Restart);
        sim.register(&old);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.register(&changed(&old, |group| {
            let template = &mut group.tasks[0].templates[0];
            template.change_mode = ChangeMode::Noop;
            template.wait = Some(Wait {
                min: Span::secs(1),
                max: Span::secs(2),
            });
        }));
        sim.run(SOON)?;
        sim.a_template_changes();
        sim.until(SOON, |sim| sim.knows("web", "main") == Some(1))?;
        sim.expect_that(
            sim.restarts("web", "main") == 0,
            "it is told in the new way",
        )?;
        sim.expect_that(sim.world.starts_of("main") == 1, "no further start")?;
        sim.converge()
    });
}

/// A stop arrives as an update of what is wanted, also while the tasks take their time to end.
#[test]
fn stopped_alloc_runs_no_update_hook() {
    for_seeds(100, |sim| {
        let slow = task("main")
            .template(ChangeMode::Signal)
            .with("kill_after", "4s");
        sim.register(&service("web", [slow]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| {
            sim.task("web", "main").is_none_or(|task| task.is_dead())
        })?;
        sim.converge()
    });
}

#[test]
fn template_change_signals_task() {
    for_seeds(100, |sim| {
        started(sim, task("main").template(ChangeMode::Signal))?;
        sim.a_template_changes();
        sim.until(SOON, |sim| sim.knows("web", "main") == Some(1))?;
        sim.expect_that(sim.restarts("web", "main") == 0, "no restart")?;
        let signals = sim.task_events("web", "main", EventType::Signaling);
        sim.expect_that(signals == 1, "one signal")?;
        sim.converge()
    });
}

#[test]
fn noop_template_change_does_nothing() {
    for_seeds(100, |sim| {
        started(sim, task("main").template(ChangeMode::Noop))?;
        sim.a_template_changes();
        sim.until(SOON, |sim| sim.knows("web", "main") == Some(1))?;
        let emitted = sim.task_events("web", "main", EventType::Signaling)
            + sim.task_events("web", "main", EventType::RestartSignaled);
        sim.expect_that(
            emitted == 0 && sim.restarts("web", "main") == 0,
            "the task is left alone",
        )?;
        sim.converge()
    });
}

/// Many changes within the splay are one.
#[test]
fn simultaneous_changes_are_applied_together() {
    for_seeds(100, |sim| {
        let mut main = task("main").template(ChangeMode::Restart);
        main.templates[0].splay = Span::secs(3600);
        started(sim, main)?;
        for _ in 0..5 {
            sim.a_template_changes();
        }
        sim.until(Span::secs(4000), |sim| sim.knows("web", "main") == Some(5))?;
        sim.expect_that(sim.restarts("web", "main") == 1, "one restart")?;
        sim.converge()
    });
}

/// The agent dies wherever it can: a change that comes before, between or after is told, and once.
#[test]
fn template_change_is_applied_despite_crashes() {
    for mode in [ChangeMode::Restart, ChangeMode::Signal] {
        let steps = each_crash(1, |sim| {
            sim.register(&web(mode));
            sim.until(Span::secs(600), |sim| sim.runs("web", "main"))?;
            sim.a_template_changes();
            sim.until(Span::secs(600), |sim| {
                sim.runs("web", "main") && sim.knows("web", "main").is_some_and(|known| known >= 1)
            })?;
            sim.converge()
        });
        assert!(steps > 10, "{steps} moments to die at");
    }
}

/// What changes while no agent looks is found out by the next one.
#[test]
fn template_change_during_downtime_is_applied() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        started(sim, task("main").template(ChangeMode::Restart))?;
        sim.world.scene.faults = Faults::only(&[Fault::ChangeTemplate], 1000).budget(1);
        sim.goes_down(false, Span::secs(1));
        sim.until(SOON, |sim| {
            sim.knows("web", "main") == Some(1) && sim.runs("web", "main")
        })?;
        sim.expect_that(sim.restarts("web", "main") == 1, "one restart")?;
        sim.converge()
    });
}

/// A change is due while the task takes its time to end: nobody is called back again and again.
#[test]
fn template_change_waits_for_stopping_task() {
    for_seeds(50, |sim| {
        let main = task("main").template(ChangeMode::Restart);
        let mut main = main.with("kill_after", "4s");
        main.templates[0].splay = Span::secs(3);
        main.kill_timeout = Some(Span::secs(10));
        started(sim, main)?;
        sim.a_template_changes();
        sim.run(Span::millis(1))?;
        sim.restart_tasks("web", RestartScope::Running);
        sim.until(SOON, |sim| {
            sim.knows("web", "main") == Some(1) && sim.runs("web", "main")
        })?;
        sim.expect_that(sim.restarts("web", "main") == 1, "one restart for both")?;
        sim.converge()
    });
}

/// An agent that cannot watch the templates of a task that it finds running tries again: what
/// changed meanwhile is told then, and not only by the next agent.
#[test]
fn failed_template_watch_is_retried() {
    let failed = Cell::new(0);
    for_seeds(100, |sim| {
        started(sim, task("main").template(ChangeMode::Restart))?;
        sim.world.scene.faults = Faults::only(&[Fault::FailHook], 1000).budget(1);
        sim.goes_down(false, Span::secs(1));
        sim.run(SOON)?;
        // It may have been another hook that failed.
        if sim.allocs("web").len() > 1 {
            return Ok(());
        }
        failed.set(failed.get() + sim.task_events("web", "main", EventType::Template));
        sim.a_template_changes();
        sim.until(Span::secs(900), |sim| {
            sim.knows("web", "main") == Some(1) && sim.runs("web", "main")
        })?;
        sim.converge()
    });
    assert!(failed.get() > 0, "no watch failed in any world");
}

/// What is missing is waited for longer than for any answer, and the task says what it is.
#[test]
fn missing_template_data_is_awaited() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::MissingTemplate], 1000).budget(1);
        sim.register(&web(ChangeMode::Restart));
        sim.until(Span::secs(4000), |sim| sim.runs("web", "main"))?;
        let failed = sim.task_events("web", "main", EventType::HookFailed);
        sim.expect_that(failed == 0, "nothing failed")?;
        let emitted = sim.task_events("web", "main", EventType::Template);
        sim.expect_that(emitted == 1, "it says what is missing")?;
        sim.converge()
    });
}

/// A task that waits for what its templates need can be stopped at once.
#[test]
fn task_waiting_for_templates_can_be_stopped() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::MissingTemplate], 1000).budget(1);
        sim.register(&web(ChangeMode::Restart));
        sim.until(SOON, |sim| {
            sim.task_events("web", "main", EventType::Template) == 1
        })?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.dead("web", "main"))?;
        sim.expect_that(sim.knows("web", "main").is_none(), "it never ran")?;
        sim.converge()
    });
}

/// A new version that is rendered while the task is between two starts is found by the next one,
/// and asks for no other.
#[test]
fn template_change_between_starts_restarts_nothing() {
    for_seeds(100, |sim| {
        let main = task("main").template(ChangeMode::Restart).ends("10s", 1);
        started(sim, main)?;
        let pausing = |sim: &Sim| {
            let task = sim.task("web", "main");
            task.is_some_and(|task| matches!(task.phase(), Phase::Pausing(_)))
        };
        sim.until(SOON, pausing)?;
        sim.a_template_changes();
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.expect_that(
            sim.knows("web", "main") == Some(1),
            "it starts with the new version",
        )?;
        let asked = sim.task_events("web", "main", EventType::RestartSignaled);
        sim.expect_that(asked == 0, "nobody asked for a restart")
    });
}

/// Where the policy says so, each start renders everything anew.
#[test]
fn restart_renders_templates_again() {
    for_seeds(50, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let mut main = task("main").template(ChangeMode::Noop).ends("10s", 1);
        let mut policy = main.restart_policy.unwrap_or_default();
        policy.render_templates = Some(true);
        main.restart_policy = Some(policy);
        started(sim, main)?;
        sim.world.scene.faults = Faults::only(&[Fault::MissingTemplate], 1000).budget(1);
        sim.until(SOON, |sim| {
            sim.task_events("web", "main", EventType::Template) == 1
        })
    });
}

/// Words of a rendering that nobody asked for, or of one that is over, change nothing.
#[test]
fn late_template_reports_are_ignored() {
    for_seeds(20, |sim| {
        started(sim, task("main").template(ChangeMode::Restart))?;
        let alloc = sim.live("web").map(|alloc| alloc.record().id);
        let key = TaskKey {
            alloc: alloc.unwrap_or_default(),
            task: "main".into(),
        };
        let missing = vec!["file local/x".to_owned()];
        let op = Op(999_999);
        sim.send_raw(Input::Template(key, TemplateInput::Missing { op, missing }));
        sim.converge()?;
        let emitted = sim.task_events("web", "main", EventType::Template);
        sim.expect_that(
            emitted == 0 && sim.restarts("web", "main") == 0,
            "nothing happened",
        )
    });
}
