//! Namespaces: what is in one that is not there is refused, and none goes that something is in.

use std::collections::BTreeMap;

use drover_core::agent::requests::{
    ApplyNamespace, DeleteNamespace, DeleteVariable, Evaluate, PutVariable, Register, Request,
    RevertJob,
};
use drover_core::config::Config;
use drover_core::input::ShutdownMode;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::job::{Job, JobType};
use drover_core::model::namespace::{Namespace, NamespaceCapabilities};
use drover_core::model::variable::{Items, VariableKey};
use drover_core::time::Span;
use drover_io_sim::{Sim, node};
use drover_sim_tests::build::{TaskExt, group, job, task};
use drover_sim_tests::inspect::{Inspect, SOON, accepts, refuses};
use drover_sim_tests::{Scenario, each_crash, for_seeds};

fn team() -> Namespace {
    Namespace {
        name: "team".into(),
        description: "theirs".to_owned(),
        ..Namespace::default()
    }
}

fn apply(namespace: Namespace) -> Request {
    ApplyNamespace { namespace }.into()
}

fn delete() -> Request {
    let name = "team".into();
    DeleteNamespace { name }.into()
}

/// A job of the namespace `team`.
fn of_team(id: &str, job_type: JobType) -> Job {
    let main = match job_type {
        JobType::Batch => task("main").ends("20s", 0),
        _ => task("main"),
    };
    let mut job = job(id, job_type, [group("g", [main])]);
    "team".clone_into(&mut job.namespace);
    job
}

fn register(job: Job) -> Request {
    Register {
        job: job.into(),
        ..Register::default()
    }
    .into()
}

fn variable() -> VariableKey {
    VariableKey {
        namespace: "team".into(),
        path: "db".into(),
    }
}

fn put_variable() -> Request {
    let items = BTreeMap::from([("key".to_owned(), "value".to_owned())]);
    PutVariable {
        key: variable(),
        items: Items::new(items).unwrap_or_default(),
        expect: None,
    }
    .into()
}

fn is_there(sim: &Sim) -> bool {
    sim.view().is_some_and(|view| view.has_namespace("team"))
}

#[test]
fn job_of_namespace_that_is_not_there_is_refused_until_it_is_made() {
    for_seeds(40, |sim| {
        let job = of_team("web", JobType::Service);
        refuses(sim, register(job.clone()), "nonexistent namespace")?;
        refuses(sim, put_variable(), "nonexistent namespace")?;
        accepts(sim, apply(team()))?;
        accepts(sim, register(job))?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.restart()?;
        sim.converge()?;
        sim.expect_that(is_there(sim), "the next agent knows it")?;
        sim.expect_that(sim.runs("web", "main"), "and its job")
    });
}

#[test]
fn namespace_is_not_deleted_while_something_is_in_it() {
    for_seeds(60, |sim| {
        accepts(sim, apply(team()))?;
        accepts(sim, put_variable())?;
        refuses(sim, delete(), "variable")?;
        let key = variable();
        accepts(sim, DeleteVariable { key, expect: None })?;
        accepts(sim, register(of_team("web", JobType::Service)))?;
        refuses(sim, delete(), "job \"web\"")?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        refuses(sim, delete(), "job \"web\"")?;
        // Its job is told to end, and its process lives on for a while.
        sim.deregister("web", false);
        sim.ask(delete());
        sim.until(SOON, |sim| sim.living("main") == 0)?;
        sim.run(SOON)?;
        if is_there(sim) {
            accepts(sim, delete())?;
        }
        sim.expect_that(!is_there(sim), "it is gone")?;
        sim.converge()
    });
}

/// A job that waits for a placement has no allocation, and is nevertheless in its namespace.
#[test]
fn namespace_is_not_deleted_while_job_waits_for_placement() {
    for_seeds(20, |sim| {
        accepts(sim, apply(team()))?;
        let mut job = of_team("web", JobType::Service);
        job.task_groups[0].tasks[0].driver = "elsewhere".to_owned();
        accepts(sim, register(job))?;
        sim.run(SOON)?;
        refuses(sim, delete(), "job \"web\"")?;
        sim.converge()
    });
}

/// A search found this: an agent that has just begun does not know its machine yet, and a job that it is about to place
/// again looks dead.
#[test]
fn namespace_is_not_deleted_before_its_jobs_are_placed_again() {
    for job_type in [JobType::Service, JobType::Batch, JobType::System] {
        for_seeds(40, |sim| {
            accepts(sim, apply(team()))?;
            let mut job = of_team("web", job_type);
            job.task_groups[0].tasks = vec![task("main")];
            sim.ask(register(job));
            sim.run(Span::secs(2))?;
            sim.shutdown(ShutdownMode::StopTasks);
            sim.until(Span::secs(600), |sim| sim.stopped)?;
            sim.restart()?;
            sim.ask(delete());
            sim.run(SOON)?;
            sim.expect_that(is_there(sim), "it has a job")?;
            sim.converge()
        });
    }
}

#[test]
fn dead_job_of_deleted_namespace_does_not_come_back() {
    for_seeds(60, |sim| {
        accepts(sim, apply(team()))?;
        let batch = of_team("sum", JobType::Batch);
        accepts(sim, register(batch.clone()))?;
        sim.until(Span::secs(600), |sim| {
            sim.all_over("sum", ClientStatus::Complete)
        })?;
        sim.run(SOON)?;
        accepts(sim, delete())?;
        let job = batch.key();
        refuses(
            sim,
            Evaluate {
                job: job.clone(),
                force_reschedule: false,
            },
            "nonexistent",
        )?;
        refuses(sim, register(batch.clone()), "nonexistent")?;
        let revert = RevertJob {
            job,
            version: 0,
            expect_version: None,
        };
        refuses(sim, revert, "nonexistent")?;
        sim.restart()?;
        sim.run(Span::secs(600))?;
        sim.expect_that(sim.world.starts_of("main") == 1, "it ran once")?;
        sim.converge()
    });
}

#[test]
fn driver_that_namespace_disables_is_refused_and_what_runs_goes_on() {
    for_seeds(40, |sim| {
        accepts(sim, apply(team()))?;
        let job = of_team("web", JobType::Service);
        accepts(sim, register(job.clone()))?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let mut other = job.clone();
        other.priority = 60;
        accepts(sim, register(other.clone()))?;
        let strict = Namespace {
            capabilities: Some(NamespaceCapabilities {
                disabled_task_drivers: vec!["mock_driver".to_owned()],
                ..NamespaceCapabilities::default()
            }),
            ..team()
        };
        accepts(sim, apply(strict))?;
        other.priority = 70;
        refuses(sim, register(other), "driver \"mock_driver\"")?;
        let back = RevertJob {
            job: job.key(),
            version: 0,
            expect_version: None,
        };
        refuses(sim, back, "driver \"mock_driver\"")?;
        sim.restart()?;
        sim.converge()?;
        sim.expect_that(sim.runs("web", "main"), "it goes on")
    });
}

/// Worlds whose agents are configured with the namespace `team`.
fn for_seeds_with(count: u64, scenario: impl Fn(&mut Sim) -> Scenario) {
    for seed in 0..count {
        let mut config = Config::new(0, node(), "/alloc");
        config.namespaces = Some(vec!["team".into()]);
        let mut sim = Sim::with_config(seed, config);
        let done = scenario(&mut sim);
        assert_eq!(done, Ok(()), "seed {seed}");
    }
}

#[test]
fn configured_and_default_namespaces_are_there_and_stay() {
    for_seeds_with(20, |sim| {
        refuses(sim, delete(), "configuration")?;
        let name = "default".into();
        refuses(sim, DeleteNamespace { name }, "default")?;
        let name = "other".into();
        refuses(sim, DeleteNamespace { name }, "not found")?;
        accepts(sim, register(of_team("web", JobType::Service)))?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        accepts(sim, apply(team()))?;
        sim.restart()?;
        let shown = sim.view().and_then(|view| {
            let all = view.namespaces();
            Some(all.get("team")?.namespace.description.clone())
        });
        sim.expect_that(shown.as_deref() == Some("theirs"), &format!("{shown:?}"))?;
        sim.converge()
    });
}

#[test]
fn agent_dies_at_any_step_of_making_and_deleting_a_namespace() {
    let crashes = each_crash(6, |sim| {
        sim.ask(apply(team()));
        sim.run(SOON)?;
        // Who died before the answer may not have begun.
        if !is_there(sim) {
            sim.ask(apply(team()));
            sim.run(SOON)?;
        }
        let batch = of_team("sum", JobType::Batch);
        let over = |sim: &Sim| sim.all_over("sum", ClientStatus::Complete);
        sim.ask(register(batch.clone()));
        sim.run(SOON)?;
        if sim.allocs("sum").is_empty() {
            sim.ask(register(batch));
        }
        sim.until(Span::secs(600), over)?;
        sim.run(SOON)?;
        sim.ask(delete());
        sim.run(SOON)?;
        if is_there(sim) {
            sim.ask(delete());
            sim.run(SOON)?;
        }
        sim.expect_that(!is_there(sim), "it is gone")?;
        sim.converge()
    });
    assert!(crashes > 10, "{crashes}");
}
