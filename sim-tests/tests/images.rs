//! Tasks that follow the tags of their images. Worlds begin on 2023-11-14 at 22:13:21 UTC.

use drover_core::agent::requests::RevertJob;
use drover_core::ids::JobKey;
use drover_core::model::image::ImageUpdate;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::model::task::Task;
use drover_core::store::image::Look;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{GroupExt, TaskExt, changed, group, job, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

const IMAGE: &str = "app:1";
const MINUTES: Span = Span::secs(5 * 60);

/// At 22:15, 22:20 and so on, up to 22:55.
const EACH_FIVE: &str = "0 15-55/5 22 14 11 * 2023";

fn follows(mut task: Task) -> Task {
    task.image_update = Some(ImageUpdate {
        schedule: EACH_FIVE.to_owned(),
        ..ImageUpdate::default()
    });
    task.with("image", IMAGE)
}

/// Two copies that are replaced one after the other, and by the last stable version where that fails.
fn web(task: Task) -> Job {
    let task = task.restarts(0, MINUTES, Span::secs(1), RestartMode::Fail);
    let mut group = group("g", [task]).count(2).rolls(1);
    if let Some(update) = &mut group.update {
        update.auto_revert = true;
        update.min_healthy_time = Span::secs(5);
    }
    job("web", JobType::Service, [group])
}

fn main_task() -> Task {
    follows(task("main"))
}

fn last_check(sim: &Sim) -> Option<Look> {
    let images = sim.view()?.images(&JobKey::local("web"));
    Some(images.first()?.last.clone())
}

/// What the copies run.
fn contents(sim: &Sim) -> Vec<&str> {
    let registry = &sim.world.registry;
    let alive = sim.world.alive().map(|(launch, _)| *launch);
    alive.filter_map(|it| registry.digest_of(it)).collect()
}

fn run_only(sim: &Sim, digest: &str) -> bool {
    contents(sim) == [digest, digest]
}

/// A job of which both copies run, made of the first content.
///
/// Faults that may end a task are off: they may end a roll-out, too.
fn running(sim: &mut Sim) -> Result<String, Violation> {
    sim.world.scene.faults = match sim.seed() {
        BENIGN => Faults::none(),
        _ => Faults::only(&[Fault::DoubledAnswer, Fault::FailCommit], 200),
    };
    let first = sim.world.push_image(IMAGE, true);
    sim.register(&web(main_task()));
    // An agent that died is back within a minute.
    sim.until(MINUTES, |sim| run_only(sim, &first))?;
    Ok(first)
}

#[test]
fn tag_that_does_not_move_makes_no_version() {
    for_seeds(60, |sim| {
        running(sim)?;
        sim.run(Span::secs(20 * 60))?;
        sim.expect_that(sim.version("web") == Some(0), "the first version")?;
        sim.expect_that(sim.world.starts_of("main") == 2, "nothing starts again")?;
        sim.expect_that(last_check(sim) == Some(Look::Unchanged), "it was looked at")?;
        sim.converge()
    });
}

/// Its copies were started before the tag moved, and run something else than what it means at the first look.
#[test]
fn moved_tag_is_rolled_out_once() {
    for_seeds(60, |sim| {
        running(sim)?;
        let second = sim.world.push_image(IMAGE, true);
        sim.run(Span::secs(45 * 60))?;
        sim.expect_that(sim.version("web") == Some(1), "one new version")?;
        sim.expect_that(sim.world.starts_of("main") == 4, "each copy once")?;
        sim.expect_that(run_only(sim, &second), "the new content, and no other")?;
        sim.converge()
    });
}

/// What a task of the same name runs in another group is not what this one follows.
#[test]
fn image_of_another_group_is_no_reason_for_a_new_version() {
    for_seeds(30, |sim| {
        sim.world.scene.faults = Faults::none();
        sim.world.push_image(IMAGE, true);
        sim.world.push_image("other:1", true);
        let mut job = web(main_task());
        let other = group("h", [task("main").with("image", "other:1")]);
        job.task_groups.push(other);
        sim.register(&job);
        sim.until(MINUTES, |sim| sim.living("main") == 3)?;
        sim.run(Span::secs(20 * 60))?;
        sim.expect_that(last_check(sim) == Some(Look::Unchanged), "it was looked at")?;
        sim.expect_that(sim.version("web") == Some(0), "the first version")?;
        sim.expect_that(sim.world.starts_of("main") == 3, "nothing starts again")?;
        sim.converge()
    });
}

#[test]
fn update_survives_crash_at_every_step() {
    let crashes = each_crash(2, |sim| {
        running(sim)?;
        let second = sim.world.push_image(IMAGE, true);
        sim.run(Span::secs(15 * 60))?;
        sim.converge()?;
        sim.expect_that(run_only(sim, &second), "the new content, and no other")
    });
    assert!(crashes > 20, "{crashes}");
}

#[test]
fn tag_moved_after_first_check_is_rolled_out() {
    for_seeds(60, |sim| {
        running(sim)?;
        // The first look is at 22:15.
        sim.run(Span::secs(4 * 60))?;
        let second = sim.world.push_image(IMAGE, true);
        sim.until(Span::secs(45 * 60), |sim| run_only(sim, &second))?;
        sim.converge()
    });
}

#[test]
fn digest_that_was_reverted_is_not_tried_again_until_tag_moves_on() {
    for_seeds(30, |sim| {
        let first = running(sim)?;
        // It is stable by then.
        sim.run(Span::secs(60))?;
        sim.world.push_image(IMAGE, false);
        sim.run(Span::secs(20 * 60))?;
        sim.expect_that(
            sim.version("web") == Some(2),
            "it was tried and reverted, once",
        )?;
        sim.expect_that(
            run_only(sim, &first),
            "what ran before, and not what the tag means",
        )?;
        let third = sim.world.push_image(IMAGE, true);
        sim.run(Span::secs(10 * 60))?;
        sim.expect_that(sim.version("web") == Some(3), "the next is tried")?;
        sim.expect_that(run_only(sim, &third), "and stays")?;
        sim.converge()
    });
}

#[test]
fn broken_registry_restarts_nothing_and_is_asked_again() {
    for fault in [Fault::HangProbe, Fault::FailProbe] {
        for_seeds(20, |sim| {
            running(sim)?;
            if sim.seed() == BENIGN {
                // There are no faults in that world.
                return Ok(());
            }
            let second = sim.world.push_image(IMAGE, true);
            sim.world.scene.faults = Faults::only(&[fault], 1000);
            sim.run(Span::secs(12 * 60))?;
            sim.expect_that(sim.version("web") == Some(0), "nothing is made of it")?;
            sim.expect_that(sim.world.starts_of("main") == 2, "nothing starts again")?;
            let failed = matches!(last_check(sim), Some(Look::Failed(_)));
            sim.expect_that(failed, "it says so")?;
            sim.world.scene.faults = Faults::none();
            sim.until(Span::secs(15 * 60), |sim| run_only(sim, &second))?;
            sim.expect_that(sim.version("web") == Some(1), "one version")
        });
    }
}

/// What somebody submits says nothing of digests.
#[test]
fn same_job_file_changes_nothing_after_an_update() {
    for_seeds(30, |sim| {
        running(sim)?;
        let second = sim.world.push_image(IMAGE, true);
        sim.until(Span::secs(45 * 60), |sim| run_only(sim, &second))?;
        let before = sim.version("web");
        sim.register(&web(main_task()));
        sim.run(SOON)?;
        sim.expect_that(sim.version("web") == before, "no new version")?;
        let other = changed(&web(main_task()), |group| {
            group.tasks[0].env.insert("V".to_owned(), "2".to_owned());
        });
        sim.register(&other);
        sim.run(MINUTES)?;
        sim.expect_that(run_only(sim, &second), "the same content")?;
        sim.converge()
    });
}

/// A version that named no digest comes back with what its copies ran.
#[test]
fn version_without_digest_comes_back_with_what_it_ran() {
    for_seeds(30, |sim| {
        let first = running(sim)?;
        // The first look is over.
        sim.run(Span::secs(4 * 60))?;
        let second = sim.world.push_image(IMAGE, true);
        sim.until(Span::secs(45 * 60), |sim| run_only(sim, &second))?;
        let asked = sim.ask(RevertJob {
            job: JobKey::local("web"),
            version: 0,
            expect_version: None,
        });
        sim.until(SOON, |sim| sim.reply(asked).is_some())?;
        sim.until(MINUTES, |sim| run_only(sim, &first))?;
        sim.run(Span::secs(15 * 60))?;
        sim.expect_that(run_only(sim, &first), "and stays")?;
        sim.converge()
    });
}

/// The digest that is known is that of another image.
#[test]
fn version_with_another_image_comes_back_by_its_tag() {
    const OTHER: &str = "other:1";
    for_seeds(30, |sim| {
        let first = running(sim)?;
        sim.world.push_image(OTHER, true);
        sim.register(&web(main_task().with("image", OTHER)));
        sim.run(Span::secs(4 * 60))?;
        let moved = sim.world.push_image(OTHER, true);
        sim.until(Span::secs(45 * 60), |sim| run_only(sim, &moved))?;
        let asked = sim.ask(RevertJob {
            job: JobKey::local("web"),
            version: 0,
            expect_version: None,
        });
        sim.until(SOON, |sim| sim.reply(asked).is_some())?;
        sim.until(MINUTES, |sim| run_only(sim, &first))?;
        sim.converge()
    });
}

#[test]
fn restarted_agent_checks_image_tags() {
    for_seeds(30, |sim| {
        running(sim)?;
        sim.run(Span::secs(2 * 60))?;
        let second = sim.world.push_image(IMAGE, true);
        sim.goes_down(false, Span::secs(3600));
        sim.run(Span::secs(3600))?;
        // No time comes any more.
        sim.until(Span::secs(15 * 60), |sim| run_only(sim, &second))?;
        sim.converge()
    });
}

#[test]
fn switched_off_update_keeps_its_content() {
    for_seeds(30, |sim| {
        running(sim)?;
        let second = sim.world.push_image(IMAGE, true);
        sim.until(Span::secs(45 * 60), |sim| run_only(sim, &second))?;
        let mut off = main_task();
        if let Some(update) = &mut off.image_update {
            update.enabled = false;
        }
        sim.register(&web(off));
        sim.run(SOON)?;
        sim.world.push_image(IMAGE, true);
        sim.run(Span::secs(30 * 60))?;
        sim.expect_that(run_only(sim, &second), "as it was")?;
        sim.converge()
    });
}
