//! CPU, memory, disk space and cores: what is not free is waited for, and what waits shows why.

use drover_core::claims::Claim;
use drover_core::claims::resources::Amounts;
use drover_core::model::alloc::DesiredStatus;
use drover_core::model::job::{Job, JobType};
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{EVER, TaskExt, group, job, task};
use drover_sim_tests::for_seeds_on;
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};

/// A machine with 5000 MHz, 1000 MB of memory and 1000 MB of disk space.
const SMALL: Amounts = Amounts {
    cpu: 5000,
    memory: 1000,
    disk: 1000,
};

/// The agent looks at its machine every 15 minutes.
const POLL_INTERVAL: Span = Span::secs(1000);

/// A service with one task of the same name.
fn wants(name: &str, priority: i64, cpu: i64, memory: i64) -> Job {
    let mut task = task(name);
    (task.resources.cpu, task.resources.memory_mb) = (cpu, memory);
    let mut job = job(name, JobType::Service, [group("g", [task])]);
    job.priority = priority;
    job
}

/// Why a job waits to be placed.
fn why(sim: &Sim, job: &str) -> String {
    let view = sim.view();
    let key = drover_core::ids::JobKey::local(job);
    let why = view.and_then(|view| view.blocked(&key).first().map(|(_, why)| why.to_string()));
    why.unwrap_or_default()
}

#[test]
fn job_exceeding_free_capacity_waits() {
    for_seeds_on(SMALL, 60, |sim| {
        sim.register(&wants("first", 50, 3800, 10));
        sim.until(SOON, |sim| sim.runs("first", "first"))?;
        sim.register(&wants("second", 50, 4000, 10));
        let expected = "cpu: needs 4000 MHz, 1200 of 5000 are free";
        sim.until(SOON, |sim| why(sim, "second") == expected)?;
        sim.deregister("first", false);
        sim.until(SOON, |sim| sim.runs("second", "second"))?;
        sim.converge()
    });
}

#[test]
fn memory_is_held_until_its_holder_is_gone() {
    for_seeds_on(SMALL, 60, |sim| {
        // In the world of seed 0 nothing goes wrong, so nothing takes its time.
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.register(&wants("first", 50, 10, 800));
        sim.until(SOON, |sim| sim.runs("first", "first"))?;
        sim.world.scene.faults = Faults::only(&[Fault::HangStop], 1000).budget(1000);
        sim.deregister("first", false);
        sim.register(&wants("second", 50, 10, 800));
        sim.run(Span::secs(1))?;
        let waits = sim.living("first") == 0 || !sim.runs("second", "second");
        sim.expect_that(waits, "the first one still lives")?;
        sim.until(SOON, |sim| sim.runs("second", "second"))?;
        sim.expect_that(sim.living("first") == 0, "nothing of the first one lives")?;
        sim.converge()
    });
}

#[test]
fn memory_of_lower_priority_is_preempted_and_named() {
    for_seeds_on(SMALL, 60, |sim| {
        sim.register(&wants("low", 30, 10, 800));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.register(&wants("high", 60, 10, 900));
        let waits = |sim: &Sim| {
            let view = sim.view();
            let waits = view.and_then(|view| Some(view.ungranted(sim.live("high")?)));
            waits.unwrap_or_default()
        };
        let is_named = |sim: &Sim| {
            let waits = waits(sim);
            waits.is_empty() || waits.iter().any(|one| one.claim == Claim::Memory)
        };
        sim.until(SOON, |sim| sim.live("high").is_some())?;
        sim.expect_that(is_named(sim), "the memory is named")?;
        sim.until(SOON, |sim| sim.runs("high", "high"))?;
        let evicted = |sim: &Sim| {
            let mut low = sim.allocs("low").into_iter();
            low.any(|alloc| alloc.record().desired == DesiredStatus::Evict)
        };
        sim.expect_that(evicted(sim), "the lower one was preempted")?;
        let expected = "memory: needs 800 MB, 100 of 1000 are free";
        sim.expect_that(why(sim, "low") == expected, "it says why it waits")?;
        sim.deregister("high", false);
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.converge()
    });
}

#[test]
fn memory_of_two_preempted_allocs_is_awaited() {
    for_seeds_on(SMALL, 60, |sim| {
        for name in ["one", "two"] {
            sim.register(&wants(name, 30, 10, 450));
            sim.until(SOON, |sim| sim.runs(name, name))?;
        }
        sim.world.scene.faults = Faults::only(&[Fault::HangStop], 500).budget(1);
        sim.register(&wants("high", 60, 10, 900));
        sim.until(Span::secs(600), |sim| sim.runs("high", "high"))?;
        let alone = sim.living("one") + sim.living("two") == 0;
        sim.expect_that(alone, "nothing of the two lives")?;
        sim.converge()
    });
}

#[test]
fn memory_of_whoever_ends_first_is_enough() {
    for_seeds_on(SMALL, 60, |sim| {
        let mut slow = wants("slow", 50, 10, 400);
        let task = &mut slow.task_groups[0].tasks[0];
        *task = task.clone().with("kill_after", EVER);
        task.kill_timeout = Some(Span::secs(600));
        sim.register(&slow);
        let mut short = wants("short", 50, 10, 400);
        short.job_type = JobType::Batch;
        let task = &mut short.task_groups[0].tasks[0];
        *task = task.clone().ends("10s", 0);
        sim.register(&short);
        let both = |sim: &Sim| sim.runs("slow", "slow") && sim.runs("short", "short");
        sim.until(SOON, both)?;
        sim.deregister("slow", false);
        sim.register(&wants("next", 50, 10, 500));
        sim.until(Span::secs(300), |sim| sim.runs("next", "next"))?;
        // In the world of seed 0 nothing takes its time, so the end of the short one comes first.
        let first = sim.seed() > 0 || sim.living("slow") == 1;
        sim.expect_that(first, "the one that is to end lives")?;
        sim.converge()
    });
}

#[test]
fn memory_wait_survives_agent_restart() {
    for_seeds_on(SMALL, 60, |sim| {
        // In the world of seed 0 nothing goes wrong, so nothing takes its time.
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.register(&wants("low", 30, 10, 800));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.world.scene.faults = Faults::only(&[Fault::HangStop], 1000).budget(1000);
        sim.register(&wants("high", 60, 10, 900));
        sim.until(SOON, |sim| sim.live("high").is_some())?;
        sim.run(Span::secs(3))?;
        sim.crash();
        sim.restart()?;
        // What was not saved is asked for again.
        sim.register(&wants("high", 60, 10, 900));
        sim.until(Span::secs(600), |sim| sim.runs("high", "high"))?;
        sim.expect_that(sim.living("low") == 0, "nothing of the lower one lives")?;
        sim.run_until_quiescent()?;
        sim.converge()
    });
}

#[test]
fn grown_node_wakes_waiting_job() {
    for_seeds_on(SMALL, 40, |sim| {
        sim.register(&wants("large", 50, 10, 3000));
        let expected = "memory: needs 3000 MB, 1000 of 1000 are free";
        sim.until(SOON, |sim| why(sim, "large") == expected)?;
        sim.machine_has(Amounts {
            memory: 4000,
            ..SMALL
        });
        sim.until(POLL_INTERVAL, |sim| sim.runs("large", "large"))?;
        sim.converge()
    });
}

#[test]
fn shrunk_node_evicts_nothing_and_keeps_replacing() {
    for_seeds_on(SMALL, 40, |sim| {
        sim.register(&wants("large", 50, 10, 900));
        sim.until(SOON, |sim| sim.runs("large", "large"))?;
        sim.machine_has(Amounts {
            memory: 500,
            ..SMALL
        });
        sim.run(POLL_INTERVAL)?;
        sim.expect_that(sim.runs("large", "large"), "what runs goes on running")?;
        sim.register(&wants("small", 50, 10, 100));
        let expected = "memory: needs 100 MB, 0 of 500 are free";
        sim.until(SOON, |sim| why(sim, "small") == expected)?;
        sim.deregister("large", false);
        sim.until(SOON, |sim| sim.runs("small", "small"))?;
        sim.converge()
    });
}

#[test]
fn new_version_reuses_capacity_of_old_one() {
    for_seeds_on(SMALL, 60, |sim| {
        sim.register(&wants("web", 50, 10, 800));
        sim.until(SOON, |sim| sim.runs("web", "web"))?;
        sim.register(&wants("web", 50, 20, 900));
        let is_new = |sim: &Sim| {
            let live = sim.live("web");
            live.is_some_and(|alloc| alloc.record().job_version == 1) && sim.runs("web", "web")
        };
        sim.until(SOON, is_new)?;
        sim.converge()
    });
}

#[test]
fn disk_space_is_counted_by_requested_size() {
    for_seeds_on(SMALL, 30, |sim| {
        let mut first = wants("first", 50, 10, 10);
        let disk = drover_core::model::group::EphemeralDisk {
            size_mb: 800,
            ..Default::default()
        };
        first.task_groups[0].ephemeral_disk = Some(disk);
        sim.register(&first);
        sim.until(SOON, |sim| sim.runs("first", "first"))?;
        sim.register(&wants("second", 50, 10, 10));
        let expected = "disk: needs 300 MB, 200 of 1000 are free";
        sim.until(SOON, |sim| why(sim, "second") == expected)?;
        sim.converge()
    });
}

#[test]
fn cores_of_two_jobs_are_disjoint() {
    for_seeds_on(SMALL, 60, |sim| {
        let with_cores = |name: &str, cores: i64| {
            let mut job = wants(name, 50, 0, 10);
            job.task_groups[0].tasks[0].resources.cores = cores;
            job
        };
        sim.register(&with_cores("first", 2));
        sim.register(&with_cores("second", 2));
        let both = |sim: &Sim| sim.runs("first", "first") && sim.runs("second", "second");
        sim.until(SOON, both)?;
        sim.register(&with_cores("third", 1));
        let expected = "cores: needs 1, 0 of 4 are free";
        sim.until(SOON, |sim| why(sim, "third") == expected)?;
        sim.deregister("first", false);
        sim.until(SOON, |sim| sim.runs("third", "third"))?;
        sim.converge()
    });
}

#[test]
fn memory_max_and_sequential_tasks_are_not_summed() {
    use drover_core::model::task::Hook;
    for_seeds_on(SMALL, 30, |sim| {
        let mut job = wants("web", 50, 10, 700);
        let mut before = task("before").hook(Hook::Prestart, false).ends("1s", 0);
        before.resources.memory_mb = 600;
        job.task_groups[0].tasks[0].resources.memory_max_mb = 9000;
        job.task_groups[0].tasks.push(before);
        sim.register(&job);
        sim.until(SOON, |sim| sim.runs("web", "web"))?;
        sim.converge()
    });
}
