//! A node on its own: what becomes of what people ask of it, over restarts and while little is known of the machine.

#![allow(clippy::panic, missing_docs, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{Machine, destroyed, exited, node_with, started};
use drover_core::agent::Input;
use drover_core::agent::requests::{
    BootstrapAcl, CollectAlloc, Deregister, DispatchJob, UpdateDrain,
};
use drover_core::effect::{DriverEffect, Effect, NodeEffect, Reply};
use drover_core::ids::{AccessorId, AllocId, JobKey, LaunchId, TaskKey};
use drover_core::input::{
    DriverFingerprint, DriverHealth, DriverInput, DriverReport, Found, NodeInput,
};
use drover_core::model::acl::{AclToken, SecretDigest};
use drover_core::model::alloc::DesiredStatus;
use drover_core::model::dispatch::{Dispatch, ParameterizedJob};
use drover_core::model::drain::{DrainDeadline, DrainSpec};
use drover_core::model::group::{Network, Port, TaskGroup};
use drover_core::model::job::{Job, JobStatus, JobType};
use drover_core::model::policy::UpdateStrategy;
use drover_core::model::task::Task;
use drover_core::op::Op;
use drover_core::store::record::AllocRecord;
use drover_core::time::{Instant, Span};

const DRIVER: &str = "test";
const MINUTE: Span = Span::secs(60);

fn minutes(number: i64) -> Span {
    Span::secs(60 * number)
}

/// Tasks that end when they are told to, or when a test says so.
#[derive(Default)]
struct Tasks {
    running: BTreeMap<LaunchId, TaskKey>,
    starts: usize,
    /// The drivers that were asked to tell of themselves.
    watched: BTreeMap<Arc<str>, Op>,
}

type World = common::World<Tasks>;

fn group(name: &str) -> TaskGroup {
    let task = Task {
        name: "t".to_owned(),
        driver: DRIVER.to_owned(),
        ..Task::default()
    };
    TaskGroup {
        name: name.to_owned(),
        tasks: vec![task],
        ..TaskGroup::default()
    }
}

fn job(id: &str, job_type: JobType) -> Job {
    Job {
        id: id.to_owned(),
        job_type,
        task_groups: vec![group("g")],
        ..Job::default()
    }
}

fn node() -> World {
    World::with(node_with(DRIVER), Tasks::default())
}

impl Machine for Tasks {
    fn answer(&mut self, _: Instant, effect: Effect) -> Vec<Input> {
        match effect {
            Effect::Driver(_, task, effect) => {
                let of_task = |input| Input::Driver(task.clone(), input);
                self.driven(&task, effect)
                    .into_iter()
                    .map(of_task)
                    .collect()
            }
            Effect::Node(NodeEffect::WatchDriver { op, driver }) => {
                self.watched.insert(driver, op);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

impl Tasks {
    fn driven(&mut self, task: &TaskKey, effect: DriverEffect) -> Vec<DriverInput> {
        match effect {
            DriverEffect::Start(start) => {
                self.starts += 1;
                self.running.insert(start.launch, task.clone());
                vec![started(start.op, start.launch)]
            }
            DriverEffect::Recover(recover) => vec![DriverInput::Recovered {
                op: recover.op,
                launch: recover.launch,
                found: Found::Running,
                network: None,
            }],
            DriverEffect::Stop(stop) => {
                let ran = self.running.remove(&stop.launch);
                let (op, launch, result) = (stop.op, stop.launch, Ok(()));
                let mut inputs = vec![DriverInput::Stopped { op, launch, result }];
                inputs.extend(ran.map(|_| exited(launch, 143)));
                inputs
            }
            DriverEffect::Destroy(destroy) => {
                self.running.remove(&destroy.launch);
                vec![destroyed(destroy.op, destroy.launch)]
            }
            _ => Vec::new(),
        }
    }
}

impl World {
    /// All that runs ends by itself, and well.
    fn complete(&mut self) {
        for (launch, task) in core::mem::take(&mut self.running) {
            self.take(Input::Driver(task, exited(launch, 0)));
        }
        self.pass(MINUTE);
    }

    /// A driver says that it works.
    fn works(&mut self, driver: &str) {
        let op = self.watched[driver];
        let health = DriverHealth::Healthy;
        let report = DriverReport::Fingerprint(DriverFingerprint {
            health,
            ..DriverFingerprint::default()
        });
        let driver = driver.to_owned();
        self.take(Input::Node(NodeInput::Driver { op, driver, report }));
    }

    fn count(&self, which: impl Fn(&AllocRecord) -> bool) -> usize {
        let allocs = self.agent.view().allocs();
        allocs.filter(|alloc| which(alloc.record())).count()
    }

    /// Of each group of the job's latest roll-out, whether its canaries are promoted.
    fn promoted(&self, job: &JobKey) -> Vec<bool> {
        let view = self.agent.view();
        let id = view.job(job).and_then(|record| record.deployment);
        let rollout = id.and_then(|id| view.deployment(id));
        let groups = rollout.into_iter().flat_map(|one| one.groups.values());
        groups.map(|group| group.promoted.is_some()).collect()
    }
}

#[test]
fn second_acl_bootstrap_after_a_restart_is_refused() {
    let mut world = node();
    let bootstrap = |number: u8| BootstrapAcl {
        token: AclToken {
            accessor: AccessorId(u128::from(number)),
            digest: SecretDigest([number; 32]),
            ..AclToken::default()
        },
    };
    let first = world.ask(bootstrap(1));
    assert!(matches!(first, Reply::AclToken(_)), "{first:?}");
    world.restart();
    let second = world.ask(bootstrap(2));
    assert!(matches!(second, Reply::Refused(_)), "{second:?}");
    assert_eq!(world.agent.view().acl_tokens().len(), 1);
}

#[test]
fn dispatched_meta_goes_before_that_of_the_parent() {
    let meta = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        pairs.collect()
    };
    let mut world = node();
    let parent = Job {
        parameterized_job: Some(ParameterizedJob {
            meta_optional: vec!["color".to_owned()],
            ..ParameterizedJob::default()
        }),
        meta: meta(&[("color", "red"), ("size", "big")]),
        ..job("paint", JobType::Batch)
    };
    world.register(parent);
    let reply = world.ask(DispatchJob {
        job: JobKey::local("paint"),
        dispatch: Arc::new(Dispatch {
            meta: meta(&[("color", "blue")]),
            ..Dispatch::default()
        }),
    });
    let Reply::Dispatched { job: child, .. } = reply else {
        panic!("{reply:?}");
    };
    let child = world.agent.view().job(&child).map(|it| &it.job.meta);
    let expected = meta(&[("color", "blue"), ("size", "big")]);
    assert_eq!(child, Some(&expected));
}

/// Collected ones come behind all that are here, with ids that may come before theirs.
#[test]
fn allocs_read_in_pages_are_all_there_when_some_are_collected() {
    let mut world = node();
    let mut batch = job("batch", JobType::Batch);
    batch.task_groups[0].count = Some(4);
    world.register(batch);
    world.pass(MINUTE);
    world.complete();
    let allocs = world.agent.view().allocs();
    let ids: Vec<AllocId> = allocs.map(|it| it.record().id).collect();
    let [first, second, third, last] = ids[..] else {
        panic!("{ids:?}");
    };
    for alloc in [first, third] {
        let reply = world.ask(CollectAlloc { alloc });
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    }
    world.pass(MINUTE);
    let view = world.agent.view();
    let (mut read, mut page) = (Vec::new(), None);
    // Each page has one.
    while let Some((key, alloc)) = view.shown_allocs_after(page).next() {
        read.push(alloc.record().id);
        page = Some(key);
    }
    assert_eq!(read, [second, last, first, third]);
}

#[test]
fn drain_deadline_after_a_restart_is_what_was_left_of_it() {
    let mut world = node();
    // A drain lets batch jobs run until its deadline.
    world.register(job("batch", JobType::Batch));
    world.pass(MINUTE);
    world.ask(UpdateDrain {
        spec: Some(DrainSpec {
            deadline: DrainDeadline::After(minutes(60)),
            ignore_system_jobs: false,
        }),
        mark_eligible: false,
        meta: BTreeMap::new(),
    });
    world.pass(minutes(40));
    world.restart();
    world.pass(minutes(19));
    assert_eq!((world.starts, world.running.len()), (1, 1));
    world.pass(minutes(2));
    assert_eq!((world.starts, world.running.len()), (1, 0));
}

#[test]
fn canaries_of_two_groups_are_promoted_when_those_of_both_are_healthy() {
    let version = |number: &str| {
        let groups = [("soon", MINUTE), ("later", minutes(4))];
        let groups = groups.map(|(name, min_healthy_time)| {
            let mut group = group(name);
            group.update = Some(UpdateStrategy {
                canary: 1,
                auto_promote: true,
                min_healthy_time,
                ..UpdateStrategy::default()
            });
            group.tasks[0].env = [("VERSION".to_owned(), number.to_owned())].into();
            group
        });
        Job {
            task_groups: groups.into(),
            ..job("web", JobType::Service)
        }
    };
    let mut world = node();
    world.register(version("1"));
    world.pass(minutes(10));
    world.register(version("2"));
    world.pass(minutes(2));
    let web = JobKey::local("web");
    assert_eq!(world.promoted(&web), [false, false]);
    let is_healthy = |it: &AllocRecord| it.health.is_some_and(|it| it.healthy);
    let healthy = world.count(|it| it.canary && is_healthy(it));
    assert_eq!(healthy, 1, "that of the other group is not yet");
    world.pass(minutes(3));
    assert_eq!(world.promoted(&web), [true, true]);
}

#[test]
fn job_whose_driver_reported_starts_while_another_driver_is_silent() {
    let mut config = node_with(DRIVER);
    config.node.drivers.clear();
    config.drivers = vec![DRIVER.into(), "slow".into()];
    let mut world = World::with(config, Tasks::default());
    world.register(job("web", JobType::Service));
    world.pass(Span::secs(1));
    assert_eq!(world.starts, 0, "its driver may still be found");
    world.works(DRIVER);
    world.pass(Span::secs(1));
    let machine = world.agent.view().machine();
    assert!(machine.awaits_first_report(), "the other one is silent");
    assert_eq!(world.starts, 1);
}

/// Of jobs that need the same port one runs at a time.
fn needs_port(mut job: Job, priority: i64) -> Job {
    job.priority = priority;
    let port = Port {
        label: "http".to_owned(),
        value: 80,
        ..Port::default()
    };
    job.task_groups[0].networks = vec![Network {
        reserved_ports: vec![port],
        ..Network::default()
    }];
    job
}

#[test]
fn preempted_batch_job_is_dead_when_its_replacement_completed() {
    let mut config = node_with(DRIVER);
    config.preemption.service = true;
    let mut world = World::with(config, Tasks::default());
    world.register(needs_port(job("batch", JobType::Batch), 10));
    world.pass(MINUTE);
    world.register(needs_port(job("web", JobType::Service), 90));
    world.pass(MINUTE);
    let evicted = world.count(|it| it.desired == DesiredStatus::Evict);
    assert_eq!(evicted, 1, "the service has its port");
    let batch = JobKey::local("batch");
    assert_eq!(world.agent.view().job_status(&batch), JobStatus::Pending);
    world.ask(Deregister {
        job: JobKey::local("web"),
        purge: false,
        no_shutdown_delay: false,
    });
    world.pass(MINUTE);
    let runs = (world.starts, world.running.len());
    assert_eq!(runs, (3, 1), "it is replaced");
    world.complete();
    assert_eq!(world.agent.view().job_status(&batch), JobStatus::Dead);
}
