//! What is forgotten of jobs that are over: by hand at once, by itself when it is old.

use drover_core::agent::requests::{CollectGarbage, Evaluate};
use drover_core::config::Retention;
use drover_core::ids::JobKey;
use drover_core::model::alloc::ClientStatus;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{GroupExt, TaskExt, batch, changed, service, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

/// How many evaluations a job has.
fn evals(sim: &Sim, job: &str) -> usize {
    let key = JobKey::local(job);
    let view = sim.view().into_iter();
    view.flat_map(|view| view.evals())
        .filter(|eval| eval.job == key)
        .count()
}

/// Whether anything of a job is known.
fn is_known(sim: &Sim, job: &str) -> bool {
    let key = JobKey::local(job);
    let known = sim.view().is_some_and(|view| {
        view.job(&key).is_some() || view.shown_allocs_of(&key).next().is_some()
    });
    known || evals(sim, job) > 0
}

/// A batch job that is over, and the same of one that failed.
fn two_ended(sim: &mut Sim) -> Result<(), drover_io_sim::Violation> {
    let failing = batch("bad", [task("main").ends("1s", 1)]);
    sim.register(&batch("good", [task("main").ends("1s", 0)]));
    sim.register(&changed(&failing, |group| {
        *group = group.clone().never_again()
    }));
    sim.until(Span::secs(600), |sim| {
        sim.all_over("good", ClientStatus::Complete) && sim.all_over("bad", ClientStatus::Failed)
    })
}

#[test]
fn system_gc_collects_dead_jobs_completely() {
    for_seeds(50, |sim| {
        two_ended(sim)?;
        sim.register(&service("gone", [task("main")]));
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| {
            sim.runs("web", "main") && sim.runs("gone", "main")
        })?;
        sim.deregister("gone", false);
        sim.until(SOON, |sim| sim.all_over("gone", ClientStatus::Complete))?;
        sim.ask(CollectGarbage);
        let dead = ["good", "bad", "gone"];
        sim.until(Span::secs(600), |sim| {
            !dead.iter().any(|job| is_known(sim, job))
        })?;
        sim.expect_that(sim.runs("web", "main"), "what runs is left alone")?;
        sim.converge()
    });
}

/// Whenever the agent dies, nothing is left half forgotten.
#[test]
fn system_gc_is_finished_by_next_agent() {
    for seed in 0..2 {
        let steps = each_crash(seed, |sim| {
            two_ended(sim)?;
            sim.ask(CollectGarbage);
            sim.run(Span::secs(300))?;
            // Who died before it could answer forgot that it was asked.
            sim.ask(CollectGarbage);
            sim.until(Span::secs(600), |sim| {
                !is_known(sim, "good") && !is_known(sim, "bad")
            })?;
            sim.converge()
        });
        assert!(steps > 20, "seed {seed}: {steps} steps");
    }
}

/// How long a dead job is kept.
fn kept_for(sim: &Sim) -> Span {
    let retention = sim.config().retention;
    retention.map_or(Span::ZERO, |retention| retention.jobs)
}

/// As in Nomad.
#[test]
fn dead_job_is_kept_for_four_hours_by_default() {
    let retention = Retention::default();
    let hours = [retention.jobs, retention.evals, retention.deployments];
    assert_eq!(hours, [4, 1, 1].map(|hours| Span::secs(hours * 3600)));
}

#[test]
fn expired_dead_job_is_forgotten() {
    for_seeds(20, |sim| {
        two_ended(sim)?;
        sim.run(Span(kept_for(sim).0 - Span::secs(900).0))?;
        sim.expect_that(is_known(sim, "good") && is_known(sim, "bad"), "too early")?;
        sim.run(Span::secs(1800))?;
        sim.expect_that(!is_known(sim, "good") && !is_known(sim, "bad"), "too late")?;
        sim.converge()
    });
}

/// Nobody stopped it: it is to run, and cannot.
#[test]
fn failed_service_is_not_collected() {
    for_seeds(20, |sim| {
        let web = service("web", [task("main").ends("1s", 1)]);
        sim.register(&changed(&web, |group| *group = group.clone().never_again()));
        sim.until(Span::secs(600), |sim| {
            sim.all_over("web", ClientStatus::Failed)
        })?;
        sim.ask(CollectGarbage);
        sim.run(kept_for(sim))?;
        sim.run(Span::secs(3600))?;
        let known = sim
            .view()
            .is_some_and(|view| view.job(&JobKey::local("web")).is_some());
        sim.expect_that(known, "the job is there")?;
        sim.deregister("web", false);
        sim.run(kept_for(sim))?;
        sim.run(Span::secs(3600))?;
        sim.expect_that(!is_known(sim, "web"), "it was stopped")?;
        sim.converge()
    });
}

#[test]
fn old_evaluations_are_collected_except_latest() {
    for_seeds(20, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let job = || JobKey::local("web");
        for _ in 0..3 {
            sim.ask(Evaluate {
                job: job(),
                force_reschedule: false,
            });
            sim.run(SOON)?;
        }
        let before = evals(sim, "web");
        sim.run(Span::secs(2 * 3600))?;
        // The one that placed what runs, and the latest.
        let after = evals(sim, "web");
        sim.expect_that(
            before == 4 && after == 2,
            &format!("{before}, then {after}"),
        )?;
        sim.stop_alloc("web");
        sim.until(SOON, |sim| {
            sim.allocs("web").len() == 2 && sim.runs("web", "main")
        })?;
        sim.ask(CollectGarbage);
        sim.until(SOON, |sim| evals(sim, "web") == 1)?;
        sim.converge()
    });
}

/// What another node is to fetch outlives the job here, until it was fetched or its time is over.
#[test]
fn dead_job_is_kept_while_its_disk_is_leased() {
    for_seeds(20, |sim| {
        let db = changed(&service("db", [task("main")]), |group| {
            *group = group.clone().migrates()
        });
        sim.register(&db);
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        let alloc = sim
            .live("db")
            .map(|alloc| alloc.record().id)
            .unwrap_or_default();
        sim.hand_over("db");
        sim.deregister("db", false);
        sim.until(SOON, |sim| sim.all_over("db", ClientStatus::Complete))?;
        sim.world.scene.faults = Faults::only(&[Fault::SlowAnswer], 100);
        sim.run(Span::secs(12 * 3600))?;
        sim.ask(CollectGarbage);
        sim.run(Span::secs(3600))?;
        sim.expect_that(sim.world.dirs.allocs.contains(&alloc), "its disk is there")?;
        sim.run(kept_for(sim))?;
        sim.expect_that(!is_known(sim, "db"), "its time is over")?;
        sim.converge()
    });
}
