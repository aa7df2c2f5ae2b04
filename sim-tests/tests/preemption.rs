//! More important jobs preempt jobs of lower priority, where that is allowed: the ports and
//! devices that those hold.

use drover_core::claims::resources::Amounts;
use drover_core::config::{Config, Preemption};
use drover_core::model::alloc::DesiredStatus;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::{Job, JobType};
use drover_core::model::task::Hook;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation, listening, node};
use drover_sim_tests::build::{EVER, GroupExt, TaskExt, group, job, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds, for_seeds_on};

fn at(priority: i64, mut job: Job) -> Job {
    job.priority = priority;
    job
}

fn on_port(name: &str, number: i64) -> TaskGroup {
    group("g", [task(name)]).static_port("http", number)
}

fn service(name: &str, priority: i64, group: TaskGroup) -> Job {
    at(priority, job(name, JobType::Service, [group]))
}

/// How many allocations of a job gave their place to others.
fn evicted(sim: &Sim, job: &str) -> usize {
    let all = sim.allocs(job).into_iter();
    all.filter(|alloc| alloc.record().desired == DesiredStatus::Evict)
        .count()
}

fn only_web_runs(sim: &Sim) -> Result<(), Violation> {
    let alone = sim.runs("web", "main") && sim.living("low") == 0;
    sim.expect_that(alone, "the port is the more important one's")
}

#[test]
fn higher_priority_job_preempts_port_temporarily() {
    for_seeds(200, |sim| {
        sim.register(&service("low", 30, on_port("low", 8080)));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.register(&service("web", 50, on_port("main", 8080)));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        only_web_runs(sim)?;
        sim.expect_that(evicted(sim, "low") == 1, "it was told to go")?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.converge()
    });
}

#[test]
fn alloc_within_priority_margin_is_not_preempted() {
    for_seeds(30, |sim| {
        sim.register(&service("low", 41, on_port("low", 8080)));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.register(&service("web", 50, on_port("main", 8080)));
        sim.run(Span::secs(600))?;
        sim.expect_that(sim.allocs("web").is_empty(), "9 are not enough")?;
        sim.expect_that(sim.runs("low", "low"), "it stays")?;
        // It is told to matter less, and goes.
        sim.register(&service("low", 40, on_port("low", 8080)));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.converge()
    });
}

/// Of three the least important goes, and nobody for what is free.
#[test]
fn preemption_stops_no_more_allocs_than_needed() {
    for_seeds(100, |sim| {
        let on_gpu = |name: &str| group("g", [task(name).devices("bolt/gpu", 1)]);
        sim.register(&service("a", 30, on_gpu("a")));
        sim.until(SOON, |sim| sim.runs("a", "a"))?;
        let both = group("g", [task("b").devices("bolt/gpu", 1)]).static_port("http", 8080);
        sim.register(&service("b", 20, both));
        sim.until(SOON, |sim| sim.runs("b", "b"))?;
        sim.register(&service(
            "free",
            90,
            group("g", [task("free").devices("fpga", 1)]),
        ));
        sim.until(SOON, |sim| sim.runs("free", "free"))?;
        let gone = |sim: &Sim| (evicted(sim, "a"), evicted(sim, "b"));
        sim.expect_that(gone(sim) == (0, 0), "there are enough of these")?;
        sim.register(&service("first", 60, on_gpu("first")));
        sim.until(SOON, |sim| sim.runs("first", "first"))?;
        sim.expect_that(gone(sim) == (0, 1), "the least important")?;
        sim.register(&service("second", 60, on_gpu("second")));
        sim.until(SOON, |sim| sim.runs("second", "second"))?;
        sim.expect_that(gone(sim) == (1, 1), "then the next")?;
        sim.register(&service("third", 65, on_gpu("third")));
        sim.run(Span::secs(600))?;
        sim.expect_that(sim.living("third") == 0, "nobody else matters less")?;
        sim.converge()
    });
}

/// The least important one holds a device that would do, but not the port: it is not taken in vain.
#[test]
fn insufficient_preemption_evicts_nothing() {
    for_seeds(60, |sim| {
        sim.register(&service(
            "idle",
            10,
            group("g", [task("idle").devices("gpu", 1)]),
        ));
        sim.until(SOON, |sim| sim.runs("idle", "idle"))?;
        sim.register(&service("low", 30, on_port("low", 8080)));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        let both = group("g", [task("main").devices("gpu", 1)]).static_port("http", 8080);
        sim.register(&service("web", 50, both));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        only_web_runs(sim)?;
        sim.expect_that(sim.runs("idle", "idle"), "the other device was free")?;
        sim.converge()
    });
}

/// The least important one is asked first, and what it has would not have been enough: it stays when
/// the next one's is.
#[test]
fn unneeded_preemption_candidate_is_spared() {
    for_seeds(60, |sim| {
        let idle = group("g", [task("idle").devices("fpga", 1)]);
        sim.register(&service("idle", 10, idle));
        sim.until(SOON, |sim| sim.runs("idle", "idle"))?;
        let low = group("g", [task("low").devices("gpu", 2)]);
        sim.register(&service("low", 30, low));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        let both = task("main").devices("fpga", 1).devices("gpu", 1);
        sim.register(&service("web", 50, group("g", [both])));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.expect_that(evicted(sim, "low") == 1, "it had all of these")?;
        sim.expect_that(sim.runs("idle", "idle"), "others of these were free")?;
        sim.converge()
    });
}

/// The two least important ones are not enough, and either of them would be beside the third: the more important one
/// of the two stays.
#[test]
fn least_important_alloc_goes_where_either_would_do() {
    let machine = Amounts {
        cpu: 5000,
        memory: 1200,
        disk: 10_000,
    };
    for_seeds_on(machine, 60, |sim| {
        let wants = |name: &str, priority, memory| {
            let mut task = task(name);
            (task.resources.cpu, task.resources.memory_mb) = (10, memory);
            service(name, priority, group("g", [task]))
        };
        for (name, priority, memory) in [("a", 15, 300), ("b", 20, 300), ("c", 30, 600)] {
            sim.register(&wants(name, priority, memory));
            sim.until(SOON, |sim| sim.runs(name, name))?;
        }
        sim.register(&wants("web", 70, 900));
        sim.until(SOON, |sim| sim.runs("web", "web"))?;
        let gone = ["a", "b", "c"].map(|job| evicted(sim, job));
        sim.expect_that(gone == [1, 0, 1], &format!("{gone:?} went"))?;
        sim.expect_that(sim.runs("b", "b"), "it stays")?;
        sim.converge()
    });
}

/// A task that takes long to end, or never does, is awaited.
#[test]
fn preempting_alloc_waits_for_holder_to_end() {
    for_seeds(200, |sim| {
        sim.world.scene.faults =
            Faults::only(&[Fault::HangStop, Fault::HangDestroy], 500).budget(20);
        sim.register(&service("low", 30, on_port("low", 8080)));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.register(&service("web", 50, on_port("main", 8080)));
        sim.run(Span::secs(600))?;
        sim.converge()?;
        only_web_runs(sim)
    });
}

/// Who waits for the place can be told to go, and the place is the old one's again.
#[test]
fn preempting_alloc_can_be_stopped_while_waiting() {
    for_seeds(100, |sim| {
        let low = task("low").with("kill_after", "1h");
        let low = group("g", [low]).static_port("http", 8080);
        sim.register(&service("low", 30, low));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.register(&service("web", 50, on_port("main", 8080)));
        sim.until(SOON, |sim| evicted(sim, "low") == 1)?;
        sim.deregister("web", false);
        sim.until(Span::secs(600), |sim| sim.runs("low", "low"))?;
        sim.expect_that(sim.living("main") == 0, "it never ran")?;
        sim.converge()
    });
}

/// Wherever the agent dies, it goes on where it was.
#[test]
fn preemption_happens_once_despite_crashes() {
    let steps = each_crash(20, |sim| {
        sim.register(&service("low", 30, on_port("low", 8080)));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.register(&service("web", 50, on_port("main", 8080)));
        sim.run(Span::secs(300))?;
        sim.converge()?;
        only_web_runs(sim)?;
        sim.expect_that(evicted(sim, "low") <= 1, "it is told once")
    });
    assert!(steps > 50, "{steps} crashes");
}

/// A batch job that lost its place is done later; one that is done stays done.
#[test]
fn preempted_batch_work_is_done_later() {
    for_seeds(100, |sim| {
        let work = task("low").ends("60s", 0);
        let work = group("g", [work]).static_port("http", 8080);
        sim.register(&at(30, job("low", JobType::Batch, [work])));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.register(&service("web", 50, on_port("main", 8080)));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.run(Span::secs(120))?;
        sim.expect_that(sim.living("low") == 0, "it is done")?;
        sim.register(&service("web", 50, on_port("main", 8080)));
        sim.run(Span::secs(60))?;
        sim.expect_that(evicted(sim, "low") == 1, "what is done holds no place")?;
        sim.converge()
    });
}

/// Work that is done is not done again because its place is wanted while only what comes after it
/// still runs.
#[test]
fn finishing_batch_alloc_is_not_preempted() {
    for_seeds(100, |sim| {
        let tasks = [
            task("low").ends("10s", 0),
            task("upload").hook(Hook::Poststop, false).ends("120s", 0),
        ];
        let work = group("g", tasks).static_port("http", 8080);
        sim.register(&at(30, job("low", JobType::Batch, [work])));
        sim.until(SOON, |sim| sim.living("upload") == 1)?;
        sim.register(&service("web", 50, on_port("main", 8080)));
        sim.until(Span::secs(300), |sim| sim.runs("web", "main"))?;
        sim.expect_that(evicted(sim, "low") == 0, "it was as good as over")?;
        sim.expect_that(sim.allocs("low").len() == 1, "it is done")?;
        sim.converge()
    });
}

/// Random worlds found this (seed 9168375): a copy was preempted before it had its turn, and its job became the
/// more important one while the copy before it still ended. It waited for that end to look for a place.
#[test]
fn preempted_pending_alloc_is_placed_again() {
    for_seeds(100, |sim| {
        let web = |priority| {
            let upload = task("upload").hook(Hook::Poststop, false).ends("600s", 0);
            let group = group("g", [task("main"), upload]).static_port("http", 8080);
            service("web", priority, group)
        };
        sim.register(&web(50));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", true);
        sim.until(SOON, |sim| sim.living("upload") == 1)?;
        sim.register(&web(30));
        sim.register(&service("low", 50, on_port("low", 8080)));
        sim.run(Span::secs(1))?;
        sim.expect_that(evicted(sim, "web") == 1, "it had no turn yet")?;
        sim.register(&web(70));
        sim.run(Span::secs(60))?;
        sim.expect_that(evicted(sim, "low") == 1, "it matters more again")?;
        sim.until(Span::secs(900), |sim| sim.runs("web", "main"))?;
        sim.expect_that(sim.world.starts_of("low") == 0, "nobody begins in vain")?;
        sim.converge()
    });
}

/// Random worlds found this (seed 1003828): a copy whose setup had failed was awaited by the next copy. The agent
/// died before that was saved, the next one set it up, and the other waited for ever.
#[test]
fn alloc_ending_by_itself_is_evicted_not_awaited() {
    for delay in [0, 3] {
        let steps = each_crash(7, |sim| {
            sim.world.scene.faults = Faults::only(&[Fault::FailHook], 1000).budget(1);
            let mut group = on_port("main", 8080).count(2).never_again();
            group.shutdown_delay = Some(Span::secs(delay));
            sim.register(&service("web", 50, group));
            sim.run(Span::secs(300))?;
            sim.converge()
        });
        assert!(steps > 10, "{steps} steps");
    }
}

/// A device that comes free anyway costs nobody his place.
#[test]
fn capacity_being_freed_preempts_nothing() {
    for_seeds(100, |sim| {
        let on_gpu = |group_name: &str| {
            group(
                group_name,
                [task("main").devices("bolt/gpu", 1).with("kill_after", "5s")],
            )
        };
        sim.register(&service("web", 60, on_gpu("old")));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let low = group("g", [task("low").devices("bolt/gpu", 1)]);
        sim.register(&service("low", 30, low));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        // The other group's end frees the device that this one needs.
        sim.register(&service("web", 60, on_gpu("new")));
        sim.run(Span::secs(120))?;
        let fine = sim.living("main") == 1 && sim.runs("low", "low");
        sim.expect_that(fine && evicted(sim, "low") == 0, "there are two")?;
        // Nor does an update that meets an update.
        for value in ["1", "2", "3"] {
            let mut group = on_gpu("new");
            group.tasks[0].env.insert("V".to_owned(), value.to_owned());
            sim.register(&service("web", 60, group));
            sim.run(Span::secs(1))?;
        }
        sim.run(Span::secs(120))?;
        sim.expect_that(evicted(sim, "low") == 0, "there still are two")?;
        sim.converge()
    });
}

/// A place that comes free goes to the most important one that waits, and nobody is placed to be
/// told to go at once.
#[test]
fn free_capacity_goes_to_highest_priority() {
    for_seeds(100, |sim| {
        let work = |name: &str, time: &str| {
            group("g", [task(name).ends(time, 0)]).static_port("http", 8080)
        };
        sim.register(&service("a", 30, on_port("a", 8080).sticky()));
        sim.until(SOON, |sim| sim.runs("a", "a"))?;
        for (name, priority) in [("b", 50), ("c", 55), ("d", 52)] {
            let name_of_job = format!("j{name}");
            sim.register(&at(
                priority,
                job(&name_of_job, JobType::Batch, [work(name, "10s")]),
            ));
            sim.run(Span::secs(2))?;
        }
        sim.run(Span::secs(120))?;
        sim.expect_that(sim.runs("a", "a"), "it has its place again")?;
        sim.expect_that(sim.allocs("a").len() == 2, "it had it twice")?;
        sim.converge()
    });
}

/// A soak found this: a job that was told to matter less before there was any place still came first.
#[test]
fn free_capacity_follows_updated_priority() {
    for_seeds(60, |sim| {
        let on_gpus = |name: &str| group("g", [task(name).devices("bolt/gpu", 1)]).count(2);
        sim.register(&service("low", 70, on_gpus("low")));
        sim.register(&service("web", 50, on_gpus("main")));
        sim.register(&service("low", 30, on_gpus("low")));
        sim.until(Span::secs(300), |sim| sim.living("main") == 2)?;
        sim.converge()?;
        sim.expect_that(sim.living("low") == 0, "both are taken")
    });
}

/// One holder of a port has to go, however many others hold what is free.
#[test]
fn port_holder_is_preempted_among_many() {
    for_seeds(20, |sim| {
        sim.register(&service("holder", 40, on_port("holder", 8080)));
        sim.until(SOON, |sim| sim.runs("holder", "holder"))?;
        let many = group("g", [task("many").devices("fpga", 1)]).count(2);
        sim.register(&service("many", 10, many));
        sim.until(SOON, |sim| sim.living("many") == 2)?;
        let both = group("g", [task("main").devices("fpga", 1)]).static_port("http", 8080);
        sim.register(&service("web", 50, both));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.expect_that(evicted(sim, "many") == 0, "one is free")?;
        sim.converge()
    });
}

/// Unless somebody says so, only system jobs take the place of others.
#[test]
fn only_allowed_job_types_preempt() {
    for (job_type, may) in [
        (JobType::Service, false),
        (JobType::Batch, false),
        (JobType::System, true),
        (JobType::Sysbatch, false),
    ] {
        let mut config = listening(Config::new(0, node(), "/alloc"));
        config.preemption = Preemption::default();
        let mut sim = Sim::with_config(1, config);
        let played = (|| {
            sim.register(&service("low", 30, on_port("low", 8080)));
            sim.until(SOON, |sim| sim.runs("low", "low"))?;
            let main = group("g", [task("main").ends(EVER, 0)]).static_port("http", 8080);
            sim.register(&at(100, job("web", job_type, [main])));
            sim.run(Span::secs(120))?;
            sim.expect_that(sim.runs("web", "main") == may, "as it is set")?;
            sim.converge()
        })();
        assert!(played.is_ok(), "{job_type:?}: {played:?}");
    }
}
