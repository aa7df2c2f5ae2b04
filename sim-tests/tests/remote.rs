//! Jobs that ran on another node: its end is awaited, its disk is fetched, and whatever goes wrong
//! there holds up nobody for ever.

use std::cell::Cell;

use drover_core::agent::requests::{CollectAlloc, CollectGarbage};
use drover_core::alloc::runner::Phase;
use drover_core::effect::Reply;
use drover_core::ids::JobKey;
use drover_core::input::ShutdownMode;
use drover_core::model::event::EventType;
use drover_core::model::job::{Job, JobType};
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{GroupExt, changed, group, job, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

const AN_HOUR: Span = Span::secs(3600);

fn keeper() -> Job {
    job(
        "db",
        JobType::Service,
        [group("g", [task("main")]).migrates()],
    )
}

fn next_version(job: &Job) -> Job {
    changed(job, |group| {
        group.tasks[0].env.insert("V".to_owned(), "2".to_owned());
    })
}

/// Whether what another node had is on the disk of the allocation that runs.
fn has_the_disk(sim: &Sim) -> bool {
    let live = sim.live("db").map(|alloc| alloc.record().id);
    let disk = live.and_then(|id| sim.world.dirs.disks.get(&id));
    // Its own words, and those of before.
    disk.is_some_and(|disk| disk.len() >= 2)
}

fn has_event(sim: &Sim, words: &str) -> bool {
    let Some(task) = sim.task("db", "main") else {
        return false;
    };
    let mut events = task.state().events.iter();
    events
        .any(|event| event.kind == EventType::HookMessage && event.display_message.contains(words))
}

#[test]
fn moved_job_brings_its_disk() {
    for_seeds(200, |sim| {
        sim.take_over(&keeper());
        sim.until(AN_HOUR, |sim| sim.runs("db", "main"))?;
        sim.expect_that(has_the_disk(sim), "what the other node had is here")?;
        sim.converge()
    });
}

/// The agent dies wherever it can: while it asks, while the disk comes, and between that and its
/// being remembered.
#[test]
fn moved_job_brings_its_disk_despite_crashes() {
    for seed in 0..10 {
        let steps = each_crash(seed, |sim| {
            sim.take_over(&keeper());
            // Of a request that a crash swallowed nothing is known: people ask again.
            sim.run(Span::secs(5))?;
            if sim.allocs("db").is_empty() {
                sim.take_over(&keeper());
            }
            sim.until(AN_HOUR, |sim| sim.runs("db", "main"))?;
            sim.expect_that(has_the_disk(sim), "what the other node had is here")?;
            sim.converge()
        });
        assert!(steps > 10, "seed {seed}: {steps} steps");
    }
}

/// A job waits for a node that does not answer, and its next version runs in its place in the end.
fn replaced_while_it_waits(sim: &mut Sim) -> Result<(), Violation> {
    sim.world.scene.faults = Faults::only(&[Fault::SilentNode], 1000);
    sim.take_over(&keeper());
    sim.run(Span::secs(10))?;
    sim.register(&next_version(&keeper()));
    sim.run(Span::secs(10))?;
    sim.world.scene.faults = Faults::none();
    sim.until(AN_HOUR, |sim| sim.runs("db", "main"))
}

/// A disk that a version never got is for the next version.
#[test]
fn unstarted_replacement_passes_remote_disk_on() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        replaced_while_it_waits(sim)?;
        sim.expect_that(has_the_disk(sim), "what the other node had is here")?;
        sim.converge()
    });
}

/// The job ran here long ago, and while it waits for the other node its next version says that disks come
/// along: that is the newer one.
#[test]
fn fetched_disk_is_not_hidden_by_local_one() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let stays = job(
            "db",
            JobType::Service,
            [group("g", [task("main")]).sticky()],
        );
        sim.register(&stays);
        sim.until(AN_HOUR, |sim| sim.runs("db", "main"))?;
        let old = sim.live("db").map(|alloc| alloc.record().id);
        sim.deregister("db", false);
        sim.run(Span::secs(60))?;
        sim.world.scene.faults = Faults::only(&[Fault::SilentNode], 1000);
        sim.take_over(&stays);
        sim.run(Span::secs(10))?;
        sim.register(&next_version(&keeper()));
        sim.run(Span::secs(10))?;
        sim.world.scene.faults = Faults::none();
        sim.until(AN_HOUR, |sim| sim.runs("db", "main"))?;
        let live = sim.live("db").map(|alloc| alloc.record().id);
        let disk = live.and_then(|id| sim.world.dirs.disks.get(&id));
        let wrote = |id| disk.is_some_and(|disk| disk.contains(&id));
        sim.expect_that(!old.is_some_and(wrote), "the old one is not there")?;
        sim.expect_that(has_the_disk(sim), "what the other node had is here")?;
        sim.converge()
    });
}

/// A copy that is not wanted any more awaits nobody, so the job can be moved on.
#[test]
fn removed_copy_awaits_no_node() {
    for_seeds(60, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let two = changed(&keeper(), |group| group.count = Some(2));
        sim.world.scene.faults = Faults::only(&[Fault::SilentNode], 1000);
        sim.take_over(&two);
        sim.run(Span::secs(10))?;
        let awaits = |sim: &Sim| {
            let view = sim.view();
            view.is_some_and(|view| view.awaited_elsewhere(&JobKey::local("db")).is_some())
        };
        sim.expect_that(awaits(sim), "both await their nodes")?;
        sim.register(&keeper());
        sim.run(Span::secs(10))?;
        sim.expect_that(awaits(sim), "one still does")?;
        sim.world.scene.faults = Faults::none();
        sim.until(AN_HOUR, |sim| sim.living("main") == 1)?;
        sim.expect_that(!awaits(sim), "all that is wanted is here")?;
        sim.converge()
    });
}

/// The wait for another node, however long, is no part of the time in which a copy has to become
/// healthy.
#[test]
fn long_waiting_alloc_becomes_healthy() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::SilentNode], 1000);
        let group = group("g", [task("main")]).migrates().rolls(1);
        sim.take_over(&job("db", JobType::Service, [group]));
        sim.run(Span::secs(600))?;
        sim.expect_that(sim.world.starts_of("main") == 0, "nothing started")?;
        sim.world.scene.faults = Faults::none();
        let health = |sim: &Sim| Some(sim.live("db")?.record().health?.healthy);
        sim.until(Span::secs(300), |sim| health(sim).is_some())?;
        sim.expect_that(health(sim) == Some(true), "ten minutes were not its own")?;
        sim.converge()
    });
}

/// A node that does not answer may still run it: nothing starts beside it, however long that takes.
#[test]
fn unreachable_node_is_awaited() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::SilentNode], 1000);
        sim.take_over(&keeper());
        sim.run(Span::secs(600))?;
        let view = sim.view();
        let waits = view.and_then(|view| view.waits_for(sim.live("db")?));
        let words = waits.unwrap_or_default();
        let named = words.contains("http://other:4646 to end") && words.contains("no route");
        sim.expect_that(named, "it says whom it waits for, and why")?;
        sim.expect_that(sim.world.starts_of("main") == 0, "nothing started")?;
        sim.world.scene.faults = Faults::none();
        sim.until(Span::secs(120), |sim| sim.runs("db", "main"))?;
        sim.converge()
    });
}

/// A job waits for a node that does not answer, and is stopped.
fn stopped_while_it_waits(sim: &mut Sim, job: &Job) -> Result<(), Violation> {
    sim.world.scene.faults = Faults::only(&[Fault::SilentNode], 1000);
    sim.take_over(job);
    sim.run(Span::secs(100))?;
    sim.deregister("db", false);
    sim.run(Span::secs(5))
}

#[test]
fn alloc_waiting_for_unreachable_node_can_be_stopped() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        stopped_while_it_waits(sim, &keeper())?;
        let over = |sim: &Sim| {
            sim.allocs("db")
                .iter()
                .all(|a| *a.phase() == Phase::Finished)
        };
        sim.expect_that(over(sim), "it waits no longer")?;
        sim.world.scene.faults = Faults::none();
        sim.converge()
    });
}

/// Its node broke down in the middle: after a few tries the job runs with an empty disk, and says
/// so.
#[test]
fn failing_disk_transfer_is_given_up() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::BrokenDisk], 1000);
        sim.take_over(&keeper());
        sim.until(AN_HOUR, |sim| sim.runs("db", "main"))?;
        sim.expect_that(!has_the_disk(sim), "an empty disk")?;
        sim.expect_that(has_event(sim, "The disk begins empty"), "and that is told")?;
        sim.world.scene.faults = Faults::none();
        sim.converge()
    });
}

#[test]
fn interrupted_disk_transfer_is_retried() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::BrokenDisk], 1000);
        sim.take_over(&keeper());
        sim.run(Span::secs(20))?;
        sim.world.scene.faults = Faults::none();
        sim.until(AN_HOUR, |sim| sim.runs("db", "main"))?;
        sim.expect_that(has_the_disk(sim), "what the other node had is here")?;
        sim.converge()
    });
}

/// The fifth try is the last one.
#[test]
fn disk_transfer_is_tried_five_times() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let broken = if sim.seed().is_multiple_of(2) { 4 } else { 5 };
        sim.world.scene.faults = Faults::only(&[Fault::BrokenDisk], 1000).budget(broken);
        sim.take_over(&keeper());
        sim.until(AN_HOUR, |sim| sim.runs("db", "main"))?;
        let words = format!("{broken} tries failed");
        sim.expect_that(has_the_disk(sim) == (broken == 4), &words)?;
        sim.converge()
    });
}

#[test]
fn alloc_forgotten_by_its_node_is_not_awaited() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::ForgetfulNode], 1000);
        sim.take_over(&keeper());
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        sim.expect_that(has_event(sim, "knows nothing of it"), "and that is told")?;
        sim.world.scene.faults = Faults::none();
        sim.converge()
    });
}

/// What runs here is not replaced by what ran elsewhere, and the same can be asked twice.
#[test]
fn takeover_happens_once() {
    for_seeds(100, |sim| {
        let job = keeper();
        sim.take_over(&job);
        sim.until(AN_HOUR, |sim| sim.runs("db", "main"))?;
        let again = sim.take_over(&job);
        let refused = sim.take_over(&next_version(&job));
        sim.run(SOON)?;
        let fine = matches!(sim.reply(again), Some(Reply::Registered { .. }));
        sim.expect_that(fine, "the same is taken in")?;
        let no = matches!(sim.reply(refused), Some(Reply::Refused(_)));
        sim.expect_that(no, "another one is refused")?;
        sim.expect_that(sim.world.starts_of("main") == 1, "one start")?;
        sim.converge()
    });
}

/// Where a job once was, something old may be left: what comes is newer.
#[test]
fn returning_job_has_newer_disk() {
    for_seeds(100, |sim| {
        let job = keeper();
        sim.register(&job);
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        let old = sim.live("db").map(|alloc| alloc.record().id);
        sim.deregister("db", false);
        sim.run(SOON)?;
        sim.take_over(&job);
        sim.until(AN_HOUR, |sim| sim.runs("db", "main"))?;
        let live = sim.live("db").map(|alloc| alloc.record().id);
        let disk = live.and_then(|id| sim.world.dirs.disks.get(&id));
        let newer = disk.is_some_and(|disk| old.is_some_and(|old| !disk.contains(&old)));
        sim.expect_that(newer && has_the_disk(sim), "the other node's disk")?;
        sim.converge()
    });
}

/// What came from another node and never had its turn is garbage-collected. Whoever is placed there next
/// must not run beside the other node's either, and gets its disk.
#[test]
fn collected_alloc_leaves_remote_wait_to_next() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        stopped_while_it_waits(sim, &keeper())?;
        sim.ask(CollectGarbage);
        sim.until(SOON, |sim| sim.allocs("db").is_empty())?;
        sim.register(&keeper());
        sim.run(Span::secs(300))?;
        sim.expect_that(sim.world.starts_of("main") == 0, "nothing started")?;
        sim.world.scene.faults = Faults::none();
        sim.until(Span::secs(120), |sim| sim.runs("db", "main"))?;
        sim.expect_that(has_the_disk(sim), "what the other node had is here")?;
        sim.converge()
    });
}

/// A job is purged, and wanted again when one of its copies is gone and the other is not: then both wait
/// for whom they waited for.
#[test]
fn job_registered_during_purge_keeps_remote_wait() {
    let met = Cell::new(0);
    for_seeds(200, |sim| {
        let job = changed(&keeper(), |group| group.count = Some(2));
        stopped_while_it_waits(sim, &job)?;
        // What hangs is not removed for now.
        sim.world.scene.faults = Faults::only(&[Fault::HangHook], 500);
        sim.deregister("db", true);
        sim.run(SOON)?;
        if sim.seed() == BENIGN || sim.allocs("db").len() != 1 {
            return Ok(());
        }
        met.set(met.get() + 1);
        sim.world.scene.faults = Faults::only(&[Fault::SilentNode], 1000);
        sim.register(&job);
        sim.run(Span::secs(300))?;
        sim.expect_that(sim.world.starts_of("main") == 0, "nothing started")?;
        sim.world.scene.faults = Faults::none();
        sim.until(Span::secs(120), |sim| sim.living("main") == 2)?;
        sim.converge()
    });
    assert!(met.get() > 0, "no purge was met half way");
}

/// Somebody hands over one copy only. The other one waits for whom it waited for.
#[test]
fn copy_left_out_of_takeover_keeps_remote_wait() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let job = changed(&keeper(), |group| group.count = Some(2));
        stopped_while_it_waits(sim, &job)?;
        sim.ask(CollectGarbage);
        sim.until(SOON, |sim| sim.allocs("db").is_empty())?;
        sim.take_over_some(&job, 1);
        sim.run(SOON)?;
        sim.expect_that(sim.allocs("db").len() == 2, "both are there")?;
        sim.expect_that(sim.world.starts_of("main") == 0, "nothing started")?;
        sim.world.scene.faults = Faults::none();
        sim.until(Span::secs(120), |sim| sim.living("main") == 2)?;
        sim.converge()
    });
}

/// A copy that waits ends with its agent. The next one cleans it away before it knows the machine,
/// and then places the copy anew, while the disk is full.
#[test]
fn reverted_change_is_not_written() {
    for_seeds(100, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::SilentNode], 1000);
        sim.take_over(&keeper());
        sim.run(Span::secs(100))?;
        sim.shutdown(ShutdownMode::StopTasks);
        sim.until(SOON, |sim| sim.stopped)?;
        sim.restart()?;
        sim.world.disk.full = true;
        let alloc = sim.allocs("db").first().map(|alloc| alloc.record().id);
        let alloc = alloc.unwrap_or_default();
        sim.ask(CollectAlloc { alloc });
        sim.run(Span::secs(5))?;
        sim.expect_that(sim.live("db").is_some(), "placed anew")?;
        sim.world.disk.full = false;
        sim.world.scene.faults = Faults::none();
        sim.until(Span::secs(120), |sim| sim.living("main") == 1)?;
        sim.converge()
    });
}

/// What waited is kept longer than what replaced it, ran, and was garbage-collected. Whoever comes next
/// does not fetch what the other node had once more.
#[test]
fn transferred_disk_is_not_fetched_again() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        replaced_while_it_waits(sim)?;
        let ran = sim.live("db").map(|alloc| alloc.record().id);
        let alloc = ran.unwrap_or_default();
        sim.deregister("db", false);
        sim.run(SOON)?;
        sim.ask(CollectAlloc { alloc });
        sim.until(SOON, |sim| sim.allocs("db").len() == 1)?;
        sim.register(&keeper());
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        sim.expect_that(!has_the_disk(sim), "an empty disk")?;
        sim.converge()
    });
}

/// A version that wants no disk of other nodes runs without. What it writes is newer, and the next
/// version that wants one gets that.
#[test]
fn non_sticky_version_keeps_newer_disk() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::BrokenDisk], 1000);
        let migrates = keeper();
        sim.take_over(&migrates);
        sim.run(Span::secs(20))?;
        let stays = changed(&migrates, |group| {
            group.ephemeral_disk = None;
            *group = group.clone().sticky();
        });
        sim.register(&stays);
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        sim.world.scene.faults = Faults::none();
        sim.register(&next_version(&migrates));
        sim.until(SOON, |sim| sim.world.starts_of("main") == 2)?;
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        sim.expect_that(has_the_disk(sim), "what was written here")?;
        sim.converge()
    });
}

/// An agent restarts, and what it ran is set up once more. Meanwhile the job, which it was asked to stop, comes from
/// another node: that is for the next allocation to await, and not for the one that ends. Random worlds found
/// this (seed 740000806).
#[test]
fn alloc_set_up_before_takeover_leaves_remote_wait_to_next() {
    for_seeds(100, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let job = job("db", JobType::Service, [group("g", [task("main")])]);
        sim.register(&job);
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        sim.deregister("db", false);
        sim.restart()?;
        sim.world.scene.faults = Faults::only(&[Fault::SilentNode], 1000);
        sim.take_over(&next_version(&job));
        sim.run(Span::secs(300))?;
        sim.expect_that(sim.world.starts_of("main") == 1, "nothing starts beside it")?;
        sim.world.scene.faults = Faults::none();
        sim.until(Span::secs(300), |sim| sim.runs("db", "main"))?;
        sim.converge()
    });
}
