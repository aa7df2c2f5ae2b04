//! What stays of allocations whose directories were garbage-collected: a record of each, as long as its
//! job's version is kept, bounded by number.

use drover_core::agent::ShownAlloc;
use drover_core::agent::requests::{
    CollectAlloc, PauseDeployment, Restart, RestartScope, SetEligibility, StopAlloc,
};
use drover_core::config::Config;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{AllocId, JobKey};
use drover_core::model::alloc::{ClientStatus, TaskState};
use drover_core::model::drain::Eligibility;
use drover_core::model::event::EventType;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::time::Span;
use drover_io_sim::{Sim, Violation, listening};
use drover_sim_tests::build::{GroupExt, TaskExt, batch, changed, group, job, service, task};
use drover_sim_tests::inspect::{Inspect, SOON, accepts};
use drover_sim_tests::{each_crash, for_seeds, for_seeds_keeping};

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

/// What an old version left undone is not done in the new one, whose turn comes when its roll-out goes on.
#[test]
fn collected_alloc_of_old_version_leaves_new_version_to_run() {
    for_seeds(50, |sim| {
        let fails = task("main").ends("1s", 1);
        let fails = fails.restarts(0, Span::secs(3600), Span::secs(1), RestartMode::Fail);
        let mut web = service("web", [fails]);
        web.task_groups[0] = web.task_groups[0].clone().never_again().rolls(1);
        sim.register(&web);
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Failed))?;
        let old = sim.allocs("web")[0].record().id;
        // Its roll-out is paused before it could begin.
        let set = |eligibility| SetEligibility { eligibility };
        accepts(sim, set(Eligibility::Ineligible))?;
        sim.register(&changed(&web, |group| group.tasks[0] = task("main")));
        sim.run(SOON)?;
        let deployment = sim.rollout("web").map(|rollout| rollout.id);
        let deployment = deployment.unwrap_or_default();
        let pause = |pause| PauseDeployment { deployment, pause };
        accepts(sim, pause(true))?;
        accepts(sim, set(Eligibility::Eligible))?;
        sim.run(SOON)?;
        accepts(sim, CollectAlloc { alloc: old })?;
        sim.until(Span::secs(600), |sim| sim.allocs("web").is_empty())?;
        accepts(sim, pause(false))?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.converge()
    });
}

/// Of those that ended, those that ended first go first, not those that began first.
#[test]
fn alloc_that_ended_last_is_kept_though_it_began_first() {
    for_seeds_keeping(50, 2, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let names = ["a", "b", "c"];
        for name in names {
            sim.register(&batch(name, [task("work").ends("1s", 0)]));
            sim.until(SOON, |sim| {
                let ended = shown(sim, name);
                !ended.is_empty() && ended.iter().all(|alloc| alloc.record().finished)
            })?;
        }
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.run(Span::secs(600))?;
        let kept = |sim: &Sim, name| sim.allocs(name).len();
        let of_batch: usize = names.iter().map(|name| kept(sim, name)).sum();
        let found = (kept(sim, "web"), of_batch);
        sim.expect_that(found == (1, 1), &format!("{found:?} are kept"))?;
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
