//! Jobs that are made of parameterized ones.

use std::sync::Arc;

use drover_core::agent::requests::{CollectGarbage, DispatchJob};
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{JobKey, RequestId};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::dispatch::Dispatch;
use drover_core::model::policy::RestartMode;
use drover_core::time::Span;
use drover_io_sim::{Sim, Violation};
use drover_sim_tests::build::{EVER, TaskExt, batch, parameterized, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

/// The job that a dispatch made.
fn made(sim: &mut Sim, request: RequestId) -> Result<String, Violation> {
    sim.until(SOON, |sim| sim.reply(request).is_some())?;
    match sim.reply(request) {
        Some(Reply::Dispatched { job, .. }) => Ok(job.id.to_string()),
        other => Err(Violation::new(
            "scenario_expectation_holds",
            format!("a job, not {other:?}"),
        )),
    }
}

/// Why a dispatch is refused.
fn refused(sim: &mut Sim, request: RequestId) -> Result<String, Violation> {
    sim.until(SOON, |sim| sim.reply(request).is_some())?;
    match sim.reply(request) {
        Some(Reply::Refused(
            Refusal::NotFound(why) | Refusal::Conflict(why) | Refusal::Invalid(why),
        )) => Ok(why.clone()),
        other => Err(Violation::new(
            "scenario_expectation_holds",
            format!("a refusal, not {other:?}"),
        )),
    }
}

fn sum(run_for: &str) -> drover_core::model::job::Job {
    parameterized(batch("sum", [task("main").ends(run_for, 0).payload()]))
}

#[test]
fn dispatched_jobs_run_once_and_parent_never() {
    for_seeds(200, |sim| {
        sim.register(&sum("5s"));
        sim.run(SOON)?;
        sim.expect_that(sim.world.starts_of("main") == 0, "nothing runs")?;
        let asked = [sim.dispatch("sum", 3), sim.dispatch("sum", 5)];
        let one = made(sim, asked[0])?;
        let other = made(sim, asked[1])?;
        sim.expect_that(one != other, "two jobs")?;
        for job in [&one, &other] {
            sim.until(SOON, |sim| sim.all_over(job, ClientStatus::Complete))?;
        }
        sim.expect_that(sim.world.starts_of("main") == 2, "each once")?;
        sim.converge()
    });
}

#[test]
fn acknowledged_dispatch_survives_crash() {
    let crashes = each_crash(3, |sim| {
        sim.register(&sum("5s"));
        let asked = sim.dispatch("sum", 3);
        // Who gets no answer asks again.
        sim.until(SOON, |sim| {
            sim.reply(asked).is_some() || sim.view().is_some_and(|view| view.jobs().count() == 0)
        })?;
        if let Some(Reply::Dispatched { job, .. }) = sim.reply(asked) {
            let job = job.id.to_string();
            sim.until(SOON, |sim| sim.all_over(&job, ClientStatus::Complete))?;
        }
        sim.converge()
    });
    assert!(crashes > 10, "{crashes}");
}

#[test]
fn payload_is_written_once_per_task() {
    for_seeds(100, |sim| {
        let main = task("main").ends("1s", 3).payload();
        let main = main.restarts(3, Span::secs(3600), Span::secs(1), RestartMode::Fail);
        sim.register(&parameterized(batch("sum", [main])));
        let asked = sim.dispatch("sum", 0);
        let job = made(sim, asked)?;
        sim.until(SOON, |sim| sim.all_over(&job, ClientStatus::Failed))?;
        sim.expect_that(sim.world.starts_of("main") == 4, "four starts")?;
        sim.converge()
    });
}

#[test]
fn same_idempotency_token_dispatches_once() {
    for_seeds(100, |sim| {
        sim.register(&sum("5s"));
        // One and four have the same token.
        let asked = sim.dispatch("sum", 1);
        let first = made(sim, asked)?;
        let asked = sim.dispatch("sum", 4);
        let again = made(sim, asked)?;
        sim.expect_that(first == again, "no second job")?;
        sim.until(SOON, |sim| sim.all_over(&first, ClientStatus::Complete))?;
        sim.converge()
    });
}

/// Whoever repeats a request gets the job that it made, also if somebody stopped that meanwhile.
#[test]
fn stopped_dispatched_job_keeps_its_idempotency_token() {
    for_seeds(20, |sim| {
        sim.register(&sum(EVER));
        let asked = sim.dispatch("sum", 1);
        let first = made(sim, asked)?;
        sim.until(SOON, |sim| sim.runs(&first, "main"))?;
        sim.deregister(&first, false);
        sim.until(SOON, |sim| sim.all_over(&first, ClientStatus::Complete))?;
        let asked = sim.dispatch("sum", 4);
        let again = made(sim, asked)?;
        sim.expect_that(first == again, "no second job")?;
        sim.converge()
    });
}

#[test]
fn unsuitable_dispatch_is_refused() {
    for_seeds(20, |sim| {
        sim.register(&sum("5s"));
        sim.register(&batch("plain", [task("main").ends("1s", 0)]));
        let ask = |sim: &mut Sim, job: &str, dispatch: Dispatch| {
            let request = sim.ask(DispatchJob {
                job: JobKey::local(job),
                dispatch: Arc::new(dispatch),
            });
            refused(sim, request)
        };
        let why = ask(sim, "nobody", Dispatch::default())?;
        sim.expect_that(why.contains("not found"), &why)?;
        let why = ask(sim, "plain", Dispatch::default())?;
        sim.expect_that(why.contains("not a parameterized job"), &why)?;
        let why = ask(sim, "sum", Dispatch::default())?;
        sim.expect_that(why.contains("required meta keys: [who]"), &why)?;
        let who = ("who".to_owned(), String::new());
        let too_much = Dispatch {
            meta: [who.clone(), ("zz".to_owned(), String::new())].into(),
            ..Dispatch::default()
        };
        let why = ask(sim, "sum", too_much)?;
        sim.expect_that(why.contains("unpermitted metadata keys: [zz]"), &why)?;
        let long = Dispatch {
            meta: [who].into(),
            prefix: "x".repeat(300),
            ..Dispatch::default()
        };
        let why = ask(sim, "sum", long)?;
        sim.expect_that(why.contains("must not be longer"), &why)?;
        let asked = sim.dispatch("sum", 0);
        let child = made(sim, asked)?;
        let why = ask(sim, &child, Dispatch::default())?;
        sim.expect_that(why.contains("not a parameterized job"), &why)?;
        sim.deregister("sum", false);
        let asked = sim.dispatch("sum", 2);
        let why = refused(sim, asked)?;
        sim.expect_that(why.contains("stopped"), &why)?;
        sim.converge()
    });
}

#[test]
fn stopped_parent_keeps_dispatched_jobs() {
    for_seeds(100, |sim| {
        sim.register(&sum(EVER));
        let asked = sim.dispatch("sum", 0);
        let child = made(sim, asked)?;
        sim.until(SOON, |sim| sim.runs(&child, "main"))?;
        sim.deregister("sum", true);
        sim.run(SOON)?;
        sim.expect_that(sim.runs(&child, "main"), "it runs on")?;
        sim.deregister(&child, false);
        sim.until(SOON, |sim| sim.all_over(&child, ClientStatus::Complete))?;
        sim.converge()
    });
}

#[test]
fn job_made_parameterized_stops_its_allocs() {
    for_seeds(100, |sim| {
        let plain = batch("sum", [task("main")]);
        sim.register(&plain);
        sim.until(SOON, |sim| sim.runs("sum", "main"))?;
        sim.register(&parameterized(plain.clone()));
        sim.until(SOON, |sim| sim.living("main") == 0)?;
        sim.register(&plain);
        sim.until(SOON, |sim| sim.runs("sum", "main"))?;
        Ok(())
    });
}

/// However many are made, only so many of those that are over are kept, the latest.
#[test]
fn finished_dispatched_jobs_are_forgotten() {
    for_seeds(2, |sim| {
        sim.register(&sum("0s"));
        let mut all = Vec::new();
        let kept_children = sim.config().kept_children;
        let many = u32::try_from(kept_children).unwrap_or(0) + 5;
        for nth in 0..many {
            // Without a token.
            let asked = sim.dispatch("sum", nth * 3);
            all.push(made(sim, asked)?);
        }
        let of_sum = |sim: &Sim| sim.keys_of("sum").len() - 1;
        sim.until(Span::secs(3600), |sim| of_sum(sim) == kept_children)?;
        let kept = sim.keys_of("sum");
        let kept = |id: &String| kept.contains(&JobKey::local(id));
        sim.expect_that(all[5..].iter().all(kept), "the latest are kept")?;
        sim.ask(CollectGarbage);
        sim.until(Span::secs(3600), |sim| of_sum(sim) == 0)?;
        sim.converge()
    });
}
