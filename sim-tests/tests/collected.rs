//! What stays of allocations whose directories were garbage-collected: a record of each, as long as its
//! job's version is kept, bounded by number.

use drover_core::agent::ShownAlloc;
use drover_core::agent::requests::{CollectAlloc, Restart, RestartScope, StopAlloc};
use drover_core::config::Config;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{AllocId, JobKey};
use drover_core::model::alloc::{ClientStatus, TaskState};
use drover_core::model::event::EventType;
use drover_core::model::job::{Job, JobType};
use drover_core::time::Span;
use drover_io_sim::{Sim, Violation, listening};
use drover_sim_tests::build::{GroupWords, TaskWords, batch, changed, group, job, service, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

/// A batch job of so many copies that end soon, each with exit code 3.
fn many(copies: i64) -> Job {
    let tasks = [task("main").ends("1s", 3)];
    let mut job = job("many", JobType::Batch, [group("g", tasks).never_again()]);
    job.task_groups[0].count = Some(copies);
    job
}

fn shown<'a>(sim: &'a Sim, job: &str) -> Vec<ShownAlloc<'a>> {
    let view = sim.view().into_iter();
    let key = JobKey::local(job);
    view.flat_map(|view| view.shown_allocs_of(&key).collect::<Vec<_>>())
        .collect()
}

fn exit_code(state: &TaskState) -> Option<&str> {
    let mut ends = state.events.iter();
    let end = ends.find(|event| event.kind == EventType::Terminated)?;
    end.details.get("exit_code").map(String::as_str)
}

/// Whether all are over, none has a directory, and each still says how it ended.
fn all_collected(sim: &Sim, job: &str, copies: usize) -> bool {
    let all = shown(sim, job);
    let is_complete = |alloc: &ShownAlloc<'_>| {
        let mut tasks = alloc.tasks().into_iter();
        alloc.is_collected()
            && alloc.record().status == ClientStatus::Failed
            && tasks.all(|(_, state)| exit_code(state) == Some("3"))
    };
    all.len() == copies && all.iter().all(is_complete) && sim.world.dirs.allocs.is_empty()
}

/// Everything that ended is collected.
fn collect(sim: &mut Sim) -> Result<(), Violation> {
    let ended: Vec<AllocId> = (sim.view().into_iter())
        .flat_map(|view| view.allocs())
        .map(|alloc| alloc.record())
        .filter(|alloc| alloc.finished)
        .map(|alloc| alloc.id)
        .collect();
    for alloc in ended {
        sim.ask(CollectAlloc { alloc });
    }
    sim.until(Span::secs(600), |sim| {
        let mut allocs = sim.view().into_iter().flat_map(|view| view.allocs());
        !allocs.any(|alloc| alloc.record().finished)
    })
}

#[test]
fn batch_job_with_many_copies_shows_each_after_collection() {
    for seed in 0..20 {
        let mut config = listening(Config::new(0, drover_io_sim::node(), "/alloc"));
        (config.keep_terminal, config.kept_records) = (5, 100);
        let mut sim = Sim::with_config(seed, config);
        sim.register(&many(30));
        let ended = |sim: &Sim| {
            let all = shown(sim, "many");
            all.len() == 30 && all.iter().all(|alloc| alloc.record().finished)
        };
        let result = sim
            .until(Span::secs(600), ended)
            .and_then(|()| sim.run(SOON))
            .and_then(|()| sim.expect_that(sim.allocs("many").len() == 5, "five directories"))
            .and_then(|()| sim.expect_that(shown(&sim, "many").len() == 30, "thirty records"))
            .and_then(|()| collect(&mut sim))
            .and_then(|()| sim.expect_that(all_collected(&sim, "many", 30), "thirty records"))
            .and_then(|()| sim.converge());
        assert_eq!(result, Ok(()), "seed {seed}");
    }
}

/// Whenever the agent dies, the next one shows the same.
#[test]
fn collected_records_survive_each_crash() {
    for seed in 0..3 {
        let steps = each_crash(seed, |sim| {
            sim.register(&many(3));
            sim.until(Span::secs(600), |sim| {
                let all = shown(sim, "many");
                all.len() == 3 && all.iter().all(|alloc| alloc.record().finished)
            })?;
            for alloc in sim
                .allocs("many")
                .iter()
                .map(|alloc| alloc.record().id)
                .collect::<Vec<_>>()
            {
                sim.ask(CollectAlloc { alloc });
            }
            sim.run(Span::secs(300))?;
            // Who died before it could answer forgot that it was asked.
            collect(sim)?;
            sim.expect_that(all_collected(sim, "many", 3), "three records")?;
            sim.converge()
        });
        assert!(steps > 20, "seed {seed}: {steps} steps");
    }
}

#[test]
fn oldest_collected_record_is_dropped_at_limit() {
    for_seeds(50, |sim| {
        let kept = sim.config().kept_records;
        for nth in 0..kept + 2 {
            let id = format!("j{nth}");
            sim.register(&batch(&id, [task("main").ends("1s", 0)]));
            sim.until(SOON, |sim| sim.all_over(&id, ClientStatus::Complete))?;
            collect(sim)?;
        }
        let left = (0..kept + 2).map(|nth| shown(sim, &format!("j{nth}")).len());
        let left: Vec<usize> = left.collect();
        let expected: Vec<usize> = (0..kept + 2).map(|nth| usize::from(nth >= 2)).collect();
        sim.expect_that(left == expected, &format!("{left:?}, not {expected:?}"))?;
        // What is forgotten was done nevertheless.
        sim.run(SOON)?;
        sim.expect_that(sim.living("main") == 0, "nothing runs again")?;
        sim.converge()
    });
}

#[test]
fn collected_records_are_dropped_with_job_version() {
    for_seeds(50, |sim| {
        let mut web = service("web", [task("main")]);
        for version in 0..=7 {
            web = changed(&web, |group| {
                let task = &mut group.tasks[0];
                task.env.insert("V".to_owned(), version.to_string());
            });
            sim.register(&web);
            sim.until(SOON, |sim| {
                let live = sim.live("web").map(|alloc| alloc.record().job_version);
                live == Some(version) && sim.runs("web", "main")
            })?;
            if version < 2 {
                // Its update ended the one before.
                continue;
            }
            collect(sim)?;
        }
        let versions = |sim: &Sim| {
            let all = shown(sim, "web").into_iter();
            let collected = all.filter(|alloc| alloc.is_collected());
            collected.map(|alloc| alloc.record().job_version).min()
        };
        let job = sim.view().and_then(|view| view.job(&JobKey::local("web")));
        let oldest = job.and_then(|job| job.versions.first().map(|job| job.version));
        sim.expect_that(
            versions(sim) >= oldest,
            "no record of a version that is gone",
        )?;
        sim.deregister("web", true);
        sim.until(SOON, |sim| shown(sim, "web").is_empty())?;
        sim.converge()
    });
}

/// People ask for one of which only the record is left, and are told so.
#[test]
fn requests_for_collected_alloc_are_answered() {
    for_seeds(20, |sim| {
        sim.register(&many(1));
        sim.until(Span::secs(600), |sim| {
            sim.all_over("many", ClientStatus::Failed)
        })?;
        let alloc = sim.allocs("many")[0].record().id;
        collect(sim)?;
        let tasks = RestartScope::Running;
        let restart = sim.ask(Restart { alloc, tasks });
        let stop = sim.ask(StopAlloc {
            alloc,
            no_shutdown_delay: false,
        });
        let again = sim.ask(CollectAlloc { alloc });
        sim.run(SOON)?;
        let refused = |reply: Option<&Reply>| matches!(reply, Some(Reply::Refused(Refusal::Conflict(why))) if why.contains("garbage-collected"));
        sim.expect_that(
            refused(sim.checker.reply(restart)),
            "a refusal that says why",
        )?;
        let stopping = matches!(
            sim.checker.reply(stop),
            Some(Reply::Stopping { eval: Some(_), .. })
        );
        sim.expect_that(stopping, "an evaluation of its job")?;
        let done = matches!(sim.checker.reply(again), Some(Reply::Done { .. }));
        sim.expect_that(done, "collected already")?;
        sim.expect_that(all_collected(sim, "many", 1), "its record")?;
        sim.converge()
    });
}
