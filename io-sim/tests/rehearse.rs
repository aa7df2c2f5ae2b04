//! What a rehearsal measures, in runs whose plans are written by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use drover_core::model::canonical::canonicalize;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::{ReschedulePolicy, RestartMode, RestartPolicy};
use drover_core::model::task::Task;
use drover_core::time::Span;
use drover_io_sim::rehearse::{
    Block, Cause, Happening, Kind, MOST_TASKS, Outcome, Plan, Rehearsal, Trouble,
};
use drover_io_sim::task_faults::{FaultWindow, TaskFault};

const MINUTE: Span = Span::secs(60);
/// When trouble begins in these plans.
const BEGIN: Span = Span::secs(900);
/// What may pass between something and the next besides the pauses of policy: answers that come
/// some seconds late.
const SLACK: Span = Span::secs(20);

fn job(job_type: JobType, count: i64) -> Job {
    let group = TaskGroup {
        name: "app".to_owned(),
        count: Some(count),
        restart_policy: Some(RestartPolicy {
            attempts: Some(1),
            interval: Some(Span::secs(3600)),
            delay: Some(MINUTE),
            mode: Some(RestartMode::Fail),
            render_templates: None,
        }),
        reschedule_policy: Some(ReschedulePolicy {
            attempts: Some(0),
            unlimited: Some(false),
            ..ReschedulePolicy::default()
        }),
        tasks: vec![Task {
            name: "server".to_owned(),
            driver: "raw_exec".to_owned(),
            ..Task::default()
        }],
        ..TaskGroup::default()
    };
    let mut job = Job {
        id: "web".to_owned(),
        job_type,
        task_groups: vec![group],
        ..Job::default()
    };
    canonicalize(&mut job);
    job
}

fn ends() -> Happening {
    Happening::Ends {
        group: "app".to_owned(),
        task: "server".to_owned(),
        everywhere: false,
        code: 1,
    }
}

/// All of it is over ten minutes after the last of it began.
fn plan(happenings: Vec<(Span, Happening)>) -> Plan {
    let last = happenings.last().map_or(BEGIN, |(at, _)| *at);
    Plan {
        happenings,
        over: Span(last.0 + Span::secs(600).0),
        ..Plan::default()
    }
}

fn later(span: Span) -> Span {
    Span(BEGIN.0 + span.0)
}

/// Plays the plan under some seeds.
fn outcomes(job: &Job, plan: &Plan) -> Vec<Outcome> {
    let rehearsal = Rehearsal::new(job);
    let outcomes: Vec<Outcome> = (1..=20)
        .map(|seed| rehearsal.play(plan, seed, false))
        .collect();
    for outcome in &outcomes {
        assert_eq!(outcome.broken, None, "seed {}", outcome.seed);
        assert_eq!(outcome.disorder, [], "seed {}", outcome.seed);
    }
    outcomes
}

#[track_caller]
fn between(span: Span, least: Span, most: Span) {
    assert!(least <= span && span <= most, "{least} <= {span} <= {most}");
}

#[test]
fn crashed_task_is_down_for_restart_delay() {
    for count in [1, 3] {
        for outcome in outcomes(&job(JobType::Service, count), &plan(vec![(BEGIN, ends())])) {
            let group = &outcome.groups[0];
            between(group.first_up.unwrap(), Span::ZERO, SLACK);
            assert_eq!(group.worst_at, BEGIN, "one copy less is not whole");
            between(group.worst, MINUTE, Span(MINUTE.0 * 5 / 4 + SLACK.0));
            assert!(group.back_after.is_some());
            assert!(outcome.failed.is_empty());
        }
    }
}

#[test]
fn reboot_costs_no_restart_delay() {
    let reboot = plan(vec![(BEGIN, Happening::Reboot(Span::secs(300)))]);
    for outcome in outcomes(&job(JobType::Service, 1), &reboot) {
        let least = Span::secs(300);
        between(outcome.groups[0].worst, least, Span(least.0 + SLACK.0));
    }
}

#[test]
fn tasks_are_unaffected_by_agent_downtime() {
    let away = plan(vec![(BEGIN, Happening::AgentDown(Span::secs(600)))]);
    for outcome in outcomes(&job(JobType::Service, 2), &away) {
        assert_eq!(outcome.groups[0].worst, Span::ZERO);
        assert_eq!(outcome.groups[0].back_after, Some(Span::ZERO));
    }
}

#[test]
fn second_exit_exhausts_budget_of_one() {
    let twice = plan(vec![(BEGIN, ends()), (later(Span::secs(600)), ends())]);
    for outcome in outcomes(&job(JobType::Service, 1), &twice) {
        let group = &outcome.groups[0];
        assert_eq!(group.back_after, None);
        let late = group.late.as_ref().unwrap();
        assert_eq!(late.cause, Cause::Failed);
        assert_eq!(late.task.as_deref(), Some("server"));
        let (failed, times) = outcome.failed.iter().next().unwrap();
        assert_eq!((&*failed.task, *times), ("server", 1));
        assert!(failed.reason.starts_with("Exceeded allowed attempts 1"));
    }
}

#[test]
fn delay_mode_and_reschedule_delay_are_measured() {
    let twice = plan(vec![(BEGIN, ends()), (later(Span::secs(600)), ends())]);
    let mut patient = job(JobType::Service, 1);
    let policy = patient.task_groups[0].tasks[0].restart_policy.as_mut();
    policy.unwrap().mode = Some(RestartMode::Delay);
    for outcome in outcomes(&patient, &twice) {
        let group = &outcome.groups[0];
        assert_eq!(group.late.as_ref().unwrap().cause, Cause::Interval);
        between(group.worst, Span::secs(2900), Span::secs(3000 * 5 / 4));
        assert!(outcome.failed.is_empty());
    }
    let mut replaced = job(JobType::Service, 1);
    replaced.task_groups[0].reschedule_policy = None;
    canonicalize(&mut replaced);
    for outcome in outcomes(&replaced, &twice) {
        let group = &outcome.groups[0];
        assert!(group.back_after.is_some());
        assert_eq!(outcome.failed.len(), 1);
    }
}

#[test]
fn batch_job_is_healthy_when_complete() {
    let batch = job(JobType::Batch, 2);
    for outcome in outcomes(&batch, &plan(vec![(Span::secs(300), ends())])) {
        let group = &outcome.groups[0];
        between(group.worst, MINUTE, Span(MINUTE.0 * 5 / 4 + SLACK.0));
        assert!(group.back_after.is_some());
    }
    let long_after = plan(vec![(later(Span::secs(3600)), ends())]);
    for outcome in outcomes(&batch, &long_after) {
        assert_eq!(outcome.groups[0].worst, Span::ZERO);
        assert_eq!(outcome.groups[0].back_after, Some(Span::ZERO));
    }
}

#[test]
fn new_batch_version_runs_again() {
    let batch = job(JobType::Batch, 1);
    let renewed = plan(vec![(BEGIN, Happening::Renew)]);
    for outcome in outcomes(&batch, &renewed) {
        let group = &outcome.groups[0];
        between(group.worst, Span::ZERO, SLACK);
        assert!(group.back_after.is_some());
    }
    let in_vain = Plan {
        fault_windows: vec![FaultWindow {
            of: None,
            from: BEGIN,
            to: renewed.over,
            fault: TaskFault::CannotStart,
        }],
        ..renewed
    };
    for outcome in outcomes(&batch, &in_vain) {
        let group = &outcome.groups[0];
        assert_eq!(
            group.back_after, None,
            "what the version before did is another's"
        );
        assert_eq!(group.late.as_ref().unwrap().cause, Cause::Failed);
    }
}

#[test]
fn lost_work_is_not_counted() {
    let unsaved = plan(vec![
        (BEGIN, Happening::DiskFull(Span::secs(300))),
        (later(Span::secs(1)), Happening::Renew),
        (later(Span::secs(2)), Happening::Renew),
        (later(Span::secs(10)), Happening::AgentDown(Span::secs(30))),
    ]);
    for outcome in outcomes(&job(JobType::Batch, 1), &unsaved) {
        assert!(outcome.groups[0].back_after.is_some());
    }
}

#[test]
fn task_fault_applies_within_window_to_target() {
    let slow = |task: &str| Plan {
        fault_windows: vec![FaultWindow {
            of: Some(("app".to_owned(), task.to_owned())),
            from: BEGIN,
            to: later(Span::secs(600)),
            fault: TaskFault::StartsAfter(Span::secs(240)),
        }],
        ..plan(vec![(BEGIN, ends())])
    };
    let job = job(JobType::Service, 1);
    for outcome in outcomes(&job, &slow("server")) {
        let least = Span::secs(300);
        between(outcome.groups[0].worst, least, Span(least.0 + MINUTE.0));
    }
    for outcome in outcomes(&job, &slow("another")) {
        between(outcome.groups[0].worst, MINUTE, Span::secs(120));
    }
}

#[test]
fn same_seed_gives_same_run() {
    let rehearsal = Rehearsal::new(&job(JobType::Service, 2));
    for trouble in Trouble::ALL {
        let story = |seed| rehearsal.run(*trouble, seed, true).story;
        assert_eq!(story(7), story(7), "{}", trouble.name());
        assert!(!story(7).is_empty());
    }
}

#[test]
fn faults_end_when_planned() {
    let rehearsal = Rehearsal::new(&job(JobType::Service, 2));
    for trouble in Trouble::ALL {
        for seed in 1..100 {
            let plan = rehearsal.plan(*trouble, seed);
            assert!(plan.happenings.is_sorted_by_key(|(at, _)| *at));
            assert!(plan.happenings.iter().all(|(at, _)| *at <= plan.over));
            assert!(
                plan.fault_windows
                    .iter()
                    .all(|window| window.to <= plan.over)
            );
            for (at, happening) in &plan.happenings {
                if let Happening::DiskFull(span) | Happening::Reboot(span) = happening {
                    assert!(at.0 + span.0 <= plan.over.0);
                }
            }
        }
    }
}

#[test]
fn many_copies_are_sampled() {
    let rehearsal = Rehearsal::new(&job(JobType::Service, 5000));
    assert!(rehearsal.tasks() <= MOST_TASKS && rehearsal.tasks() > MOST_TASKS / 3);
    let left_out: Vec<_> = rehearsal.left_out().collect();
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0].2, 5000);
    let all = Rehearsal::new(&job(JobType::Service, 3));
    assert_eq!((all.tasks(), all.left_out().count()), (3, 0));
}

#[test]
fn finding_names_worst_typical_and_setting() {
    let job = job(JobType::Service, 1);
    let rehearsal = Rehearsal::new(&job);
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (seed, times) in [(1, 0), (2, 1), (3, 2)] {
        let ends = (0..times).map(|n| (later(Span::secs(600 * n)), ends()));
        outcomes.push(rehearsal.play(&plan(ends.collect()), seed, false));
    }
    let block = Block::of(&rehearsal, Trouble::CrashNowAndThen, &outcomes);
    let group = &block.groups[0];
    let worst = group.worst.unwrap();
    assert_eq!(worst.at, BEGIN);
    assert!(group.typical.unwrap() <= worst.down && group.typical.unwrap() >= MINUTE);
    assert_eq!((group.lost, group.count), (1, 1));
    assert!(block.is_bad());
    let finding = &block.findings[0];
    assert_eq!(
        (finding.kind, finding.seed, finding.runs),
        (Kind::Lost, 3, 1)
    );
    let texts: Vec<&str> = finding.settings.iter().map(|s| &*s.text).collect();
    let restart = r#"restart { attempts = 1, interval = "1h", delay = "1m", mode = "fail" }"#;
    let reschedule =
        r#"reschedule { attempts = 0, interval = "0s", delay = "30s", unlimited = false }"#;
    assert_eq!(texts, [restart, reschedule]);
    assert_eq!(finding.settings[0].paths[1], r#"group["app"].restart"#);
    let run_until_quiescent = Block::of(&rehearsal, Trouble::Nothing, &outcomes[..1]);
    assert!(!run_until_quiescent.is_bad() && run_until_quiescent.findings.is_empty());
}
