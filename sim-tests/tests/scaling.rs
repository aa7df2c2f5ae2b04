//! Scaling by hand: a new version with another count, within the bounds of its group.

use drover_core::agent::requests::ScaleJob;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::JobKey;
use drover_core::input::ShutdownMode;
use drover_core::model::job::{Job, JobType};
use drover_core::model::scaling::{MAX_EVENTS, ScalingPolicy};
use drover_core::model::value::Value;
use drover_core::time::Span;
use drover_io_sim::Sim;
use drover_sim_tests::build::{GroupExt, group, job, task};
use drover_sim_tests::inspect::{Inspect, SOON, ask_and_wait};
use drover_sim_tests::{Scenario, each_crash, for_seeds};

fn web() -> Job {
    let mut group = group("g", [task("main")]);
    group.scaling = Some(ScalingPolicy {
        min: Some(1),
        max: Some(3),
        ..ScalingPolicy::default()
    });
    job("web", JobType::Service, [group])
}

fn to(count: impl Into<Option<i64>>) -> ScaleJob {
    ScaleJob {
        job: JobKey::local("web"),
        group: "g".into(),
        count: count.into(),
        message: "busy".into(),
        error: false,
        meta: Value::Null,
        expect_index: None,
    }
}

fn events(sim: &Sim) -> Vec<(Option<i64>, i64)> {
    let record = sim.view().and_then(|view| view.job(&JobKey::local("web")));
    let events = record.and_then(|record| record.scaling_events.get(&"g".into()));
    let events = events.into_iter().flatten();
    events.map(|event| (event.count, event.previous)).collect()
}

fn expect_refused(sim: &mut Sim, what: ScaleJob, words: &str) -> Scenario {
    let reply = ask_and_wait(sim, what)?;
    let wanted = Reply::Refused(Refusal::Invalid(words.to_owned()));
    let right = reply.as_ref() == Some(&wanted);
    sim.expect_that(right, &format!("{words}, not {reply:?}"))
}

#[test]
fn scaled_group_runs_as_many_copies() {
    for_seeds(40, |sim| {
        sim.register(&web());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        ask_and_wait(sim, to(3))?;
        sim.until(SOON, |sim| sim.world.alive().count() == 3)?;
        ask_and_wait(sim, to(1))?;
        sim.until(SOON, |sim| sim.world.alive().count() == 1)?;
        ask_and_wait(sim, to(None))?;
        let kept = events(sim);
        let right = kept == [(Some(3), 1), (Some(1), 3), (None, 1)];
        sim.expect_that(right, &format!("{kept:?}"))?;
        let version = sim.view().and_then(|view| view.job(&JobKey::local("web")));
        let version = version.map(|record| record.job.version);
        sim.expect_that(version == Some(2), "a note makes no version")?;
        sim.converge()
    });
}

#[test]
fn count_out_of_bounds_is_refused_with_nomads_words() {
    for_seeds(10, |sim| {
        sim.register(&web());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let words = "group count was greater than scaling policy maximum: 99 > 3";
        expect_refused(sim, to(99), words)?;
        let words = "group count was less than scaling policy minimum: 0 < 1";
        expect_refused(sim, to(0), words)?;
        let elsewhere = ScaleJob {
            group: "nope".into(),
            ..to(2)
        };
        let words = "task group \"nope\" specified for scaling does not exist in job";
        expect_refused(sim, elsewhere, words)?;
        sim.expect_that(events(sim).is_empty(), "nothing happened")?;
        sim.converge()
    });
}

#[test]
fn job_is_not_scaled_while_it_is_rolled_out() {
    for_seeds(10, |sim| {
        let mut rolls = web();
        rolls.task_groups[0] = rolls.task_groups[0].clone().rolls(1);
        sim.register(&rolls);
        let request = sim.ask(to(2));
        sim.until(SOON, |sim| sim.reply(request).is_some())?;
        let words = "job scaling blocked due to active deployment".to_owned();
        let reply = sim.reply(request);
        let right = reply == Some(&Reply::Refused(Refusal::Invalid(words)));
        sim.expect_that(right, &format!("{reply:?}"))?;
        sim.run(Span::secs(60))?;
        let reply = ask_and_wait(sim, to(2))?;
        let done = matches!(reply, Some(Reply::Registered { .. }));
        sim.expect_that(done, "it is rolled out")?;
        sim.converge()
    });
}

#[test]
fn scaling_events_are_bounded() {
    for_seeds(3, |sim| {
        sim.register(&web());
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        for nth in 0..25 {
            ask_and_wait(sim, to(1 + nth % 3))?;
        }
        sim.expect_that(events(sim).len() == MAX_EVENTS, "the last of them")?;
        sim.converge()
    });
}

/// A note has an index of its own, which once was not saved.
#[test]
fn index_of_scaling_note_survives_shutdown() {
    for_seeds(20, |sim| {
        sim.register(&web());
        ask_and_wait(sim, to(None))?;
        sim.shutdown(ShutdownMode::KeepTasks);
        sim.run(Span::secs(60))?;
        sim.restart()?;
        sim.run(Span::secs(60))?;
        sim.expect_that(events(sim).len() == 1, "the note is there")?;
        sim.converge()
    });
}

#[test]
fn scaling_survives_crash_at_each_step() {
    let crashes = each_crash(5, |sim| {
        sim.register(&web());
        sim.run(Span::secs(60))?;
        ask_and_wait(sim, to(2))?;
        ask_and_wait(sim, to(None))?;
        sim.converge()?;
        let record = sim.view().and_then(|view| view.job(&JobKey::local("web")));
        let count = record.and_then(|record| record.job.task_groups[0].count);
        sim.expect_that(count == Some(2), &format!("{count:?}"))?;
        sim.expect_that(sim.living("main") == 2, "as many copies run")?;
        // Whoever was not told that it is done asked again.
        let kept = events(sim);
        let both = kept.first() == Some(&(Some(2), 1)) && kept.last() == Some(&(None, 2));
        sim.expect_that(both, &format!("{kept:?}"))
    });
    assert!(crashes > 10, "{crashes}");
}
