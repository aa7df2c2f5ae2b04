//! Records that the next agent cannot read: what they were about is ended and never started again.

use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::EventType;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{GroupExt, TaskExt, batch, changed, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{Inspect, SOON};

/// Seeds in which anything can go wrong at all; in the world of seed 0 nothing does.
fn for_troubled_seeds(count: u64, scenario: impl Fn(&mut Sim) -> Result<(), Violation>) {
    for_seeds(count, |sim| match sim.seed() {
        0 => Ok(()),
        _ => scenario(sim),
    });
}

/// A new agent begins, and cannot read what was saved of any task.
fn begin_blind(sim: &mut Sim, also: &[Fault]) -> Result<(), Violation> {
    sim.world.scene.faults =
        Faults::only(&[Fault::UnreadableRecord], 1000).and(&Faults::only(also, 1000));
    let done = sim.restart();
    sim.world.scene.faults = sim
        .world
        .scene
        .faults
        .clone()
        .without(Fault::UnreadableRecord);
    done
}

/// The process of a task whose record is lost was left behind, and a second one started.
#[test]
fn task_with_unreadable_record_is_killed_before_next_start() {
    for_troubled_seeds(100, |sim| {
        let web = changed(&service("web", [task("main")]), |group| {
            *group = group
                .clone()
                .reschedules(1, Span::secs(1))
                .static_port("http", 8080);
        });
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        begin_blind(sim, &[])?;
        sim.until(SOON, |sim| {
            sim.allocs("web").len() == 2 && sim.runs("web", "main")
        })?;
        sim.converge()?;
        let first = sim.allocs("web")[0];
        let emitted = first.tasks()[0].state().events.iter();
        let emitted = emitted.filter(|event| event.kind == EventType::FailedRestoring);
        sim.expect_that(emitted.count() == 1, "people are told")?;
        sim.expect_that(first.record().status == ClientStatus::Failed, "it failed")?;
        sim.expect_that(sim.living("main") == 1, "one lives")
    });
}

/// What may live of such a task holds up its replacement as long as it is not surely gone.
#[test]
fn replacement_waits_for_unreadable_task_to_end() {
    for_troubled_seeds(100, |sim| {
        let web = changed(&service("web", [task("main")]), |group| {
            *group = group.clone().reschedules(1, Span::secs(1));
        });
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        begin_blind(sim, &[Fault::HangDestroy])?;
        sim.run(SOON)?;
        sim.expect_that(sim.world.starts_of("main") == 1, "nothing new")?;
        sim.expect_that(sim.living("main") == 1, "the old one resists")?;
        sim.world.scene.faults = Faults::none();
        sim.until(Span::secs(1200), |sim| sim.world.starts_of("main") == 2)?;
        sim.expect_that(sim.living("main") == 1, "one after the other")?;
        sim.converge()
    });
}

/// A batch job that is done stays done.
#[test]
fn complete_batch_alloc_stays_complete_without_record() {
    for_troubled_seeds(50, |sim| {
        sim.register(&batch("sum", [task("main").ends("1s", 0)]));
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
        sim.run(SOON)?;
        begin_blind(sim, &[])?;
        sim.converge()?;
        sim.expect_that(sim.all_over("sum", ClientStatus::Complete), "as it was")?;
        sim.expect_that(sim.world.starts_of("main") == 1, "one start")
    });
}
