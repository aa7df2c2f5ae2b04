//! How jobs are taken in and placed, as somebody sets it while the agent runs.

use drover_core::agent::requests::{ScaleJob, SetScheduler};
use drover_core::config::Preemption;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::JobKey;
use drover_core::model::job::{Job, JobType};
use drover_core::model::scheduler::SchedulerConfig;
use drover_core::model::value::Value;
use drover_core::time::Span;
use drover_io_sim::{Sim, Violation};
use drover_sim_tests::build::{GroupExt, group, job, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

fn service(name: &str, priority: i64) -> Job {
    let on_port = group("g", [task(name)]).static_port("http", 8080);
    let mut service = job(name, JobType::Service, [on_port]);
    service.priority = priority;
    service
}

/// Nobody may preempt.
fn peaceful() -> SchedulerConfig {
    SchedulerConfig {
        preemption: Preemption {
            system: false,
            ..Preemption::default()
        },
        ..SchedulerConfig::default()
    }
}

fn services_preempt() -> SchedulerConfig {
    SchedulerConfig {
        preemption: Preemption {
            service: true,
            ..Preemption::default()
        },
        ..SchedulerConfig::default()
    }
}

fn rejecting() -> SchedulerConfig {
    SchedulerConfig {
        reject_job_registration: true,
        ..SchedulerConfig::default()
    }
}

/// The index that is answered; 0 where nothing was done.
fn set(
    sim: &mut Sim,
    config: SchedulerConfig,
    expect_index: Option<u64>,
) -> Result<u64, Violation> {
    let request = sim.ask(SetScheduler {
        config,
        expect_index,
    });
    sim.until(SOON, |sim| sim.reply(request).is_some())?;
    match sim.reply(request) {
        Some(Reply::NodeChanged { index, .. }) => Ok(*index),
        other => {
            let words = format!("{other:?}");
            sim.expect_that(false, &words).map(|()| 0)
        }
    }
}

#[test]
fn job_that_may_preempt_now_is_placed() {
    for_seeds(60, |sim| {
        set(sim, peaceful(), None)?;
        sim.register(&service("low", 30));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.register(&service("web", 80));
        sim.run(SOON)?;
        sim.expect_that(!sim.runs("web", "web"), "nobody preempts")?;
        set(sim, services_preempt(), None)?;
        sim.until(SOON, |sim| sim.runs("web", "web"))?;
        sim.expect_that(sim.living("low") == 0, "the port is the other one's")?;
        sim.converge()
    });
}

#[test]
fn rejected_job_is_not_registered_until_that_ends() {
    for_seeds(40, |sim| {
        sim.register(&service("low", 30));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        set(sim, rejecting(), None)?;
        sim.restart()?;
        let mut other = service("other", 50);
        other.task_groups[0].networks.clear();
        let request = sim.register(&other);
        sim.until(SOON, |sim| sim.reply(request).is_some())?;
        let scale = sim.ask(ScaleJob {
            job: JobKey::local("low"),
            group: "g".into(),
            count: Some(2),
            message: "".into(),
            error: false,
            meta: Value::Null,
            expect_index: None,
        });
        sim.until(SOON, |sim| sim.reply(scale).is_some())?;
        for asked in [request, scale] {
            let reply = sim.reply(asked).cloned();
            let refused = matches!(reply, Some(Reply::Refused(Refusal::Forbidden(_))));
            sim.expect_that(refused, &format!("{reply:?}"))?;
        }
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        sim.deregister("low", false);
        sim.until(SOON, |sim| sim.living("low") == 0)?;
        set(sim, peaceful(), None)?;
        sim.register(&other);
        sim.until(SOON, |sim| sim.runs("other", "other"))?;
        sim.converge()
    });
}

#[test]
fn settings_change_only_at_the_expected_index() {
    for_seeds(10, |sim| {
        let first = set(sim, peaceful(), Some(0))?;
        sim.expect_that(first > 0, "nobody had set them")?;
        let late = set(sim, services_preempt(), Some(0))?;
        sim.expect_that(late == 0, "somebody had")?;
        let known = sim.view().map(|view| view.scheduler_config());
        let kept = known.is_some_and(|it| it.config == peaceful() && it.modify_index == first);
        sim.expect_that(kept, &format!("{known:?}"))?;
        let again = set(sim, peaceful(), Some(first))?;
        sim.expect_that(again == first, "the same settings are no change")?;
        let second = set(sim, services_preempt(), Some(first))?;
        sim.restart()?;
        let known = sim.view().map(|view| view.scheduler_config());
        let kept = known.is_some_and(|it| (it.create_index, it.modify_index) == (first, second));
        sim.expect_that(kept, &format!("{known:?}"))?;
        sim.converge()
    });
}

#[test]
fn agent_dies_at_any_step_of_setting_the_scheduler() {
    let crashes = each_crash(3, |sim| {
        sim.register(&service("low", 30));
        sim.run(SOON)?;
        sim.ask(SetScheduler {
            config: services_preempt(),
            expect_index: None,
        });
        sim.register(&service("web", 80));
        sim.run(Span::secs(120))?;
        sim.converge()?;
        let known = sim.view().map(|view| view.scheduler_config());
        let kept = known.is_some_and(|it| it.config == services_preempt());
        sim.expect_that(kept, &format!("{known:?}"))?;
        sim.expect_that(sim.runs("web", "web"), "it may preempt")?;
        sim.expect_that(sim.living("low") == 0, "the port is the other one's")
    });
    assert!(crashes > 5, "{crashes}");
}

/// What a start is given is checked by the property `start_is_that_of_job_file`.
#[test]
fn memory_max_is_not_given_where_it_does_not_count() {
    for_seeds(10, |sim| {
        let config = SchedulerConfig {
            memory_oversubscription: false,
            ..SchedulerConfig::default()
        };
        set(sim, config, None)?;
        sim.restart()?;
        let mut hungry = service("hungry", 50);
        hungry.task_groups[0].tasks[0].resources.memory_max_mb = 4096;
        sim.register(&hungry);
        sim.run(Span::secs(60))?;
        sim.expect_that(
            sim.runs("hungry", "hungry"),
            "it runs within what it reserved",
        )?;
        sim.converge()
    });
}
