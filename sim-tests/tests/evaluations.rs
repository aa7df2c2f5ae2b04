//! Evaluations: pending until a plan was made with a node that is known, then complete; what was not
//! placed is named, and waits in a blocked evaluation.

use std::collections::BTreeSet;
use std::sync::Arc;

use drover_core::agent::requests::CollectGarbage;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::Reply;
use drover_core::ids::{EvalId, RequestId};
use drover_core::local::KEPT_EVALS;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::eval::{EvalStatus, Evaluation, Trigger};
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::store::record::AllocRecord;
use drover_core::time::{Span, Timestamp};
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{GroupExt, TaskExt, batch, group, job, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};

/// Longer than any probe, driver or plugin may take to report first.
const REPORTED: Span = Span::secs(200);

fn evaluation(sim: &Sim, id: EvalId) -> Option<Arc<Evaluation>> {
    sim.view()?.eval(id).cloned()
}

/// The evaluation of a request to register a job.
fn registered(sim: &mut Sim, request: RequestId) -> Result<EvalId, Violation> {
    sim.until(SOON, |sim| sim.reply(request).is_some())?;
    match sim.reply(request) {
        Some(Reply::Registered { eval: Some(id), .. }) => Ok(*id),
        other => Err(Violation::new(
            "scenario_expectation_holds",
            format!("an evaluation, not {other:?}"),
        )),
    }
}

fn status(sim: &Sim, id: EvalId) -> Option<EvalStatus> {
    evaluation(sim, id).map(|eval| eval.status)
}

/// A job for which no node has what it asks for.
fn unplaceable() -> Job {
    service("fast", [task("main").devices("nowhere/none", 1)])
}

/// Nothing that reports first does so before its deadline.
fn with_a_silent_node(sim: &mut Sim) -> Result<(), Violation> {
    sim.world.scene.faults = Faults::only(&[Fault::HangProbe], 1000).budget(1000);
    sim.restart()
}

#[test]
fn job_registered_before_fingerprints_has_pending_evaluation() {
    for_seeds(60, |sim| {
        // In the world of seed 0 nothing goes wrong.
        if sim.seed() == BENIGN {
            return Ok(());
        }
        with_a_silent_node(sim)?;
        let request = sim.register(&service("web", [task("main")]));
        let id = registered(sim, request)?;
        sim.expect_that(
            status(sim, id) == Some(EvalStatus::Pending),
            "nothing is known",
        )?;
        sim.restart()?;
        sim.expect_that(
            status(sim, id) == Some(EvalStatus::Pending),
            "nor after a restart",
        )?;
        let done = |sim: &Sim| status(sim, id) == Some(EvalStatus::Complete);
        sim.until(REPORTED, done)?;
        let of_eval = sim
            .allocs("web")
            .iter()
            .any(|alloc| alloc.record().eval == id);
        sim.expect_that(of_eval, "its allocation is there as soon as it is complete")
    });
}

#[test]
fn unplaceable_job_reports_failure_after_first_fingerprint() {
    for_seeds(60, |sim| {
        with_a_silent_node(sim)?;
        let request = sim.register(&unplaceable());
        let id = registered(sim, request)?;
        sim.until(REPORTED, |sim| {
            status(sim, id) == Some(EvalStatus::Complete)
        })?;
        let failed = evaluation(sim, id).map(|eval| eval.failed_groups.clone());
        let words = failed.as_ref().and_then(|failed| failed.first());
        let holds = words
            .is_some_and(|(group, why)| group == "g" && why.to_string().contains("nowhere/none"));
        sim.expect_that(holds, &format!("what is missing: {failed:?}"))
    });
}

/// A command that follows the second submission would otherwise wait for ever.
#[test]
fn unplaceable_job_registered_again_reports_its_failure_again() {
    for_seeds(60, |sim| {
        let mut waiting = Vec::new();
        for _ in 0..2 {
            let request = sim.register(&unplaceable());
            let id = registered(sim, request)?;
            sim.until(REPORTED, |sim| {
                status(sim, id) == Some(EvalStatus::Complete)
            })?;
            let Some(eval) = evaluation(sim, id) else {
                return sim.expect_that(false, "it is there");
            };
            sim.expect_that(!eval.failed_groups.is_empty(), "it names its group")?;
            waiting.extend(eval.blocked_eval);
        }
        let [first, second] = waiting.as_slice() else {
            return sim.expect_that(false, "each has a blocked evaluation");
        };
        let statuses = (status(sim, *first), status(sim, *second));
        let wanted = (Some(EvalStatus::Canceled), Some(EvalStatus::Blocked));
        sim.expect_that(statuses == wanted, &format!("one waits: {statuses:?}"))?;
        sim.converge()
    });
}

#[test]
fn blocked_evaluation_completes_at_placement() {
    for_seeds(60, |sim| {
        sim.register(&service("one", [task("one").devices("fpga", 3)]));
        sim.until(SOON, |sim| sim.runs("one", "one"))?;
        let request = sim.register(&service("two", [task("two").devices("fpga", 1)]));
        let asked = registered(sim, request)?;
        sim.until(SOON, |sim| status(sim, asked) == Some(EvalStatus::Complete))?;
        let blocked = evaluation(sim, asked).and_then(|eval| eval.blocked_eval);
        let Some(blocked) = blocked.and_then(|id| evaluation(sim, id)) else {
            return sim.expect_that(false, "it waits for the device");
        };
        sim.expect_that(
            blocked.trigger == Trigger::QueuedAllocs,
            "for what is queued",
        )?;
        sim.expect_that(blocked.previous_eval == Some(asked), "whose it is")?;
        sim.deregister("one", false);
        sim.until(SOON, |sim| sim.runs("two", "two"))?;
        let now = status(sim, blocked.id);
        sim.expect_that(now == Some(EvalStatus::Complete), &format!("{now:?}"))?;
        for id in [asked, blocked.id] {
            let changes = evaluation(sim, id).map(|eval| eval.changes.clone());
            let mut placed = changes.iter().flatten();
            let holds = placed.any(|(group, it)| group == "g" && it.place == 1);
            sim.expect_that(holds, &format!("one copy was wanted: {changes:?}"))?;
        }
        let holds = sim
            .live("two")
            .is_some_and(|alloc| alloc.record().eval == blocked.id);
        sim.expect_that(holds, "it placed the allocation")?;
        sim.converge()
    });
}

#[test]
fn blocked_evaluation_of_a_stopped_job_is_canceled() {
    for_seeds(60, |sim| {
        let request = sim.register(&unplaceable());
        let asked = registered(sim, request)?;
        sim.until(REPORTED, |sim| {
            status(sim, asked) == Some(EvalStatus::Complete)
        })?;
        let blocked = evaluation(sim, asked).and_then(|eval| eval.blocked_eval);
        sim.deregister("fast", false);
        let canceled =
            |sim: &Sim| blocked.and_then(|id| status(sim, id)) == Some(EvalStatus::Canceled);
        sim.until(SOON, canceled)?;
        sim.converge()
    });
}

/// The devices of a plugin that is yet to be found may be what a job lacks.
#[test]
fn job_is_not_unplaceable_before_all_fingerprints() {
    for_seeds(60, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::HangNews], 1000).budget(1000);
        sim.restart()?;
        let request = sim.register(&service("fast", [task("main").devices("fpga", 1)]));
        let id = registered(sim, request)?;
        sim.run(Span::secs(30))?;
        sim.expect_that(
            status(sim, id) == Some(EvalStatus::Pending),
            "nobody reported",
        )?;
        let done = |sim: &Sim| status(sim, id) == Some(EvalStatus::Complete);
        sim.until(REPORTED, done)?;
        let failed = evaluation(sim, id).is_some_and(|eval| !eval.failed_groups.is_empty());
        sim.expect_that(failed, "the plugin had its time")?;
        sim.run_until_quiescent()?;
        sim.expect_that(sim.runs("fast", "main"), "the device is there")
    });
}

/// A service whose task fails after two seconds, and which is replaced after a minute.
fn failing() -> Job {
    let main =
        task("main")
            .ends("2s", 1)
            .restarts(0, Span::secs(60), Span::secs(1), RestartMode::Fail);
    job(
        "web",
        JobType::Service,
        [group("g", [main]).reschedules(1, Span::secs(60))],
    )
}

/// The evaluation of a failed allocation of `web`, and when that failed.
fn follow_up(sim: &Sim) -> Option<(Arc<Evaluation>, Timestamp)> {
    let view = sim.view()?;
    let mut allocs = view.allocs();
    allocs.find_map(|alloc| {
        let eval = view.eval(view.follow_up(alloc.record())?)?;
        Some((eval.clone(), alloc.record().modify_time))
    })
}

#[test]
fn failed_alloc_has_evaluation_that_waits_and_makes_its_replacement() {
    for_seeds(60, |sim| {
        sim.register(&failing());
        sim.until(SOON, |sim| follow_up(sim).is_some())?;
        let Some((waiting, failed)) = follow_up(sim) else {
            return sim.expect_that(false, "it waits");
        };
        let until = waiting.follow_up.as_ref().map(|it| it.wait_until);
        let waits = waiting.is_waiting() && waiting.trigger == Trigger::AllocFailure;
        sim.expect_that(waits, &format!("{waiting:?}"))?;
        // What is not saved yet is made anew.
        sim.run(Span::secs(5))?;
        sim.restart()?;
        sim.until(SOON, |sim| follow_up(sim).is_some())?;
        let now = follow_up(sim).map(|(eval, _)| eval.id).unwrap_or_default();
        if sim.seed() == BENIGN {
            let wanted = Some(failed + Span::secs(60));
            sim.expect_that(until == wanted, &format!("{until:?}, not {wanted:?}"))?;
            sim.expect_that(now == waiting.id, "it is the same in the next life")?;
        }
        sim.until(REPORTED, |sim| sim.allocs("web").len() == 2)?;
        let made = |alloc: &&AllocRunner| alloc.record().eval == now;
        let made = sim.allocs("web").into_iter().filter(made).count();
        sim.expect_that(made == 1, "it made the replacement")?;
        let now = status(sim, now);
        sim.expect_that(now == Some(EvalStatus::Complete), &format!("{now:?}"))
    });
}

#[test]
fn evaluation_of_failed_alloc_is_canceled_when_its_job_is_stopped() {
    for_seeds(60, |sim| {
        sim.register(&failing());
        sim.until(SOON, |sim| follow_up(sim).is_some())?;
        let waiting = follow_up(sim).map(|(eval, _)| eval.id).unwrap_or_default();
        sim.deregister("web", false);
        let canceled = |sim: &Sim| status(sim, waiting) == Some(EvalStatus::Canceled);
        sim.until(SOON, canceled)?;
        sim.converge()
    });
}

/// A dead job is gone in the moment in which its purge is asked for, and `nomad job stop -purge` then asks what became
/// of that.
#[test]
fn evaluation_of_a_purge_outlives_the_job() {
    for_seeds(60, |sim| {
        sim.register(&batch("sum", [task("main").ends("1s", 0)]));
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
        let request = sim.deregister("sum", true);
        sim.until(SOON, |sim| sim.reply(request).is_some())?;
        let Some(Reply::Stopping { eval: Some(id), .. }) = sim.reply(request).cloned() else {
            return sim.expect_that(false, "an evaluation");
        };
        let gone = |sim: &Sim| sim.view().is_some_and(|view| view.jobs().next().is_none());
        sim.until(SOON, gone)?;
        let complete = |sim: &Sim| status(sim, id) == Some(EvalStatus::Complete);
        sim.expect_that(complete(sim), "it is complete")?;
        sim.restart()?;
        sim.expect_that(complete(sim), "also for the next agent")?;
        sim.until(SOON, gone)?;
        sim.ask(CollectGarbage);
        sim.until(SOON, |sim| status(sim, id).is_none())
    });
}

/// More copies than evaluations are kept of their job.
#[test]
fn each_of_many_failed_allocs_is_replaced_by_its_own_evaluation() {
    for_seeds(1, |sim| {
        let mut job = failing();
        job.task_groups[0].count = Some(14);
        sim.register(&job);
        sim.until(REPORTED, |sim| sim.allocs("web").len() == 28)?;
        let Some(view) = sim.view() else {
            return sim.expect_that(false, "it lives");
        };
        let allocs = || view.allocs().map(AllocRunner::record);
        let own = |alloc: &&Arc<AllocRecord>| {
            let eval = view.eval(alloc.eval);
            let follow_up = eval.and_then(|eval| eval.follow_up.as_ref());
            alloc.previous.is_some() && follow_up.map(|it| it.alloc) == alloc.previous
        };
        let (own, kept) = (allocs().filter(own).count(), KEPT_EVALS);
        sim.expect_that(own >= kept, &format!("{own} of the last {kept}"))?;
        let evals: BTreeSet<EvalId> = allocs().map(|alloc| alloc.eval).collect();
        let count = evals.len();
        sim.expect_that(
            count == 15,
            &format!("{count}: the first, and each its own"),
        )
    });
}
