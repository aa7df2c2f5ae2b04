//! Disks that other nodes take over, on a disk that is too full: they stay until those have them.

use std::cell::Cell;

use drover_core::agent::requests::{CollectAlloc, CollectGarbage, StopAlloc, TransferComplete};
use drover_core::effect::Reply;
use drover_core::ids::{AllocId, JobKey};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{GroupExt, TaskExt, batch, changed, group, job, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds, for_seeds_keeping};

const HOUR: i64 = 3600;
/// How often the disk is looked at.
const INTERVAL: Span = Span::secs(1000);

fn keeper() -> Job {
    job(
        "db",
        JobType::Service,
        [group("g", [task("main")]).migrates()],
    )
}

/// One that runs on a disk which is too full.
fn under_disk_pressure(sim: &mut Sim) -> Result<AllocId, Violation> {
    sim.world.scene.faults = Faults::only(&[Fault::DiskPressure], 1000);
    sim.register(&keeper());
    sim.until(SOON, |sim| sim.runs("db", "main"))?;
    Ok(sim
        .live("db")
        .map(|alloc| alloc.record().id)
        .unwrap_or_default())
}

/// The same, handed over to another node, and ended.
fn leased(sim: &mut Sim) -> Result<AllocId, Violation> {
    let alloc = under_disk_pressure(sim)?;
    let asked = sim.hand_over("db");
    sim.until(SOON, |sim| sim.reply(asked).is_some())?;
    let slot = sim.live("db").map(|alloc| alloc.record().slot());
    let handover = slot.map(|slot| Reply::HandedOver(vec![(slot, alloc)]));
    sim.expect_that(sim.reply(asked) == handover.as_ref(), "it is handed over")?;
    sim.deregister("db", false);
    sim.run(SOON)?;
    Ok(alloc)
}

/// It is garbage-collected; in the world without faults there is room enough.
fn goes(sim: &Sim, alloc: AllocId) -> bool {
    sim.seed() == BENIGN || !is_there(sim, alloc)
}

fn is_there(sim: &Sim, alloc: AllocId) -> bool {
    sim.world.dirs.allocs.contains(&alloc)
}

#[test]
fn just_ended_alloc_is_kept_for_interval() {
    for_seeds(100, |sim| {
        let alloc = under_disk_pressure(sim)?;
        sim.deregister("db", false);
        sim.run(Span::secs(900))?;
        sim.expect_that(is_there(sim, alloc), "one interval is for people")?;
        sim.until(INTERVAL, |sim| goes(sim, alloc))?;
        sim.converge()
    });
}

#[test]
fn leased_disk_is_kept_for_a_day() {
    for_seeds(20, |sim| {
        let alloc = leased(sim)?;
        sim.run(Span::secs(20 * HOUR))?;
        sim.ask(CollectGarbage);
        sim.run(Span::secs(4 * HOUR - 300))?;
        sim.expect_that(is_there(sim, alloc), "nobody came for it yet")?;
        sim.until(Span::secs(1300), |sim| goes(sim, alloc))?;
        sim.converge()
    });
}

#[test]
fn transferred_disk_is_collected_soon() {
    for_seeds(60, |sim| {
        let alloc = leased(sim)?;
        sim.ask(TransferComplete { alloc });
        sim.run(Span::secs(500))?;
        sim.expect_that(is_there(sim, alloc), "who read it may still die")?;
        sim.until(INTERVAL, |sim| goes(sim, alloc))?;
        sim.converge()
    });
}

/// Whoever reads what an older allocation left has not read what was handed over.
#[test]
fn lease_survives_transfer_of_disk_source() {
    let read = Cell::new(0);
    for_seeds(20, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::HangHook], 1000);
        sim.register(&keeper());
        // The first is given up when its directory is not made in time, and replaced.
        sim.run(Span::secs(200))?;
        let asked = sim.hand_over("db");
        sim.until(SOON, |sim| sim.reply(asked).is_some())?;
        let lease = |sim: &Sim| {
            let disks = sim
                .view()
                .into_iter()
                .flat_map(|view| view.disks().values());
            disks.filter_map(|disk| disk.lease.clone()).next()
        };
        let given = lease(sim).unwrap_or_default();
        let sources = given.allocs.iter().filter(|id| **id != given.alloc);
        for alloc in sources.copied().collect::<Vec<_>>() {
            sim.ask(TransferComplete { alloc });
            read.set(read.get() + 1);
        }
        sim.run(SOON)?;
        let stays = lease(sim).is_some_and(|lease| lease.until == given.until);
        sim.expect_that(stays, "the latest was not read")?;
        sim.converge()
    });
    assert!(read.get() > 0, "no disk had a source");
}

/// That another node wanted the disk of one that ended makes it no younger: it goes first, as it would
/// have before.
#[test]
fn transferred_disk_is_collected_before_newer_alloc() {
    for_seeds_keeping(60, 2, |sim| {
        let ends = |sim: &mut Sim, name: &str| {
            sim.register(&batch(name, [task("main").ends("3s", 0)]));
            sim.until(SOON, |sim| sim.all_over(name, ClientStatus::Complete))
        };
        ends(sim, "first")?;
        ends(sim, "second")?;
        let alloc = sim.allocs("first")[0].record().id;
        sim.hand_over("first");
        sim.run(SOON)?;
        sim.ask(TransferComplete { alloc });
        sim.run(INTERVAL)?;
        ends(sim, "third")?;
        sim.run(SOON)?;
        let kept = ["first", "second", "third"].map(|name| sim.allocs(name).len());
        sim.expect_that(kept == [0, 1, 1], &format!("{kept:?}"))?;
        sim.converge()
    });
}

#[test]
fn requested_collection_overrides_lease() {
    for_seeds(60, |sim| {
        let alloc = leased(sim)?;
        sim.ask(CollectAlloc { alloc });
        sim.until(SOON, |sim| goes(sim, alloc))?;
        let late = sim.hand_over("db");
        sim.until(SOON, |sim| sim.reply(late).is_some())?;
        let handover = sim.reply(late).cloned();
        let nothing = sim.seed() == BENIGN || handover == Some(Reply::HandedOver(Vec::new()));
        sim.expect_that(nothing, &format!("{handover:?}"))?;
        sim.converge()
    });
}

#[test]
fn retention_lease_outlives_the_agent() {
    for seed in 1..6 {
        let steps = each_crash(seed, |sim| {
            sim.world.scene.faults = Faults::only(&[Fault::DiskPressure], 1000);
            sim.register(&keeper());
            sim.run(SOON)?;
            let Some(alloc) = sim.live("db").map(|alloc| alloc.record().id) else {
                // Of a request that a crash swallowed nothing is known.
                return sim.converge();
            };
            let asked = sim.hand_over("db");
            sim.run(SOON)?;
            let kept = sim.reply(asked).is_some();
            sim.deregister("db", false);
            sim.run(Span::secs(2 * HOUR))?;
            sim.expect_that(!kept || is_there(sim, alloc), "it is leased")?;
            sim.converge()
        });
        assert!(steps > 20, "seed {seed}: {steps} steps");
    }
}

/// One that ended is kept while its replacement has not taken over its disk, and for no longer,
/// though nothing else happens then.
#[test]
fn alloc_with_moved_disk_is_collected() {
    for_seeds(60, |sim| {
        let old = under_disk_pressure(sim)?;
        sim.register(&changed(&keeper(), |group| {
            group.tasks[0].env.insert("V".to_owned(), "2".to_owned());
        }));
        sim.until(SOON, |sim| {
            sim.live("db").is_some_and(|it| it.record().id != old)
        })?;
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        sim.until(Span::secs(2 * HOUR), |sim| goes(sim, old))?;
        sim.converge()
    });
}

/// The last allocation of a job never ran, and the job is handed over: what it was to get is all there is.
/// A soak found this, in one of 150,000 seeds.
#[test]
fn disk_sources_of_leased_disk_are_kept() {
    for_seeds(60, |sim| {
        sim.register(&keeper());
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        let old = sim.live("db").map(|alloc| alloc.record().id);
        let old = old.unwrap_or_default();
        sim.ask(StopAlloc {
            alloc: old,
            no_shutdown_delay: false,
        });
        sim.deregister("db", false);
        sim.run(SOON)?;
        let asked = sim.hand_over("db");
        sim.until(SOON, |sim| sim.reply(asked).is_some())?;
        sim.ask(CollectGarbage);
        sim.run(Span::secs(HOUR))?;
        sim.expect_that(is_there(sim, old), "all that it wrote is there")?;
        sim.register(&keeper());
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        sim.converge()
    });
}

/// One that never had its turn is being garbage-collected while the one before it still ends: it is that one
/// which another node has to wait for.
#[test]
fn collected_alloc_leaves_takeover_to_previous() {
    for_seeds(60, |sim| {
        let mut job = keeper();
        let task = &mut job.task_groups[0].tasks[0];
        *task = task.clone().with("kill_after", "20s");
        task.kill_timeout = Some(Span::secs(60));
        sim.register(&job);
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        let old = sim.live("db").map(|alloc| alloc.record().id);
        sim.register(&changed(&job, |group| {
            group.tasks[0].env.insert("V".to_owned(), "2".to_owned());
        }));
        sim.run(Span::secs(2))?;
        let ends = sim.view().and_then(|view| {
            let ending = view.still_ends(&JobKey::local("db"));
            ending.map(|alloc| alloc.id)
        });
        sim.expect_that(ends == old, "the one after it waits for it")?;
        sim.deregister("db", false);
        sim.ask(CollectGarbage);
        sim.until(Span::secs(10), |sim| {
            sim.allocs("db")
                .iter()
                .any(|alloc| alloc.record().destroying)
        })?;
        let handover = sim.view().and_then(|view| {
            let mut handover = view.handover(&JobKey::local("db"));
            handover.next().map(|alloc| alloc.id)
        });
        sim.expect_that(handover == old, "the one that still ends")?;
        sim.converge()
    });
}

/// A job is handed over, and placed here again before the other node read anything: where the disk lay is kept
/// until the lease runs out, and what runs here has it.
#[test]
fn leased_disk_moves_to_replacement_on_same_node() {
    for_seeds(60, |sim| {
        let old = leased(sim)?;
        sim.register(&keeper());
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        let new = sim.live("db").map(|alloc| alloc.record().id);
        let disk = new.and_then(|id| sim.world.dirs.disks.get(&id));
        let has_it = disk.is_some_and(|disk| disk.contains(&old));
        sim.expect_that(has_it, "what the first one wrote is there")?;
        sim.run(Span::secs(20 * HOUR))?;
        sim.expect_that(is_there(sim, old), "it is leased")?;
        sim.until(Span::secs(6 * HOUR), |sim| goes(sim, old))?;
        sim.converge()
    });
}

/// One that failed is kept while it is to be replaced, and for no longer, though nothing else happens
/// to its replacement than that it runs.
#[test]
fn failed_alloc_is_collected_when_replacement_runs() {
    for_seeds(60, |sim| {
        let main = task("main").restarts(0, INTERVAL, Span::secs(1), RestartMode::Fail);
        let group = group("g", [main]).reschedules(5, Span::secs(30));
        sim.world.scene.faults = Faults::only(&[Fault::KillProcess], 1000);
        sim.register(&job("sum", JobType::Batch, [group]));
        let failed = |sim: &Sim| sim.all_over("sum", ClientStatus::Failed);
        sim.until(INTERVAL, |sim| sim.seed() == BENIGN || failed(sim))?;
        sim.world.scene.faults = Faults::only(&[Fault::DiskPressure], 1000);
        sim.until(SOON, |sim| sim.runs("sum", "main"))?;
        let old = sim.allocs("sum").first().map(|alloc| alloc.record().id);
        let old = old.unwrap_or_default();
        sim.until(Span::secs(2 * HOUR), |sim| goes(sim, old))?;
        sim.converge()
    });
}
