//! What queries answer, and what becomes of requests that suppose too much.

use drover_core::agent::Input;
use drover_core::agent::requests::{Register, RestartScope};
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{JobKey, RequestId};
use drover_core::input::{HookInput, HookOutput, ShutdownMode};
use drover_core::model::alloc::{ClientStatus, TaskLife};
use drover_core::model::eval::{DeploymentStatus, Trigger};
use drover_core::model::event::EventType;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartPolicy;
use drover_core::op::Op;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{TaskExt, arc, batch, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use serde::Serialize;

fn status(sim: &Sim, job: &str) -> &'static str {
    sim.view().map_or("unknown", |view| {
        view.job_status(&JobKey::local(job)).as_str()
    })
}

/// Registers a job if it still has this index.
fn expecting(sim: &mut Sim, job: &Job, index: u64) -> Result<Reply, Violation> {
    let request = sim.ask(Register {
        job: arc(job),
        expect_index: Some(index),
        submission: None,
    });
    answered(sim, request)
}

fn answered(sim: &mut Sim, request: RequestId) -> Result<Reply, Violation> {
    sim.until(SOON, |sim| sim.reply(request).is_some())?;
    let reply = sim.reply(request).cloned();
    reply.ok_or_else(|| Violation::new("scenario_expectation_holds", "an answer"))
}

fn conflict(reply: &Reply, words: &str) -> bool {
    matches!(reply, Reply::Refused(Refusal::Conflict(why)) if why.ends_with(words))
}

#[test]
fn job_status_is_running_then_dead() {
    for_seeds(100, |sim| {
        sim.expect_that(status(sim, "sum") == "dead", "nobody knows it")?;
        sim.register(&batch("sum", [task("main").ends("20s", 0)]));
        sim.until(SOON, |sim| sim.runs("sum", "main"))?;
        sim.expect_that(status(sim, "sum") == "running", "it runs")?;
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
        sim.expect_that(status(sim, "sum") == "dead", "it is over")?;
        sim.register(&service("fast", [task("main").devices("nowhere/none", 1)]));
        sim.until(SOON, |sim| status(sim, "fast") == "pending")?;
        sim.deregister("fast", false);
        sim.until(SOON, |sim| status(sim, "fast") == "dead")?;
        sim.converge()
    });
}

#[test]
fn enforced_index_guards_job_change() {
    for_seeds(60, |sim| {
        let mut web = service("web", [task("main")]);
        let reply = expecting(sim, &web, 7)?;
        sim.expect_that(conflict(&reply, "job does not exist"), "not there yet")?;
        let Reply::Registered {
            eval: Some(eval),
            job_index,
            ..
        } = expecting(sim, &web, 0)?
        else {
            return sim.expect_that(false, "it is new");
        };
        let known = sim.view().is_some_and(|view| {
            view.eval(eval).is_some() && view.evals().any(|known| known.id == eval)
        });
        sim.expect_that(known, "its evaluation can be looked at")?;
        let reply = expecting(sim, &web, 0)?;
        sim.expect_that(conflict(&reply, "job already exists"), "no more new")?;
        let reply = expecting(sim, &web, job_index + 1)?;
        let words = format!("conflicting job modify index: {job_index}");
        sim.expect_that(conflict(&reply, &words), "another index")?;
        web.priority = 70;
        let reply = expecting(sim, &web, job_index)?;
        sim.expect_that(matches!(reply, Reply::Registered { .. }), "its index")?;
        sim.converge()
    });
}

/// Nomad's agents make no new version of a job that is the same.
#[test]
fn unchanged_registration_keeps_version() {
    for_seeds(60, |sim| {
        let web = service("web", [task("main")]);
        let mut indexes = Vec::new();
        for _ in 0..2 {
            let request = sim.register(&web);
            let Reply::Registered { job_index, .. } = answered(sim, request)? else {
                return sim.expect_that(false, "registered");
            };
            indexes.push(job_index);
        }
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let version = |sim: &Sim| {
            let view = sim.view()?;
            Some(view.job(&JobKey::local("web"))?.job.version)
        };
        sim.expect_that(indexes[0] == indexes[1], "the same index")?;
        sim.expect_that(version(sim) == Some(0), "the same version")?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.expect_that(version(sim) == Some(1), "stopped and begun anew")?;
        sim.converge()
    });
}

/// While its tasks are stopped for its own end, an agent takes nothing in.
#[test]
fn shutting_down_agent_refuses_requests() {
    for_seeds(60, |sim| {
        sim.register(&service("web", [task("main").with("kill_after", "3s")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.shutdown(ShutdownMode::StopTasks);
        sim.until(SOON, |sim| {
            sim.view().is_some_and(|view| view.shutdown().is_some())
        })?;
        let request = sim.register(&service("late", [task("main")]));
        sim.until(SOON, |sim| sim.reply(request).is_some() || sim.stopped)?;
        let reply = sim.reply(request).cloned();
        let refused = reply.is_none_or(|reply| conflict(&reply, "the agent is shutting down"));
        sim.expect_that(refused, "nothing is taken in")?;
        sim.expect_that(sim.allocs("late").is_empty(), "nothing is placed")
    });
}

/// Allocations' versions are kept as long as they run, and the last six for people, the latest included.
#[test]
fn last_six_versions_are_kept() {
    for_seeds(20, |sim| {
        let mut web = service("web", [task("main")]);
        for priority in 50..60 {
            web.priority = priority;
            let request = sim.register(&web);
            answered(sim, request)?;
        }
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let kept = |sim: &Sim| -> Vec<u64> {
            let view = sim.view();
            let job = view.and_then(|view| view.job(&JobKey::local("web")).cloned());
            let versions = job.into_iter().flat_map(|job| job.versions.clone());
            versions.map(|version| version.version).collect()
        };
        sim.expect_that(kept(sim) == [4, 5, 6, 7, 8], "six of ten")?;
        sim.converge()
    });
}

#[test]
fn restart_of_running_tasks_is_done() {
    for_seeds(60, |sim| {
        sim.register(&service("web", [task("main"), task("other")]));
        sim.until(SOON, |sim| {
            sim.runs("web", "main") && sim.runs("web", "other")
        })?;
        let Some(request) = sim.restart_tasks("web", RestartScope::Running) else {
            return sim.expect_that(false, "there is one");
        };
        let reply = answered(sim, request)?;
        sim.expect_that(matches!(reply, Reply::Done { .. }), "it is done")?;
        sim.until(SOON, |sim| sim.world.starts_of("other") == 2)?;
        sim.converge()
    });
}

/// Whoever looks at the counters sees that somebody does not answer.
#[test]
fn overdue_operation_is_counted() {
    for_seeds(20, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::HangProbe], 1000).budget(1000);
        sim.restart()?;
        sim.run(Span::secs(100))?;
        let overdue = sim.view().map_or(0, |view| view.counters().overdue);
        sim.expect_that(overdue > 0, "counted")
    });
}

fn word(value: impl Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}

/// The API and the records have the same words.
#[test]
fn json_names_match_display_names() {
    for life in [TaskLife::Pending, TaskLife::Running, TaskLife::Dead] {
        assert_eq!(life.as_str(), word(life));
    }
    for kind in [
        JobType::Service,
        JobType::Batch,
        JobType::System,
        JobType::Sysbatch,
    ] {
        assert_eq!(kind.as_str(), word(kind));
    }
    for trigger in [
        Trigger::JobRegister,
        Trigger::JobDeregister,
        Trigger::AllocStop,
        Trigger::AllocFailure,
        Trigger::DeploymentWatcher,
        Trigger::Preemption,
    ] {
        assert_eq!(trigger.as_str(), word(trigger));
    }
    for status in [
        DeploymentStatus::Running,
        DeploymentStatus::Successful,
        DeploymentStatus::Failed,
        DeploymentStatus::Cancelled,
    ] {
        assert_eq!(status.as_str(), word(status));
    }
}

/// An answer that nobody awaits is counted, and changes nothing.
#[test]
fn unrequested_hook_answer_is_stale() {
    for_seeds(20, |sim| {
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let stale = |sim: &Sim| sim.view().map_or(0, |view| view.counters().stale);
        let Some(alloc) = sim.live("web").map(|alloc| alloc.record().id) else {
            return sim.expect_that(false, "it lives");
        };
        let before = stale(sim);
        for (op, task) in [(Op(u64::MAX), None), (Op(u64::MAX), Some("main".into()))] {
            sim.send_raw(Input::Hook(HookInput {
                op,
                alloc,
                task,
                result: Ok(HookOutput::default()),
            }));
        }
        sim.run(Span::secs(1))?;
        sim.expect_that(stale(sim) == before + 2, "both are counted")?;
        sim.converge()
    });
}

#[test]
fn terminated_event_has_all_details() {
    for_seeds(20, |sim| {
        sim.register(&batch("sum", [task("main").ends("2s", 0)]));
        sim.until(SOON, |sim| sim.all_over("sum", ClientStatus::Complete))?;
        let events = sim.task("sum", "main").map(|task| &task.state().events);
        let ends = events.into_iter().flatten();
        let ends = ends.filter(|event| event.kind == EventType::Terminated);
        let words: Vec<&str> = ends.map(|event| event.display_message.as_str()).collect();
        sim.expect_that(words == ["Exit Code: 0"], &format!("{words:?}"))
    });
}

/// Whoever asks why a task does not run is told what it waits for, until when, what happens then, and how many
/// starts are left.
#[test]
fn explanation_names_wait_and_restarts_left() {
    for_seeds(60, |sim| {
        let mut fragile = service("web", [task("main").ends("1s", 1)]);
        fragile.task_groups[0].restart_policy = Some(RestartPolicy {
            attempts: Some(2),
            interval: Some(Span::secs(600)),
            delay: Some(Span::secs(20)),
            ..RestartPolicy::default()
        });
        sim.register(&fragile);
        let explained = |sim: &Sim| {
            let view = sim.view()?;
            let job = view.explain_job(sim.world.now(), &JobKey::local("web"))?;
            job.allocs.first()?.tasks.first().cloned()
        };
        let pauses = |sim: &Sim| {
            let waiting = explained(sim).and_then(|task| task.waiting);
            waiting.is_some_and(|one| one.what == "the end of its restart delay")
        };
        sim.until(SOON, pauses)?;
        let now = sim.world.now().wall;
        let Some(task) = explained(sim) else {
            return sim.expect_that(false, "it is explained");
        };
        let waiting = task.waiting.as_ref();
        let left = waiting.and_then(|one| Some(one.until? - now));
        let in_time = left.is_some_and(|left| Span::ZERO < left && left <= Span::secs(25));
        sim.expect_that(in_time, "the delay and a quarter at most")?;
        sim.expect_that(
            waiting.is_some_and(|one| one.then == "it starts again"),
            "then",
        )?;
        let restarts = task.restarts.map(|left| (left.left, left.attempts));
        sim.expect_that(restarts == Some((1, 2)), "one of two is left")?;
        let last = task.last.map(|event| event.kind);
        sim.expect_that(last == Some(EventType::Restarting), "the last event")?;
        sim.deregister("web", false);
        sim.converge()
    });
}
