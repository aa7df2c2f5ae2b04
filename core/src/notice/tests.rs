//! What records say, and what of it is new.

use std::sync::Arc;

use super::Watch;
use super::facts::Told;
use crate::agent::{Agent, Input};
use crate::config::{Config, DiskUsageLimits};
use crate::effect::{Effect, NodeEffect, Notification};
use crate::ids::{AllocId, DeploymentId, JobKey, TaskName};
use crate::input::{DiskUsage, NodeInput};
use crate::model::alloc::{ClientStatus, DeploymentHealth, DesiredStatus, TaskLife, TaskState};
use crate::model::eval::{Deployment, DeploymentStatus};
use crate::model::event::{EventType, TaskEvent};
use crate::model::job::Job;
use crate::model::node::Node;
use crate::model::notice::{Event, Notice};
use crate::store::Saved;
use crate::store::record::{AllocRecord, JobRecord, TaskRecord};
use crate::time::{Instant, Now, Span, Timestamp};

const SECRET: &str = "s3cret";

fn alloc(change: impl FnOnce(&mut AllocRecord)) -> AllocRecord {
    let mut alloc = AllocRecord {
        id: AllocId(7),
        name: "web.g[0]".into(),
        job: JobKey::local("web"),
        group: "g".into(),
        modify_time: Timestamp(900),
        ..AllocRecord::default()
    };
    change(&mut alloc);
    alloc
}

fn event(kind: EventType, time: i64, message: &str) -> TaskEvent {
    TaskEvent::new(kind, Timestamp(time), message)
}

fn exit(time: i64, code: &str, oom: bool) -> TaskEvent {
    event(EventType::Terminated, time, SECRET)
        .detail("exit_code", code)
        .detail("signal", if oom { 9 } else { 0 })
        .detail("oom_killed", oom)
        .detail("exit_message", SECRET)
}

fn state(life: TaskLife, events: Vec<TaskEvent>) -> TaskState {
    let mut state = TaskState {
        state: life,
        ..TaskState::default()
    };
    events.into_iter().for_each(|one| state.push(Arc::new(one)));
    state
}

fn notices(alloc: &AllocRecord, state: &TaskState) -> Vec<Notice> {
    let name = TaskName::from("t");
    let told = Told {
        alloc,
        tasks: vec![(&name, state)],
    };
    told.facts().into_values().collect()
}

fn events(alloc: &AllocRecord, state: &TaskState) -> Vec<Event> {
    let notices = notices(alloc, state);
    notices.iter().map(|notice| notice.event).collect()
}

#[test]
fn failed_task_is_told_with_its_exit_and_the_policys_reason() {
    let decision = event(EventType::NotRestarting, 12, "Policy allows no restarts")
        .detail("restart_reason", "Policy allows no restarts")
        .fails_task();
    let state = state(TaskLife::Dead, vec![exit(11, "3", false), decision]);
    let alloc = alloc(|it| it.status = ClientStatus::Failed);
    let notices = notices(&alloc, &state);
    let [notice] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert_eq!((notice.event, notice.time), (Event::Failed, Timestamp(12)));
    assert_eq!(
        notice.exit.map(|exit| (exit.code, exit.signal)),
        Some((Some(3), 0))
    );
    let words = "Task \"t\" of web.g[0] failed: exit code 3; Policy allows no restarts";
    assert_eq!(notice.text, words);
    assert_eq!(notice.subject.task, Some("t".into()));
}

#[test]
fn task_that_will_run_again_did_not_fail() {
    let restarting = event(EventType::Restarting, 12, "Task restarting in 15s");
    let state = state(TaskLife::Pending, vec![exit(11, "3", false), restarting]);
    assert_eq!(events(&alloc(|_| {}), &state), []);
}

#[test]
fn each_oom_kill_is_told_though_the_task_runs_again() {
    let state = state(
        TaskLife::Running,
        vec![exit(11, "137", true), exit(20, "137", true)],
    );
    let notices = notices(&alloc(|_| {}), &state);
    let times = notices.iter().map(|notice| (notice.event, notice.time.0));
    let expected = [(Event::OomKilled, 11), (Event::OomKilled, 20)];
    assert!(times.eq(expected), "{notices:?}");
    assert!(
        notices
            .iter()
            .all(|it| it.exit.is_some_and(|exit| exit.signal == 9))
    );
}

#[test]
fn operators_restart_is_no_failed_check() {
    let asked = event(
        EventType::RestartSignaled,
        11,
        "User requested task to restart",
    );
    let checked = event(
        EventType::RestartSignaled,
        12,
        "healthcheck: check \"x\" unhealthy: no",
    );
    let state = state(TaskLife::Running, vec![asked, checked]);
    let notices = notices(&alloc(|_| {}), &state);
    let [notice] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert_eq!(
        (notice.event, notice.time),
        (Event::Unhealthy, Timestamp(12))
    );
}

#[test]
fn allocation_is_told_once_for_each_thing_that_it_says() {
    let running = state(TaskLife::Running, Vec::new());
    let unhealthy = alloc(|it| {
        let (healthy, timestamp) = (false, Timestamp(5));
        it.health = Some(DeploymentHealth { healthy, timestamp });
    });
    assert_eq!(events(&unhealthy, &running), [Event::Unhealthy]);
    let evicted = alloc(|it| {
        it.desired = DesiredStatus::Evict;
        it.preempted_by = Some(AllocId(9));
    });
    assert_eq!(events(&evicted, &running), [Event::Preempted]);
    let failed = alloc(|it| it.status = ClientStatus::Failed);
    assert_eq!(events(&failed, &running), [Event::Failed]);
    let lost = alloc(|it| it.status = ClientStatus::Lost);
    assert_eq!(events(&lost, &running), [Event::Lost]);
    let healthy = alloc(|it| {
        let (healthy, timestamp) = (true, Timestamp(5));
        it.health = Some(DeploymentHealth { healthy, timestamp });
    });
    assert_eq!(events(&healthy, &running), []);
}

#[test]
fn nothing_that_a_task_or_driver_said_is_in_a_notice() {
    let kinds = [
        EventType::SetupFailure,
        EventType::DriverFailure,
        EventType::FailedValidation,
        EventType::FailedArtifactDownload,
        EventType::HookFailed,
        EventType::Template,
        EventType::FailedRestoring,
        EventType::Killing,
        EventType::AllocUnhealthy,
        EventType::SiblingFailed,
    ];
    for kind in kinds {
        let failure = event(kind, 11, SECRET)
            .detail("message", SECRET)
            .fails_task();
        let checked = format!("healthcheck: check {SECRET} unhealthy: {SECRET}");
        let all = vec![
            exit(9, "1", true),
            event(EventType::RestartSignaled, 10, &checked).detail("restart_reason", &checked),
            failure,
        ];
        let alloc = alloc(|it| {
            it.status = ClientStatus::Failed;
            it.status_description = SECRET.into();
            it.desired_description = SECRET.into();
        });
        let notices = notices(&alloc, &state(TaskLife::Dead, all));
        assert!(notices.len() >= 3, "{notices:?}");
        assert!(
            !format!("{notices:?}").contains(SECRET),
            "{kind:?}: {notices:?}"
        );
    }
}

fn saved() -> Saved {
    let decision = event(EventType::NotRestarting, 12, "x").fails_task();
    let task = TaskRecord {
        state: state(TaskLife::Dead, vec![exit(11, "3", true), decision]),
        ..TaskRecord::default()
    };
    let alloc = alloc(|it| {
        it.status = ClientStatus::Failed;
        it.finished = true;
    });
    let deployment = Deployment {
        id: DeploymentId(4),
        job: JobKey::local("web"),
        job_version: 2,
        status: DeploymentStatus::Failed,
        description: SECRET.to_owned(),
        groups: Default::default(),
        resumed: None,
        modify_time: Timestamp(10),
        create_index: 1,
        modify_index: 2,
    };
    let job = Job {
        stop: true,
        ..Job::default()
    };
    let record = JobRecord {
        job: Arc::new(job),
        ..JobRecord::default()
    };
    Saved {
        allocs: [(alloc.id, Arc::new(alloc))].into(),
        tasks: [((AllocId(7), TaskName::from("t")), Arc::new(task))].into(),
        deployments: [(deployment.id, Arc::new(deployment))].into(),
        jobs: [(JobKey::local("web"), Arc::new(record))].into(),
        ..Saved::default()
    }
}

#[test]
fn store_says_again_what_it_said_with_the_same_ids_in_order_of_time() {
    let (watch, all) = Watch::restored(&saved());
    let told: Vec<(Event, i64)> = all.iter().map(|it| (it.event, it.time.0)).collect();
    let expected = [
        (Event::DeploymentFailed, 10),
        (Event::OomKilled, 11),
        (Event::Failed, 12),
        (Event::JobDead, 900),
    ];
    assert_eq!(told, expected);
    assert_eq!((watch, all), Watch::restored(&saved()));
}

fn restored(notices: bool) -> Agent {
    let mut config = Config::new(1, Node::default(), "/alloc");
    config.disk_limits = Some(DiskUsageLimits::default());
    config.notices = notices;
    Agent::restore(config, Saved::default(), now(0))
}

fn now(seconds: i64) -> Now {
    Now {
        at: Instant(0) + Span::secs(seconds),
        wall: Timestamp(0) + Span::secs(seconds),
    }
}

/// What operators are told when so much of the disk is used at each look, and how often it was looked at.
fn disk(agent: &mut Agent, percent: &[u8]) -> (Vec<Event>, usize) {
    let (mut told, mut looks) = (Vec::new(), 0);
    for second in 0..10_000 {
        agent.handle_timeout(now(second));
        let mut asked = Vec::new();
        while let Some(effect) = agent.poll_effect() {
            match effect {
                Effect::Node(NodeEffect::MeasureDiskUsage { op }) => asked.push(op),
                Effect::Notify(Notification::Notice(notice)) => told.push(notice.event),
                Effect::Driver(..)
                | Effect::Forget(..)
                | Effect::Hook(_)
                | Effect::Check(_)
                | Effect::Node(_)
                | Effect::Server(_)
                | Effect::Store(_)
                | Effect::Reply(..)
                | Effect::Notify(_)
                | Effect::Stopped => {}
            }
        }
        for op in asked {
            let Some(disk_percent) = percent.get(looks).copied() else {
                return (told, looks);
            };
            looks += 1;
            let result = Ok(DiskUsage {
                disk_percent,
                inode_percent: 1,
            });
            agent.handle(
                now(second),
                Input::Node(NodeInput::DiskUsage { op, result }),
            );
        }
    }
    (told, looks)
}

#[test]
fn disk_pressure_is_told_when_it_begins_and_when_it_is_over() {
    let looks = [10, 95, 95, 96, 20, 20, 90];
    let (told, looked) = disk(&mut restored(true), &looks);
    let expected = [
        Event::DiskPressure,
        Event::DiskPressureOver,
        Event::DiskPressure,
    ];
    assert_eq!(
        (told.as_slice(), looked),
        (expected.as_slice(), looks.len())
    );
}

#[test]
fn idle_disk_is_not_measured_where_nobody_is_told() {
    assert_eq!(disk(&mut restored(false), &[95, 95]), (vec![], 0));
}
