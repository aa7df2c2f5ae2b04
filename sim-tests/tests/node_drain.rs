//! A node that takes nothing new, and one that is emptied.

use std::collections::BTreeMap;

use drover_core::agent::requests::{SetEligibility, UpdateDrain};
use drover_core::agent::{JobWait, Wait};
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::JobKey;
use drover_core::input::ShutdownMode;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::drain::{DrainDeadline, DrainSpec, DrainStatus, Eligibility};
use drover_core::model::eval::{EvalStatus, Trigger};
use drover_core::model::job::{Job, JobType};
use drover_core::model::placement::PlacementFailure;
use drover_core::model::value::Value;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{EVER, GroupExt, TaskExt, group, job, task};
use drover_sim_tests::inspect::{Inspect, SOON, ask};
use drover_sim_tests::{Scenario, each_crash, for_seeds};

/// A service of so many copies, of which so many are drained at a time.
fn web(count: i64, parallel: i64) -> Job {
    let mut group = group("g", [task("main")]);
    group.count = Some(count);
    let parallel = ("MaxParallel".to_owned(), Value::Int(parallel));
    group.migrate = Some(Value::Map(BTreeMap::from([parallel])));
    job("web", JobType::Service, [group])
}

fn batch(run_for: &str) -> Job {
    let group = group("g", [task("work").ends(run_for, 0)]).never_again();
    job("batch", JobType::Batch, [group])
}

fn system() -> Job {
    job("system", JobType::System, [group("g", [task("daemon")])])
}

fn drain(deadline: DrainDeadline) -> UpdateDrain {
    UpdateDrain {
        spec: Some(DrainSpec {
            deadline,
            ignore_system_jobs: false,
        }),
        mark_eligible: true,
        meta: BTreeMap::from([("message".to_owned(), "new disks".to_owned())]),
    }
}

fn no_drain(mark_eligible: bool) -> UpdateDrain {
    UpdateDrain {
        spec: None,
        mark_eligible,
        meta: BTreeMap::new(),
    }
}

fn set(eligibility: Eligibility) -> SetEligibility {
    SetEligibility { eligibility }
}

fn status(sim: &Sim) -> Option<DrainStatus> {
    let node = sim.view()?.node_record();
    node.last_drain.as_ref().map(|last| last.status)
}

fn blocked(sim: &Sim, id: &str) -> Option<PlacementFailure> {
    let blocked = sim.view()?.blocked(&JobKey::local(id));
    blocked.first().map(|(_, why)| why.clone())
}

fn quiet(sim: &mut Sim) {
    sim.world.scene.faults = Faults::none();
}

#[test]
fn ineligible_node_takes_nothing_until_it_is_eligible() {
    for_seeds(40, |sim| {
        sim.register(&web(1, 1));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        ask(sim, set(Eligibility::Ineligible))?;
        sim.register(&batch("1s"));
        sim.run(SOON)?;
        let why = blocked(sim, "batch");
        let right = why == Some(PlacementFailure::Ineligible);
        sim.expect_that(right, &format!("the reason is known: {why:?}"))?;
        sim.expect_that(sim.allocs("batch").is_empty(), "nothing is placed")?;
        sim.expect_that(sim.runs("web", "main"), "what runs goes on")?;
        let reply = ask(sim, set(Eligibility::Eligible))?;
        let Some(Reply::NodeChanged { evals, .. }) = reply else {
            return sim.expect_that(false, "it is answered");
        };
        let eval = evals.first().copied();
        let eval = eval.and_then(|id| sim.view()?.eval(id));
        let trigger = eval.map(|eval| eval.trigger);
        sim.expect_that(trigger == Some(Trigger::NodeUpdate), "it is evaluated")?;
        sim.until(SOON, |sim| sim.all_over("batch", ClientStatus::Complete))?;
        sim.converge()
    });
}

#[test]
fn repeated_eligibility_request_changes_nothing() {
    for_seeds(5, |sim| {
        quiet(sim);
        let same = Some(Reply::NodeChanged {
            evals: vec![],
            eval_index: 0,
            index: 0,
        });
        let reply = ask(sim, set(Eligibility::Eligible))?;
        sim.expect_that(reply == same, &format!("it is eligible: {reply:?}"))?;
        ask(sim, set(Eligibility::Ineligible))?;
        let reply = ask(sim, set(Eligibility::Ineligible))?;
        sim.expect_that(reply == same, &format!("it is ineligible: {reply:?}"))?;
        sim.converge()
    });
}

#[test]
fn drained_node_is_empty_and_jobs_come_back() {
    for_seeds(60, |sim| {
        sim.register(&web(3, 1));
        sim.register(&system());
        sim.until(SOON, |sim| sim.world.alive().count() == 4)?;
        ask(sim, drain(DrainDeadline::After(Span::secs(3600))))?;
        sim.until(SOON, |sim| status(sim) == Some(DrainStatus::Complete))?;
        sim.expect_that(sim.world.alive().count() == 0, "nothing is left")?;
        sim.expect_that(
            blocked(sim, "web") == Some(PlacementFailure::Ineligible),
            "its job waits for the node",
        )?;
        ask(sim, set(Eligibility::Eligible))?;
        sim.until(SOON, |sim| sim.world.alive().count() == 4)?;
        sim.converge()?;
        sim.expect_that(sim.world.alive().count() == 4, "they stay")
    });
}

/// Each copy takes two seconds to end.
#[test]
fn services_are_drained_in_turns() {
    for_seeds(20, |sim| {
        quiet(sim);
        let mut slow = web(4, 2);
        slow.task_groups[0].tasks[0] = task("main").with("kill_after", "2s");
        sim.register(&slow);
        sim.until(SOON, |sim| sim.living("main") == 4)?;
        ask(sim, drain(DrainDeadline::After(Span::secs(3600))))?;
        sim.run(Span::secs(1))?;
        let reported = |sim: &Sim| {
            let allocs = sim.allocs("web").into_iter();
            allocs.filter(|alloc| alloc.record().drained).count()
        };
        sim.expect_that(reported(sim) == 2, "two at a time")?;
        sim.until(Span::secs(10), |sim| reported(sim) == 3)?;
        sim.expect_that(sim.living("main") <= 3, "the next when one of them is gone")?;
        sim.until(SOON, |sim| status(sim) == Some(DrainStatus::Complete))?;
        sim.converge()
    });
}

#[test]
fn batch_job_runs_to_its_end_and_system_job_ends_last() {
    for_seeds(40, |sim| {
        quiet(sim);
        sim.register(&batch("100s"));
        sim.register(&system());
        sim.until(SOON, |sim| sim.world.alive().count() == 2)?;
        ask(sim, drain(DrainDeadline::Never))?;
        sim.run(Span::secs(50))?;
        sim.expect_that(sim.world.alive().count() == 2, "both go on")?;
        sim.until(Span::secs(120), |sim| {
            status(sim) == Some(DrainStatus::Complete)
        })?;
        let complete = sim.all_over("batch", ClientStatus::Complete);
        sim.expect_that(complete, "it came to its end")?;
        sim.expect_that(blocked(sim, "batch").is_none(), "and is not run again")?;
        sim.converge()
    });
}

#[test]
fn deadline_ends_what_is_left() {
    for_seeds(40, |sim| {
        sim.register(&batch(EVER));
        sim.register(&system());
        sim.until(SOON, |sim| sim.world.alive().count() == 2)?;
        ask(sim, drain(DrainDeadline::After(Span::secs(300))))?;
        sim.run(Span::secs(100))?;
        sim.expect_that(sim.runs("batch", "work"), "it is not over yet")?;
        sim.until(Span::secs(600), |sim| {
            status(sim) == Some(DrainStatus::Complete)
        })?;
        let why = blocked(sim, "batch");
        let waits = why == Some(PlacementFailure::Ineligible);
        sim.expect_that(waits, &format!("it is run again later: {why:?}"))?;
        ask(sim, no_drain(true))?;
        sim.until(SOON, |sim| sim.runs("batch", "work"))?;
        let complete = status(sim) == Some(DrainStatus::Complete);
        sim.expect_that(complete, "nothing was called off")?;
        sim.converge()
    });
}

/// Who gives a drain another five minutes gives them from then on, not from when the drain began.
#[test]
fn changed_drain_counts_its_deadline_from_the_change() {
    for_seeds(40, |sim| {
        sim.register(&batch(EVER));
        sim.until(SOON, |sim| sim.runs("batch", "work"))?;
        ask(sim, drain(DrainDeadline::After(Span::secs(300))))?;
        sim.run(Span::secs(200))?;
        ask(sim, drain(DrainDeadline::After(Span::secs(301))))?;
        sim.run(Span::secs(200))?;
        sim.expect_that(sim.runs("batch", "work"), "it is not over yet")?;
        sim.until(Span::secs(300), |sim| {
            status(sim) == Some(DrainStatus::Complete)
        })?;
        sim.converge()
    });
}

#[test]
fn forced_drain_waits_for_nobody() {
    for_seeds(20, |sim| {
        quiet(sim);
        sim.register(&web(3, 1));
        sim.register(&batch(EVER));
        sim.until(SOON, |sim| sim.world.alive().count() == 4)?;
        ask(sim, drain(DrainDeadline::Force))?;
        sim.until(Span::secs(5), |sim| sim.world.alive().count() == 0)?;
        sim.converge()
    });
}

#[test]
fn ignored_system_job_stays() {
    for_seeds(40, |sim| {
        sim.register(&web(1, 1));
        sim.register(&system());
        sim.until(SOON, |sim| sim.world.alive().count() == 2)?;
        let mut ignoring = drain(DrainDeadline::After(Span::secs(60)));
        if let Some(spec) = &mut ignoring.spec {
            spec.ignore_system_jobs = true;
        }
        ask(sim, ignoring)?;
        sim.until(SOON, |sim| status(sim) == Some(DrainStatus::Complete))?;
        sim.run(Span::secs(300))?;
        sim.expect_that(sim.runs("system", "daemon"), "it goes on")?;
        sim.converge()
    });
}

#[test]
fn node_that_drains_is_not_made_eligible() {
    for_seeds(10, |sim| {
        quiet(sim);
        sim.register(&batch(EVER));
        sim.until(SOON, |sim| sim.runs("batch", "work"))?;
        ask(sim, drain(DrainDeadline::Never))?;
        let reply = ask(sim, set(Eligibility::Eligible))?;
        let refused = matches!(reply, Some(Reply::Refused(Refusal::Conflict(_))));
        sim.expect_that(refused, &format!("{reply:?}"))?;
        let pending = sim.agent().map(|agent| agent.pending());
        let waits = pending.is_some_and(|pending| {
            let mut waits = pending.awaiting.iter();
            waits.any(|one| one.wait == Wait::Drain)
        });
        sim.expect_that(waits, "the drain is awaited")?;
        ask(sim, no_drain(false))?;
        sim.expect_that(status(sim) == Some(DrainStatus::Canceled), "called off")?;
        sim.register(&web(1, 1));
        sim.run(SOON)?;
        let why = blocked(sim, "web");
        let closed = why == Some(PlacementFailure::Ineligible);
        sim.expect_that(closed, &format!("it stays ineligible: {why:?}"))?;
        sim.expect_that(sim.runs("batch", "work"), "what runs goes on")?;
        ask(sim, set(Eligibility::Eligible))?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.converge()
    });
}

/// A replacement in steps does not end what it cannot replace.
#[test]
fn new_version_waits_while_the_node_is_ineligible() {
    for_seeds(20, |sim| {
        quiet(sim);
        sim.register(&web(1, 1));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        ask(sim, set(Eligibility::Ineligible))?;
        let mut newer = web(1, 1);
        newer.task_groups[0].tasks[0]
            .env
            .insert("A".to_owned(), "1".to_owned());
        sim.register(&newer);
        sim.run(SOON)?;
        sim.expect_that(sim.living("main") == 1, "the old one runs on")?;
        sim.expect_that(sim.allocs("web").len() == 1, "and nothing else")?;
        let evals = sim.view().into_iter().flat_map(|view| view.evals());
        let waiting = evals.filter(|eval| eval.status == EvalStatus::Blocked);
        sim.expect_that(waiting.count() == 1, "its evaluation is blocked")?;
        ask(sim, set(Eligibility::Eligible))?;
        sim.until(SOON, |sim| sim.allocs("web").len() == 2)?;
        sim.converge()
    });
}

/// The machine is off when the deadline comes.
#[test]
fn deadline_counts_while_no_agent_runs() {
    for_seeds(30, |sim| {
        quiet(sim);
        sim.register(&batch(EVER));
        sim.until(SOON, |sim| sim.runs("batch", "work"))?;
        ask(sim, drain(DrainDeadline::After(Span::secs(200))))?;
        sim.shutdown(ShutdownMode::KeepTasks);
        sim.run(Span::secs(150))?;
        sim.restart()?;
        sim.run(Span::secs(20))?;
        sim.expect_that(sim.runs("batch", "work"), "it has some time left")?;
        sim.run(Span::secs(60))?;
        sim.expect_that(sim.living("work") == 0, "its time was counted")?;
        sim.converge()
    });
}

/// Nothing else happens after the restart that would let anybody look at the drain.
#[test]
fn deadline_that_came_while_no_agent_ran_ends_what_is_left() {
    for_seeds(30, |sim| {
        quiet(sim);
        sim.register(&batch(EVER));
        sim.until(SOON, |sim| sim.runs("batch", "work"))?;
        ask(sim, drain(DrainDeadline::After(Span::secs(200))))?;
        sim.shutdown(ShutdownMode::KeepTasks);
        sim.run(Span::secs(250))?;
        sim.expect_that(sim.living("work") == 1, "nobody ends it meanwhile")?;
        sim.restart()?;
        sim.run(SOON)?;
        sim.expect_that(sim.living("work") == 0, "its time is over")?;
        sim.expect_that(status(sim) == Some(DrainStatus::Complete), "it is drained")?;
        sim.converge()
    });
}

#[test]
fn agent_dies_at_any_step_of_a_drain() {
    let crashes = each_crash(7, |sim| {
        drain_all(sim, DrainDeadline::After(Span::secs(60)))
    });
    assert!(crashes > 30, "{crashes}");
    let crashes = each_crash(8, |sim| drain_all(sim, DrainDeadline::Never));
    assert!(crashes > 30, "{crashes}");
}

fn drain_all(sim: &mut Sim, deadline: DrainDeadline) -> Scenario {
    sim.register(&web(2, 1));
    sim.register(&batch("30s"));
    sim.register(&system());
    sim.run(SOON)?;
    let request = sim.ask(drain(deadline));
    sim.run(Span::secs(200))?;
    let asked_again = sim.reply(request).is_none();
    sim.converge()?;
    sim.expect_that(
        status(sim) == Some(DrainStatus::Complete) || asked_again,
        "a drain never forgets",
    )?;
    sim.ask(set(Eligibility::Eligible));
    sim.converge()?;
    let waits = sim.agent().map(|agent| agent.pending());
    let waits = waits.into_iter().flat_map(|pending| pending.awaiting);
    let placed = !waits
        .map(|one| one.wait)
        .any(|wait| matches!(wait, Wait::Job(_, JobWait::Placement)));
    sim.expect_that(placed && sim.living("main") == 2, "they are back")
}

/// A timer that comes late delays the deadline and nothing else.
#[test]
fn drain_is_complete_though_timers_are_slow() {
    for_seeds(20, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::SlowTimer], 500).budget(5);
        sim.register(&batch(EVER));
        sim.until(SOON, |sim| sim.runs("batch", "work"))?;
        ask(sim, drain(DrainDeadline::After(Span::secs(30))))?;
        sim.until(Span::secs(300), |sim| {
            status(sim) == Some(DrainStatus::Complete)
        })?;
        sim.converge()
    });
}
