//! What is said of checks, roll-outs in place and replacements, by an agent whose world answers at once and whose
//! services answer as each test wants.

#![allow(clippy::expect_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{AllocExplanation, JobExplanation, Waiting};
use crate::agent::requests::{Register, StopAlloc};
use crate::agent::{Agent, Input};
use crate::config::Config;
use crate::effect::{CheckEffect, DriverEffect, Effect, HookEffect, StoreEffect};
use crate::ids::{JobKey, LaunchId, RequestId, TaskKey};
use crate::input::{
    CheckInput, DriverInput, HookInput, HookOutput, ProbeAnswer, StoreInput, TemplateInput,
};
use crate::model::alloc::ExitResult;
use crate::model::group::TaskGroup;
use crate::model::job::{Job, JobType};
use crate::model::node::{DriverInfo, Node};
use crate::model::policy::{ReschedulePolicy, RestartMode, RestartPolicy, UpdateStrategy};
use crate::model::task::Task;
use crate::model::template::Template;
use crate::model::value::Value;
use crate::store::Saved;
use crate::time::{Instant, Now, Span, Timestamp};
use crate::work::HookWork;

struct World {
    agent: Agent,
    at: Instant,
    requests: u64,
    /// The status of every answer to a check.
    status: u16,
    /// Whether templates wait for something that never comes.
    templates_wait: bool,
}

impl World {
    fn new() -> World {
        let info = DriverInfo {
            detected: true,
            healthy: true,
            description: String::new(),
        };
        let node = Node {
            drivers: [("mock_driver".to_owned(), info)].into(),
            datacenter: "dc1".to_owned(),
            pool: "default".to_owned(),
            address: "127.0.0.1".to_owned(),
            ..Node::default()
        };
        let now = now(Instant(0));
        World {
            agent: Agent::restore(Config::new(7, node, "/alloc"), Saved::default(), now),
            at: now.at,
            requests: 0,
            status: 404,
            templates_wait: false,
        }
    }

    /// Hands in a job, and lets so much time pass.
    fn submit(&mut self, job: Job, span: Span) {
        self.requests += 1;
        let register = Register {
            job: Arc::new(job),
            expect_index: None,
            submission: None,
        };
        let request = Input::Request(RequestId(self.requests), register.into());
        self.agent.handle(now(self.at), request);
        self.pass(span);
    }

    fn pass(&mut self, span: Span) {
        let until = self.at + span;
        loop {
            while let Some(effect) = self.agent.poll_effect() {
                for input in self.answers(effect) {
                    self.agent.handle(now(self.at), input);
                }
            }
            match self.agent.poll_timeout() {
                Some((due, _)) if due <= until => self.at = self.at.max(due),
                Some(_) | None => break,
            }
            self.agent.handle_timeout(now(self.at));
        }
        self.at = until;
    }

    fn answers(&self, effect: Effect) -> Vec<Input> {
        if let Effect::Store(StoreEffect::Commit(id, _)) = &effect {
            return vec![Input::Store(StoreInput::Saved(*id))];
        }
        if let Effect::Driver(_, key, effect) = effect {
            return driven(&key, effect);
        }
        if let Effect::Hook(HookEffect::Run {
            op,
            alloc,
            task,
            work,
        }) = effect
        {
            if self.templates_wait
                && matches!(work, HookWork::RenderTemplates(_))
                && let Some(task) = task
            {
                let missing = vec!["variable nomad/jobs/web".to_owned()];
                let said = TemplateInput::Missing { op, missing };
                return vec![Input::Template(TaskKey { alloc, task }, said)];
            }
            let result = Ok(HookOutput::default());
            return vec![Input::Hook(HookInput {
                op,
                alloc,
                task,
                result,
            })];
        }
        if let Effect::Check(CheckEffect::Run { op, alloc, .. }) = effect {
            let body = "no such page\nat all".to_owned();
            let code = self.status;
            let result = Ok(ProbeAnswer::Http { code, body });
            return vec![Input::Check(CheckInput { op, alloc, result })];
        }
        Vec::new()
    }

    fn job(&self) -> JobExplanation {
        let view = self.agent.view();
        let explained = view.explain_job(now(self.at), &JobKey::local("web"));
        explained.expect("it is there")
    }

    fn alloc(&self) -> AllocExplanation {
        let mut allocs = self.job().allocs;
        allocs.pop().expect("it is there")
    }
}

/// What a driver answers whose tasks end by themselves if they have an `exit_code`.
fn driven(key: &TaskKey, effect: DriverEffect) -> Vec<Input> {
    let exited = |launch: LaunchId, code: i32| DriverInput::Exited {
        launch,
        result: ExitResult::code(code),
    };
    let mut inputs = Vec::new();
    if let DriverEffect::Start(start) = &effect {
        let (op, launch) = (start.op, start.launch);
        let network = None;
        inputs.push(DriverInput::Started {
            op,
            launch,
            network,
        });
        let code = start.config.config.get("exit_code").and_then(Value::as_int);
        inputs.extend(code.map(|_| exited(launch, 1)));
    }
    if let DriverEffect::Stop(stop) = &effect {
        let (op, launch, result) = (stop.op, stop.launch, Ok(()));
        inputs.push(DriverInput::Stopped { op, launch, result });
        inputs.push(exited(launch, 0));
    }
    if let DriverEffect::Destroy(destroy) = &effect {
        let (op, launch, result) = (destroy.op, destroy.launch, Ok(None));
        inputs.push(DriverInput::Destroyed { op, launch, result });
    }
    let of_task = |input| Input::Driver(key.clone(), input);
    inputs.into_iter().map(of_task).collect()
}

fn now(at: Instant) -> Now {
    let since = Span(i64::try_from(at.0).expect("soon"));
    Now {
        at,
        wall: Timestamp(1_700_000_000_000_000_000) + since,
    }
}

fn map(fields: &[(&str, Value)]) -> Value {
    let fields = fields.iter().cloned();
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Value::Map(fields.collect::<BTreeMap<_, _>>())
}

/// A service `front` with a check `alive` of this path, each 10 s, and what else the check says.
fn front(path: &str, more: &[(&str, Value)]) -> Value {
    let own = [
        ("Name", Value::from("alive")),
        ("Type", Value::from("http")),
        ("Path", Value::from(path)),
        ("Interval", Value::Int(Span::secs(10).0)),
        ("Timeout", Value::Int(Span::secs(2).0)),
    ];
    let check = map(&[&own, more].concat());
    map(&[
        ("Name", Value::from("front")),
        ("PortLabel", Value::from("8080")),
        ("Provider", Value::from("nomad")),
        ("Checks", Value::List(vec![check])),
    ])
}

/// A job `web` with a task that runs for ever, after a change of its group.
fn web(change: impl FnOnce(&mut TaskGroup)) -> Job {
    let task = Task {
        name: "main".to_owned(),
        driver: "mock_driver".to_owned(),
        ..Task::default()
    };
    let mut group = TaskGroup {
        name: "g".to_owned(),
        tasks: vec![task],
        ..TaskGroup::default()
    };
    change(&mut group);
    Job {
        id: "web".to_owned(),
        name: "web".to_owned(),
        job_type: JobType::Service,
        task_groups: vec![group],
        ..Job::default()
    }
}

/// Rolled out with little time: 5 s healthy within 30 s, and progress within 60 s.
fn rolls(group: &mut TaskGroup) {
    group.update = Some(UpdateStrategy {
        min_healthy_time: Span::secs(5),
        healthy_deadline: Span::secs(30),
        progress_deadline: Span::secs(60),
        ..UpdateStrategy::default()
    });
}

/// What is awaited that says this.
fn awaited<'a>(waits: &'a [Waiting], words: &str) -> &'a Waiting {
    let mut found = waits.iter().filter(|one| one.what.contains(words));
    let one = found
        .next()
        .unwrap_or_else(|| panic!("{words} in {waits:?}"));
    assert_eq!(found.next(), None, "{waits:?}");
    one
}

/// How long that lasts still.
fn left(world: &World, one: &Waiting) -> Option<i64> {
    let left = one.until? - now(world.at).wall;
    Some(left.0.div_euclid(Span::secs(1).0))
}

#[test]
fn hook_that_may_wait_for_ever_is_not_said_to_fail() {
    let waiting = |templates: bool| {
        let mut world = World::new();
        world.templates_wait = true;
        let job = web(|group| {
            if templates {
                group.tasks[0].templates = vec![Template {
                    dest_path: "local/words".to_owned(),
                    ..Template::default()
                }];
            }
        });
        world.submit(job, Span::secs(5));
        world.alloc().tasks[0].waiting.clone()
    };
    let wait = waiting(true).expect("it waits for its templates");
    assert_eq!(wait.what, "its prestart hook \"template\"");
    assert_eq!(wait.until, None);
    assert!(
        wait.then.ends_with("it waits as long as that takes"),
        "{wait:?}"
    );
    assert_eq!(waiting(false), None, "it runs");
}

#[test]
fn health_waits_for_the_checks_that_do_not_pass() {
    let mut world = World::new();
    let job = web(|group| {
        rolls(group);
        group.tasks[0].services = vec![front("/", &[])];
    });
    world.submit(job, Span::secs(1));
    let waits = world.alloc().waiting;
    let pending = "check \"alive\" of service \"front\" (pending, without a result yet)";
    awaited(&waits, pending);
    world.pass(Span::secs(19));
    let waits = world.alloc().waiting;
    let health = awaited(&waits, "as its deployment demands");
    let failing = "check \"alive\" of service \"front\" (failing, last asked ";
    assert!(health.what.contains(failing), "{}", health.what);
    let why = " ago: HTTP status 404, no such page)";
    assert!(health.what.ends_with(why), "{}", health.what);
    assert!(
        health.then.starts_with("it is unhealthy"),
        "{}",
        health.then
    );
    assert!(health.then.ends_with("for 5s"), "{}", health.then);
    assert_eq!(left(&world, health), Some(10), "{health:?}");
    assert_eq!(waits.len(), 1, "it is said once: {waits:?}");

    world.status = 200;
    world.pass(Span::secs(7));
    let waits = world.alloc().waiting;
    assert!(!format!("{waits:?}").contains("alive"), "{waits:?}");
}

#[test]
fn replacement_after_a_failed_roll_out_does_not_say_that_it_fails_again() {
    let mut world = World::new();
    let job = web(|group| {
        rolls(group);
        group.tasks[0].services = vec![front("/", &[])];
    });
    world.submit(job, Span::secs(19));
    let first = world.alloc();
    let health = awaited(&first.waiting, "as its deployment demands");
    assert!(health.then.contains("the deployment fails"), "{health:?}");
    world.pass(Span::secs(60));
    let stop = StopAlloc {
        alloc: first.id,
        no_shutdown_delay: false,
    };
    world.requests += 1;
    let request = Input::Request(RequestId(world.requests), stop.into());
    world.agent.handle(now(world.at), request);
    world.pass(Span::secs(10));
    let second = world.job().allocs.into_iter().find(|it| it.id != first.id);
    let waits = second.expect("it is replaced").waiting;
    let health = awaited(&waits, "as its deployment demands");
    assert!(
        health.then.starts_with("it is unhealthy, unless"),
        "{health:?}"
    );
}

#[test]
fn failing_check_is_named_where_no_roll_out_waits_for_it() {
    let mut world = World::new();
    let job = web(|group| group.tasks[0].services = vec![front("/", &[])]);
    world.submit(job, Span::secs(30));
    let alloc = world.alloc();
    let check = awaited(
        &alloc.waiting,
        "check \"alive\" of service \"front\" (failing",
    );
    assert_eq!(check.until, None);
    assert!(
        check.then.contains("no task is restarted for it"),
        "{check:?}"
    );
    assert_eq!(alloc.tasks[0].waiting, None, "nothing happens to the task");
}

#[test]
fn running_task_says_how_many_failures_of_a_check_restart_it() {
    let mut world = World::new();
    let restart = map(&[
        ("Limit", Value::Int(3)),
        ("Grace", Value::Int(Span::secs(1).0)),
    ]);
    let job = web(|group| {
        group.tasks[0].services = vec![front("/", &[("CheckRestart", restart)])];
    });
    // It is asked after 5 to 6.25 s, and each 10 s from then.
    world.submit(job, Span::secs(3));
    assert_eq!(world.alloc().tasks[0].waiting, None, "nothing failed yet");
    for (counted, span) in [(1, 4), (2, 10)] {
        world.pass(Span::secs(span));
        let task = world.alloc().tasks.remove(0);
        let waiting = task.waiting.expect("a failure is counted");
        let words = format!("to pass: {counted} of 3 failures in a row are counted");
        assert!(waiting.what.ends_with(&words), "{}", waiting.what);
        assert!(
            waiting
                .what
                .starts_with("check \"alive\" of service \"front\"")
        );
        let last = i64::from(3 - counted) * 10;
        let left = left(&world, &waiting).expect("its time is known");
        assert!((last - 4..=last).contains(&left), "{left}: {waiting:?}");
        let then = "it is ended because of the check, and its restart policy decides";
        assert!(waiting.then.starts_with(then), "{}", waiting.then);
    }
    world.pass(Span::secs(10));
    let events = format!("{:?}", world.alloc().tasks[0]);
    assert!(
        events.contains("healthcheck: check"),
        "it came so: {events}"
    );
}

#[test]
fn failure_within_the_grace_of_restarts_is_not_counted() {
    let mut world = World::new();
    let restart = map(&[
        ("Limit", Value::Int(2)),
        ("Grace", Value::Int(Span::secs(100).0)),
    ]);
    let job = web(|group| {
        group.tasks[0].services = vec![front("/", &[("CheckRestart", restart)])];
    });
    world.submit(job, Span::secs(30));
    let waiting = world.alloc().tasks.remove(0).waiting;
    let waiting = waiting.expect("a check fails");
    assert!(waiting.what.contains(": 0 of 2 failures"), "{waiting:?}");
    let left = left(&world, &waiting).expect("its time is known");
    assert!((78..=92).contains(&left), "{left}: {waiting:?}");
}

#[test]
fn roll_out_in_place_says_until_when_it_has_time() {
    let mut world = World::new();
    world.status = 200;
    let version = |path: &str| {
        web(|group| {
            rolls(group);
            group.tasks[0].services = vec![front(path, &[])];
        })
    };
    world.submit(version("/"), Span::secs(100));
    let first = world.alloc();
    assert_eq!(world.job().waiting, [], "it is rolled out");
    world.status = 404;
    world.submit(version("/other"), Span::secs(10));
    assert_eq!(world.alloc().id, first.id, "in place");
    let waits = world.job().waiting;
    let copies = awaited(&waits, "all copies of its new version to be healthy");
    assert_eq!(left(&world, copies), Some(50), "{copies:?}");
}

/// A group whose task fails at once, and that is replaced so.
fn failing(policy: ReschedulePolicy) -> Job {
    web(|group| {
        let code = ("exit_code".to_owned(), Value::Int(1));
        group.tasks[0].config = [code].into();
        group.restart_policy = Some(RestartPolicy {
            attempts: Some(0),
            mode: Some(RestartMode::Fail),
            ..RestartPolicy::default()
        });
        group.reschedule_policy = Some(policy);
    })
}

#[test]
fn failed_allocation_says_how_many_reschedules_are_used() {
    let mut world = World::new();
    let job = failing(ReschedulePolicy {
        attempts: Some(2),
        interval: Some(Span::secs(3600)),
        delay: Some(Span::secs(30)),
        delay_function: Some("constant".to_owned()),
        unlimited: Some(false),
        ..ReschedulePolicy::default()
    });
    world.submit(job, Span::secs(10));
    for used in 0..2 {
        let alloc = world.alloc();
        let words = format!("; {used} of 2 reschedules in 1h0m0s are used");
        assert!(alloc.description.ends_with(&words), "{}", alloc.description);
        let delay = awaited(&alloc.waiting, "the reschedule delay of its group");
        assert_eq!(delay.then, "a replacement is placed");
        assert!(left(&world, delay).is_some_and(|left| (1..30).contains(&left)));
        world.pass(Span::secs(30));
    }
    let alloc = world.alloc();
    let words = "; 2 of 2 reschedules in 1h0m0s are used";
    assert!(alloc.description.ends_with(words), "{}", alloc.description);
    assert_eq!(alloc.waiting, []);
    let next = "it is over, and its reschedule policy allows no other in its place";
    assert!(alloc.next.starts_with(next), "{}", alloc.next);
}

#[test]
fn reschedules_without_a_limit_are_only_counted() {
    let mut world = World::new();
    let job = failing(ReschedulePolicy {
        delay: Some(Span::secs(5)),
        delay_function: Some("constant".to_owned()),
        unlimited: Some(true),
        ..ReschedulePolicy::default()
    });
    world.submit(job, Span::secs(7));
    let words = "; reschedules so far: 1, without a limit";
    let described = world.alloc().description;
    assert!(described.ends_with(words), "{described}");
}
