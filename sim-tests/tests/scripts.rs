//! Scripts of templates: run beside a task when something changes, once, whatever happens meanwhile.

use std::cell::Cell;

use drover_core::agent::requests::RestartScope;
use drover_core::model::event::EventType;
use drover_core::model::task::Task;
use drover_core::model::template::{ChangeMode, ChangeScript};
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{TaskExt, service, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

fn scripted(change: impl FnOnce(&mut ChangeScript)) -> Task {
    let mut main = task("main").template(ChangeMode::Script);
    main.templates[0].change_script.as_mut().map(change);
    main
}

fn started(sim: &mut Sim, main: Task) -> Result<(), Violation> {
    sim.register(&service("web", [main]));
    sim.until(SOON, |sim| sim.runs("web", "main"))
}

fn ran(sim: &Sim) -> usize {
    sim.task_events("web", "main", EventType::HookMessage)
}

fn failed(sim: &Sim) -> usize {
    sim.task_events("web", "main", EventType::HookFailed)
}

#[test]
fn template_change_runs_script() {
    for_seeds(100, |sim| {
        started(sim, scripted(|_| {}))?;
        sim.run(SOON)?;
        sim.expect_that(ran(sim) == 0, "the first rendering is told by the start")?;
        sim.a_template_changes();
        sim.until(SOON, |sim| {
            sim.knows("web", "main") == Some(1) && ran(sim) == 1
        })?;
        let starts = sim.world.starts_of("main");
        sim.expect_that(starts == 1, "the task goes on")?;
        sim.converge()
    });
}

/// Once in the life of the task, also if it is started again.
#[test]
fn first_render_script_runs_after_first_start() {
    for_seeds(100, |sim| {
        started(sim, scripted(|script| script.run_on_first_render = true))?;
        sim.until(SOON, |sim| {
            sim.knows("web", "main") == Some(0) && ran(sim) == 1
        })?;
        sim.restart_tasks("web", RestartScope::Running);
        sim.until(SOON, |sim| sim.world.starts_of("main") == 2)?;
        sim.run(SOON)?;
        sim.expect_that(ran(sim) == 1, "no second time")?;
        sim.converge()
    });
}

#[test]
fn fatal_script_fails_task() {
    for fatal in [false, true] {
        for_seeds(100, |sim| {
            if sim.seed() == BENIGN {
                return Ok(());
            }
            started(sim, scripted(|script| script.fail_on_error = fatal))?;
            sim.world.scene.faults = Faults::only(&[Fault::FailScript], 1000).budget(1);
            sim.a_template_changes();
            sim.until(SOON, |sim| failed(sim) == 1)?;
            if fatal {
                let failed =
                    |sim: &Sim| sim.task("web", "main").is_some_and(|it| it.state().failed);
                sim.until(SOON, |sim| failed(sim) && sim.dead("web", "main"))?;
            } else {
                sim.run(SOON)?;
                let starts = sim.world.starts_of("main");
                sim.expect_that(starts == 1, "the task goes on")?;
            }
            sim.converge()
        });
    }
}

/// What changes while a script runs is told when it is over, and not before.
#[test]
fn changes_wait_for_running_script() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let mut main = scripted(|script| script.timeout = Span::secs(600));
        main.templates[0].splay = Span::ZERO;
        started(sim, main)?;
        sim.world.scene.faults = Faults::only(&[Fault::HangScript], 1000).budget(1);
        sim.a_template_changes();
        sim.until(SOON, |sim| sim.knows("web", "main") == Some(1))?;
        sim.a_template_changes();
        sim.run(Span::secs(500))?;
        sim.expect_that(sim.knows("web", "main") == Some(1), "it waits")?;
        sim.until(Span::secs(200), |sim| {
            sim.knows("web", "main") == Some(2) && ran(sim) == 1
        })?;
        sim.expect_that(failed(sim) == 1, "nobody said what became of the first")?;
        sim.converge()
    });
}

/// The agent dies wherever it can: the change is known afterwards, and was told at most once.
#[test]
fn script_runs_at_most_once_despite_crashes() {
    for first in [false, true] {
        let steps = each_crash(1, |sim| {
            let main = scripted(|script| script.run_on_first_render = first);
            sim.register(&service("web", [main]));
            sim.until(Span::secs(600), |sim| {
                sim.runs("web", "main") && sim.knows("web", "main") == Some(0)
            })?;
            sim.a_template_changes();
            sim.until(Span::secs(600), |sim| {
                sim.runs("web", "main") && sim.knows("web", "main").is_some_and(|known| known >= 1)
            })?;
            sim.run(SOON)?;
            sim.expect_that(ran(sim) <= 1 + usize::from(first), "at most once")?;
            sim.converge()
        });
        assert!(steps > 10, "{steps} moments to die at");
    }
}

/// A task that ends takes its scripts along: nothing is said of them, and nothing waits for them.
#[test]
fn change_script_ends_with_its_task() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let main = scripted(|script| {
            script.timeout = Span::secs(3600);
            script.fail_on_error = true;
        });
        started(sim, main)?;
        sim.world.scene.faults = Faults::only(&[Fault::HangScript], 1000).budget(1);
        sim.a_template_changes();
        sim.until(SOON, |sim| sim.knows("web", "main") == Some(1))?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.dead("web", "main"))?;
        sim.expect_that(failed(sim) == 0, "no failure of the script")?;
        sim.converge()
    });
}

/// A script that waits for the disk is dropped when its task is asked to end meanwhile.
#[test]
fn change_script_is_not_run_while_its_task_stops() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let mut main = scripted(|_| {});
        main.shutdown_delay = Span::secs(60);
        started(sim, main)?;
        sim.run(SOON)?;
        sim.world.scene.faults = Faults::only(&[Fault::FailCommit], 1000).budget(3);
        sim.a_template_changes();
        sim.until(SOON, |sim| sim.knows("web", "main") == Some(1))?;
        sim.deregister("web", false);
        sim.until(Span::secs(120), |sim| sim.dead("web", "main"))?;
        let none = ran(sim) == 0 && failed(sim) == 0;
        sim.expect_that(none, "no script beside what ends")?;
        sim.converge()
    });
}

/// That a task fails with its script is remembered: whoever comes after the agent that saw it ends the
/// task all the same.
#[test]
fn fatal_script_failure_survives_crashes() {
    let failures = Cell::new(0);
    let steps = each_crash(1, |sim| {
        let mut main = scripted(|script| script.fail_on_error = true);
        main.kill_timeout = Some(Span::secs(20));
        sim.register(&service("web", [main.with("kill_after", "10s")]));
        sim.until(Span::secs(600), |sim| {
            sim.runs("web", "main") && sim.knows("web", "main") == Some(0)
        })?;
        let first = sim.allocs("web")[0].record().id;
        sim.world.scene.faults = sim
            .world
            .scene
            .faults
            .clone()
            .and(&Faults::only(&[Fault::FailScript], 1000));
        sim.a_template_changes();
        sim.run(Span::secs(300))?;
        let (mut failed, mut dead) = (false, true);
        for alloc in sim
            .allocs("web")
            .iter()
            .filter(|alloc| alloc.record().id == first)
        {
            failed |= alloc.tasks().iter().any(|task| task.state().failed);
            dead &= alloc.tasks().iter().all(|task| task.is_dead());
        }
        failures.set(failures.get() + u32::from(failed));
        sim.expect_that(dead || !failed, "what failed is over")?;
        sim.converge()
    });
    assert!(steps > 10, "{steps} moments to die at");
    assert!(failures.get() > 5, "{failures:?}");
}
