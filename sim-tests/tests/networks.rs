//! Networks of allocations of their own: made before the tasks, found again, removed after the last of them.

use drover_core::model::job::{Job, JobType};
use drover_core::model::task::Hook;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{GroupExt, TaskExt, group, job, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{Inspect, SOON};

fn web(name: &str) -> Job {
    let group = group("g", [task(name)]);
    let group = group.network("bridge").dynamic_port("http");
    job(name, JobType::Service, [group])
}

/// What the network of the latest allocation of a job has, as the world knows it.
fn address(sim: &Sim, job: &str) -> Option<String> {
    let id = sim.live(job)?.record().id;
    let network = sim.world.networks.get(id)?;
    network.address.map(|address| address.to_string())
}

fn networks(sim: &Sim) -> usize {
    sim.world.networks.owners().count()
}

#[test]
fn group_network_lives_as_long_as_its_tasks() {
    for_seeds(60, |sim| {
        sim.register(&web("one"));
        sim.register(&web("two"));
        sim.until(SOON, |sim| sim.runs("one", "one") && sim.runs("two", "two"))?;
        let (one, two) = (address(sim, "one"), address(sim, "two"));
        assert!(
            one.is_some() && two.is_some() && one != two,
            "{one:?} {two:?}"
        );
        sim.deregister("one", false);
        sim.until(SOON, |sim| networks(sim) == 1)?;
        assert_eq!(address(sim, "two"), two);
        Ok(())
    });
}

#[test]
fn network_is_found_again_with_same_address() {
    for_seeds(60, |sim| {
        sim.register(&web("one"));
        sim.until(SOON, |sim| sim.runs("one", "one"))?;
        let before = address(sim, "one");
        sim.crash();
        sim.restart()?;
        sim.until(SOON, |sim| sim.runs("one", "one"))?;
        assert_eq!(address(sim, "one"), before);
        sim.reboot();
        sim.restart()?;
        sim.until(SOON, |sim| {
            sim.runs("one", "one") && address(sim, "one").is_some()
        })?;
        assert_eq!(address(sim, "one"), before);
        Ok(())
    });
}

#[test]
fn half_made_network_is_removed_or_completed() {
    for_seeds(60, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::HalfNetwork], 1000).budget(2);
        sim.register(&web("one"));
        // Each of the two costs an allocation, whose replacement waits longer.
        sim.until(Span::secs(600), |sim| sim.runs("one", "one"))?;
        sim.until(SOON, |sim| networks(sim) == 1)?;
        Ok(())
    });
}

/// A network that could not be removed kept its allocation from being garbage-collected at all, so that its directory
/// filled the disk. What the allocation holds of the node is not free meanwhile, and all that failed is told.
#[test]
fn directory_goes_though_network_resists() {
    for_seeds(60, |sim| {
        sim.register(&web("one"));
        sim.until(SOON, |sim| sim.runs("one", "one"))?;
        let alloc = sim.live("one").map(|alloc| alloc.record().id);
        let alloc = alloc.unwrap_or_default();
        sim.world.networks.set_removable(alloc, false);
        sim.deregister("one", true);
        sim.until(Span::secs(600), |sim| sim.world.dirs.allocs.is_empty())?;
        sim.until(SOON, |sim| {
            let failed = sim.allocs("one").into_iter();
            let failed = failed.flat_map(|alloc| alloc.destroy_errors());
            failed.eq(["network: the link is busy"])
        })?;
        sim.crash();
        sim.restart()?;
        sim.run(Span::secs(120))?;
        assert_eq!(networks(sim), 1, "it cannot be removed");
        assert!(!sim.allocs("one").is_empty(), "who has it is forgotten");
        sim.world.networks.set_removable(alloc, true);
        sim.until(Span::secs(120), |sim| {
            networks(sim) == 0 && sim.allocs("one").is_empty()
        })?;
        sim.converge()
    });
}

/// An allocation that was ending skipped all that is set up, so what comes after its end started without a network
/// when the machine had been restarted (found by seed 107).
#[test]
fn poststop_task_after_reboot_has_its_network() {
    for_seeds(60, |sim| {
        let tasks = [
            task("main").ends("1s", 0),
            task("end").ends("20s", 0).hook(Hook::Poststop, false),
        ];
        let group = group("g", tasks).network("bridge");
        sim.register(&job("one", JobType::Batch, [group]));
        sim.until(SOON, |sim| sim.world.starts_of("end") == 1)?;
        sim.reboot();
        sim.restart()?;
        sim.until(SOON, |sim| sim.world.starts_of("end") == 2)?;
        sim.until(Span::secs(600), |sim| networks(sim) == 0)?;
        Ok(())
    });
}
