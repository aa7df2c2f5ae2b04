//! What a task needs is fetched before its first start, and whoever does not get it does not start.

use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::EventType;
use drover_core::model::policy::RestartMode;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{TaskExt, batch, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON, events};

/// The state of an agent was restored on another machine: each task failed, since its directory was not there.
#[test]
fn task_starts_anew_where_its_directory_is_gone() {
    for_seeds(60, |sim| {
        let main = task("main").fetches("https://files/x").restarts(
            0,
            Span::secs(3600),
            Span::secs(1),
            RestartMode::Fail,
        );
        sim.register(&service("web", [main]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.reboot();
        sim.world.dirs.lose_all();
        sim.restart()?;
        sim.until(SOON, |sim| sim.world.starts_of("main") == 2)?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.expect_that(sim.allocs("web").len() == 1, "it is the same allocation")?;
        sim.expect_that(sim.world.dirs.fetched.len() == 1, "it has its artifact")?;
        sim.converge()
    });
}

#[test]
fn artifact_is_fetched_once_per_task() {
    for_seeds(200, |sim| {
        let main = task("main").fetches("https://files/x.tgz").ends("1s", 3);
        let main = main.restarts(3, Span::secs(3600), Span::secs(1), RestartMode::Fail);
        sim.register(&batch("sum", [main]));
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Failed))?;
        sim.expect_that(sim.world.starts_of("main") == 4, "four starts")?;
        let fetched = events(sim, EventType::DownloadingArtifacts);
        sim.expect_that(fetched <= 1, "fetched once")?;
        sim.converge()
    });
}

#[test]
fn failed_fetch_follows_restart_policy() {
    for_seeds(200, |sim| {
        // In the world of seed 0 nothing goes wrong.
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::FailFetch], 1000);
        let main = task("main").fetches("https://files/x.tgz").ends("1s", 0);
        let main = main.restarts(1, Span::secs(3600), Span::secs(1), RestartMode::Fail);
        sim.register(&batch("sum", [main]));
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Failed))?;
        sim.expect_that(sim.world.starts_of("main") == 0, "no start")?;
        let failed = events(sim, EventType::FailedArtifactDownload);
        sim.expect_that(failed == 2, "two tries, and two reasons")?;
        sim.world.scene.faults = Faults::none();
        sim.converge()
    });
}

#[test]
fn stop_does_not_wait_for_fetch() {
    for_seeds(200, |sim| {
        // In the world of seed 0 nothing goes wrong.
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::StallFetch], 1000);
        sim.register(&service("web", [task("main").fetches("https://files/x")]));
        let begun = |sim: &Sim| events(sim, EventType::DownloadingArtifacts) > 0;
        sim.until(SOON, begun)?;
        sim.deregister("web", false);
        sim.until(Span::secs(600), |sim| {
            sim.all_over("web", ClientStatus::Complete)
        })?;
        sim.expect_that(sim.world.starts_of("main") == 0, "no start")?;
        sim.converge()
    });
}

#[test]
fn crash_during_fetch_fetches_again() {
    for_seeds(200, |sim| {
        // In the world of seed 0 nothing goes wrong.
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::StallFetch], 1000);
        sim.register(&service("web", [task("main").fetches("https://files/x")]));
        sim.until(SOON, |sim| events(sim, EventType::DownloadingArtifacts) > 0)?;
        sim.world.scene.faults = Faults::none();
        sim.restart()?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.converge()
    });
}

/// What was fetched into memory is gone when the machine starts again, and what is on the disk is not.
#[test]
fn secrets_lost_at_reboot_are_fetched_again() {
    for secret in [true, false] {
        for_seeds(100, |sim| {
            let (keeper, source) = (task("main"), "https://files/x.key");
            let main = match secret {
                true => keeper.fetches_a_secret(source),
                false => keeper.fetches(source),
            };
            let main = main.restarts(50, Span::secs(3600), Span::secs(1), RestartMode::Delay);
            sim.register(&service("web", [main]));
            sim.until(SOON, |sim| sim.runs("web", "main"))?;
            let before = events(sim, EventType::DownloadingArtifacts);
            sim.reboot();
            sim.restart()?;
            sim.run(Span::secs(300))?;
            sim.expect_that(sim.runs("web", "main"), "it runs again")?;
            let again = events(sim, EventType::DownloadingArtifacts) > before;
            sim.expect_that(again == secret, "only what was lost is fetched again")?;
            sim.converge()
        });
    }
}
