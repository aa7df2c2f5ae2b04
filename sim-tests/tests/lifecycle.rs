//! An allocation's life when nothing goes wrong but the order of things.

use drover_core::agent::requests::CollectGarbage;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::task::Hook;
use drover_sim_tests::build::{TaskExt, batch, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{Inspect, SOON};

#[test]
fn service_runs_and_stops() {
    for_seeds(300, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.expect_that(sim.living("main") == 0, "nothing lives")?;
        sim.converge()
    });
}

#[test]
fn batch_job_runs_once() {
    for_seeds(300, |sim| {
        sim.register(&batch("sum", [task("main").ends("5s", 0)]));
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == 1, "one start")
    });
}

#[test]
fn purged_job_leaves_nothing() {
    for_seeds(300, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", true);
        sim.until(SOON, |sim| {
            sim.view().is_some_and(|view| view.jobs().next().is_none())
        })?;
        sim.ask(CollectGarbage);
        sim.converge()?;
        sim.expect_that(sim.allocs("web").is_empty(), "no allocation")?;
        sim.expect_that(
            sim.world.disk.records().len() == 1,
            "one record, the node's",
        )
    });
}

#[test]
fn lifecycle_stages_follow_each_other() {
    for_seeds(300, |sim| {
        let tasks = [
            task("main").ends("10s", 0),
            task("pre").ends("2s", 0).hook(Hook::Prestart, false),
            task("side").hook(Hook::Prestart, true),
            task("post").ends("2s", 0).hook(Hook::Poststart, false),
            task("end").ends("1s", 0).hook(Hook::Poststop, false),
        ];
        sim.register(&batch("sum", tasks));
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
        sim.converge()?;
        for name in ["main", "pre", "side", "post", "end"] {
            sim.expect_that(sim.world.starts_of(name) == 1, name)?;
        }
        Ok(())
    });
}
