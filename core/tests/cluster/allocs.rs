//! Allocations that servers place: run, updated, stopped, reported and removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::requests::{Register, StopAlloc};
use drover_core::agent::{Agent, Input};
use drover_core::cluster::PlacedAlloc;
use drover_core::ids::{AllocId, DeploymentId, EvalId, JobKey, RequestId};
use drover_core::model::alloc::{ClientStatus, DesiredStatus};
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::policy::{RestartMode, RestartPolicy};
use drover_core::model::task::Task;
use drover_core::store::record::AssignedPort;
use drover_core::time::{Span, Timestamp};

use crate::identities::{keep_what_is_replaced, signed, wrong_identities};
use crate::life::disagreements;
use crate::reports::reported_otherwise;
use crate::services::{served, wrong_services};
use crate::templates::{templated, wrong_templates};
use crate::world::{DRIVER, World, dice};

const SEEDS: u64 = 2500;

/// A job of one task that is not started again.
pub(crate) fn job(id: &str, version: u64) -> Job {
    let task = Task {
        name: "t".to_owned(),
        driver: DRIVER.to_owned(),
        ..Task::default()
    };
    let restart = RestartPolicy {
        attempts: Some(0),
        interval: Some(Span::secs(60)),
        delay: Some(Span::secs(1)),
        mode: Some(RestartMode::Fail),
        render_templates: None,
    };
    let group = TaskGroup {
        name: "g".to_owned(),
        count: Some(1),
        restart_policy: Some(restart),
        tasks: vec![task],
        ..TaskGroup::default()
    };
    Job {
        id: id.to_owned(),
        version,
        meta: BTreeMap::from([("version".to_owned(), version.to_string())]),
        task_groups: vec![group],
        ..Job::default()
    }
}

/// An allocation of it.
pub(crate) fn placed(id: u128, job: Job) -> PlacedAlloc {
    PlacedAlloc {
        id: AllocId(id),
        modify_index: 0,
        name: format!("{}.g[0]", job.id).into(),
        job: Ok(Arc::new(job)),
        group: "g".into(),
        eval: EvalId(1),
        deployment: None,
        canary: false,
        previous: None,
        preempts: Vec::new(),
        desired: DesiredStatus::Run,
        desired_description: "".into(),
        no_shutdown_delay: false,
        client_status: ClientStatus::Pending,
        ports: Vec::new(),
        cores: Vec::new(),
        devices: Vec::new(),
        create_time: Timestamp(0),
    }
}

fn port(value: u16) -> Vec<AssignedPort> {
    vec![AssignedPort {
        label: "http".to_owned(),
        value,
        ..AssignedPort::default()
    }]
}

/// Servers do something.
pub(crate) fn act(world: &mut World, next: &mut u128) {
    let now = world.now;
    let live: Vec<AllocId> = (world.servers.allocs.iter())
        .filter(|(_, it)| it.placed.desired == DesiredStatus::Run)
        .map(|(id, _)| *id)
        .collect();
    let all: Vec<AllocId> = world.servers.allocs.keys().copied().collect();
    let mut one_of = |ids: &[AllocId]| {
        let count = u64::try_from(ids.len()).unwrap_or(0);
        ids.get(usize::try_from(dice(&mut world.rng, count)).unwrap_or(0))
            .copied()
    };
    let (live, any) = (one_of(&live), one_of(&all));
    match (dice(&mut world.rng, 9), live, any) {
        (0 | 1, ..) => {
            *next += 1;
            let one = match *next % 4 {
                0 => job("web", 0),
                1 => signed("web", 0),
                2 => templated("web", 0),
                _ => served("web", 0),
            };
            world.servers.place(now, placed(*next, one));
        }
        (2, ..) => {
            // What cannot be run, or is over already.
            *next += 1;
            let mut one = placed(*next, job("web", 0));
            match dice(&mut world.rng, 3) {
                0 => one.job = Err("it cannot be read".to_owned()),
                1 => one.group = "other".into(),
                _ => one.client_status = ClientStatus::Complete,
            }
            world.servers.place(now, one);
        }
        (3 | 4, Some(old), _) => {
            // It is replaced, and its port with it.
            *next += 1;
            let ports = world
                .servers
                .allocs
                .get(&old)
                .map(|it| it.placed.ports.clone());
            let mut new = placed(*next, served("web", 1));
            let own = u16::try_from(*next % 1000).unwrap_or(0) + 2000;
            new.ports = ports
                .filter(|it| !it.is_empty())
                .unwrap_or_else(|| port(own));
            new.previous = Some(old);
            stop(world, old);
            world.servers.place(now, new);
        }
        (5, Some(id), _) => stop(world, id),
        (6, Some(id), _) => world.servers.change(now, id, |it| {
            if let Ok(job) = &mut it.job {
                // In every third version it has no services. Identities and templates never change in place.
                let version = job.version + 1;
                let mut new = match version % 3 {
                    0 => self::job("web", version),
                    _ => served("web", version),
                };
                keep_what_is_replaced(job, &mut new);
                *job = Arc::new(new);
            }
        }),
        (7, _, Some(id)) => world.servers.collect(now, id),
        (8, Some(id), _) => world.exit_of(id),
        _ => {}
    }
}

pub(crate) fn stop(world: &mut World, id: AllocId) {
    world
        .servers
        .change(world.now, id, |it| it.desired = DesiredStatus::Stop);
}

fn trouble(world: &mut World, seconds: u64) {
    let (mut left, mut next) = (seconds, 100);
    while left > 0 {
        let pause = (1 + dice(&mut world.rng, 15)).min(left);
        left -= pause;
        world.run(Span::secs(i64::try_from(pause).unwrap_or(1)));
        act(world, &mut next);
        if dice(&mut world.rng, 12) == 0 {
            let back = [0, 1, 5, 40].map(Span::secs);
            let at = usize::try_from(dice(&mut world.rng, 4)).unwrap_or(0);
            world.crash(back[at]);
        }
    }
}

fn register_own_job(world: &mut World) {
    let register = Register {
        job: Arc::new(job("web", 0)),
        expect_index: None,
        submission: None,
    };
    let request = Input::Request(RequestId(1), register.into());
    world.input(Span::millis(10), request);
}

/// What is wrong when nothing failed for a while.
pub(crate) fn differences(world: &World) -> Vec<String> {
    let mut wrong = disagreements(world);
    wrong.extend(wrong_services(world));
    wrong.extend(wrong_identities(world));
    wrong.extend(wrong_templates(world));
    let Some(agent) = &world.agent else {
        wrong.push("the agent is gone".to_owned());
        return wrong;
    };
    let view = agent.view();
    for alloc in view.allocs().filter(|it| it.record().of_servers) {
        if !world.servers.allocs.contains_key(&alloc.record().id) {
            wrong.push(format!("{} was dropped, and is here", alloc.record().id));
        }
    }
    for (id, known) in &world.servers.allocs {
        let here = view.alloc(*id).map(|it| it.record());
        let status = known.placed.client_status;
        if let Some(record) = here
            && record.status != status
        {
            wrong.push(format!(
                "{id} is {:?}, servers have {status:?}",
                record.status
            ));
        }
        let reported = known.reported.as_deref();
        if let (Some(alloc), Some(report)) = (view.alloc(*id), reported) {
            wrong.extend(reported_otherwise(alloc, report));
        }
        let wanted = known.placed.desired == DesiredStatus::Run;
        if here.is_none() && !status.is_terminal() {
            wrong.push(format!("{id} is not here, servers have {status:?}"));
        }
        if !wanted && !status.is_terminal() {
            wrong.push(format!("{id} is to end and is {status:?}"));
        }
        let version = known.placed.job.as_ref().map(|it| it.version);
        if let (Some(record), Ok(version)) = (here, version)
            && wanted
            && !record.is_terminal()
            && record.job_version != version
        {
            wrong.push(format!(
                "{id} runs version {}, not {version}",
                record.job_version
            ));
        }
    }
    for process in world.living() {
        let of_servers = world.servers.allocs.get(&process.task.alloc);
        let own = view
            .alloc(process.task.alloc)
            .is_some_and(|it| !it.record().of_servers);
        let wanted = of_servers.is_some_and(|it| it.placed.desired == DesiredStatus::Run);
        if !own && !wanted {
            wrong.push(format!("a process of {} is alive", process.task.alloc));
        }
    }
    wrong
}

fn own_alloc(agent: &Agent) -> Option<AllocId> {
    let mut own = agent
        .view()
        .allocs_of(&JobKey::local("web"))
        .map(|it| it.record());
    own.find(|it| it.status == ClientStatus::Running)
        .map(|it| it.id)
}

#[test]
fn node_and_servers_agree_on_allocations_after_any_trouble() {
    let (mut started, mut reports, mut dropped) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        register_own_job(&mut world);
        trouble(&mut world, 300);
        world.calm = true;
        world.run(Span::secs(600));
        let wrong = differences(&world);
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
        started += world.checks.starts.len();
        reports += world.checks.reports;
        dropped +=
            world.servers.sent.len() - world.servers.allocs.len().min(world.servers.sent.len());
    }
    let seeds = usize::try_from(SEEDS).unwrap_or(0);
    assert!(started > seeds && reports > SEEDS && dropped > seeds);
}

#[test]
fn placed_allocation_runs_and_is_reported_within_milliseconds() {
    let mut world = World::quiet();
    world.run(Span::secs(30));
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.run(Span::millis(60));
    let status = world.servers.allocs[&AllocId(1)].placed.client_status;
    assert_eq!(status, ClientStatus::Running);
    stop(&mut world, AllocId(1));
    world.run(Span::millis(300));
    let status = world.servers.allocs[&AllocId(1)].placed.client_status;
    assert_eq!(status, ClientStatus::Complete);
}

#[test]
fn allocation_that_ended_stays_until_servers_drop_it() {
    let mut world = World::quiet();
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.run(Span::secs(5));
    world.exit_of(AllocId(1));
    world.run(Span::secs(3600));
    let is_here = |world: &World| {
        let agent = world.agent.as_ref();
        agent.is_some_and(|it| it.view().alloc(AllocId(1)).is_some())
    };
    assert!(is_here(&world));
    world.servers.collect(world.now, AllocId(1));
    world.run(Span::secs(60));
    assert!(!is_here(&world));
    assert_eq!(differences(&world), Vec::<String>::new());
}

#[test]
fn restarted_agent_reports_nothing_again() {
    let mut world = World::quiet();
    for id in 1..=30 {
        world.servers.place(world.now, placed(id, job("web", 0)));
    }
    world.run(Span::secs(10));
    assert_eq!(world.living().count(), 30);
    let reports = world.checks.reports;
    world.crash(Span::secs(1));
    world.run(Span::secs(600));
    assert_eq!(world.checks.reports, reports);
    assert_eq!((world.living().count(), world.servers.losses), (30, 0));
    assert_eq!(world.checks.starts.values().max(), Some(&1));
}

#[test]
fn many_changes_are_few_calls() {
    let mut world = World::quiet();
    for id in 1..=300 {
        world.servers.place(world.now, placed(id, job("web", 0)));
    }
    world.run(Span::secs(60));
    let calls = world.checks.report_calls;
    for id in 1..=300_u128 {
        world.exit_of(AllocId(id));
        world.run(Span::millis(3));
    }
    world.run(Span::secs(60));
    let calls = world.checks.report_calls - calls;
    assert!((1..=8).contains(&calls), "{calls} calls");
    assert_eq!(differences(&world), Vec::<String>::new());
}

#[test]
fn replacement_starts_when_the_previous_allocation_is_gone() {
    let mut world = World::quiet();
    let mut first = placed(1, job("web", 0));
    first.ports = port(2001);
    world.servers.place(world.now, first.clone());
    world.run(Span::secs(5));
    world.slow_exit = Span::secs(3);
    stop(&mut world, AllocId(1));
    let mut second = placed(2, job("web", 1));
    (second.previous, second.ports) = (Some(AllocId(1)), first.ports);
    world.servers.place(world.now, second);
    world.run(Span::secs(2));
    assert_eq!(
        world.checks.starts.get(&AllocId(2)),
        None,
        "the first still runs"
    );
    world.run(Span::secs(2));
    assert_eq!(world.checks.starts.get(&AllocId(2)), Some(&1));
    assert_eq!(world.checks.wrong, Vec::<String>::new());
}

#[test]
fn canary_of_the_same_name_does_not_wait() {
    let mut world = World::quiet();
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.run(Span::secs(5));
    let mut canary = placed(2, job("web", 1));
    canary.canary = true;
    world.servers.place(world.now, canary);
    world.run(Span::secs(5));
    assert_eq!(world.living().count(), 2);
}

#[test]
fn own_job_of_the_same_name_is_another() {
    let mut world = World::quiet();
    register_own_job(&mut world);
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.run(Span::secs(10));
    assert_eq!(world.living().count(), 2);
    let own = world.agent.as_ref().and_then(own_alloc);
    assert!(own.is_some_and(|id| id != AllocId(1)));
    let placed_by = |id| {
        let view = world.agent.as_ref().map(Agent::view);
        let explained = view.and_then(|view| view.explain_alloc(world.at(), id));
        explained.map(|it| it.placed_by)
    };
    let by_servers = placed_by(AllocId(1));
    assert_eq!(by_servers, Some("the servers of the cluster"));
    let by_node = own.and_then(placed_by);
    assert!(by_node.is_some_and(|it| it.contains("this node itself")));
    world.crash(Span::secs(1));
    world.run(Span::secs(10));
    world.servers.collect(world.now, AllocId(1));
    world.run(Span::secs(60));
    assert_eq!(world.agent.as_ref().and_then(own_alloc), own);
    assert_eq!(world.living().count(), 1);
}

#[test]
fn allocation_of_servers_is_not_stopped_here() {
    let mut world = World::quiet();
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.run(Span::secs(5));
    let alloc = AllocId(1);
    let request = Input::Request(
        RequestId(3),
        StopAlloc {
            alloc,
            no_shutdown_delay: false,
        }
        .into(),
    );
    world.input(Span::ZERO, request);
    world.run(Span::secs(5));
    assert_eq!(world.living().count(), 1);
}

/// Found by a search: what the servers lost sight of was pulled, and the agent died before it had reported it again.
#[test]
fn allocation_that_servers_lost_sight_of_is_reported_again_after_a_crash() {
    let mut world = World::quiet();
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.run(Span::secs(30));
    let unknown = ClientStatus::Unknown;
    world
        .servers
        .change(world.now, AllocId(1), |it| it.client_status = unknown);
    world.reports_lost = true;
    world.run(Span::secs(10));
    world.crash(Span::secs(1));
    world.run(Span::secs(1));
    world.reports_lost = false;
    world.run(Span::secs(30));
    assert_eq!(differences(&world), Vec::<String>::new());
}

/// Found by a search: a change that servers cannot see, and a crash before it was known that they need not.
#[test]
fn change_that_servers_cannot_see_is_not_reported_after_a_crash() {
    let mut world = World::quiet();
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.run(Span::secs(30));
    let reports = world.checks.reports;
    world.servers.change(world.now, AllocId(1), |it| {
        it.job = Ok(Arc::new(job("web", 1)))
    });
    world.run(Span::millis(500));
    world.crash(Span::secs(1));
    world.run(Span::secs(60));
    assert_eq!(world.checks.reports, reports);
    assert_eq!(differences(&world), Vec::<String>::new());
}

/// Found by a search: it changed while a report of it was under way, and the servers cannot see that either.
#[test]
fn change_during_a_report_is_not_reported_after_a_crash() {
    let mut world = World::quiet();
    world.run(Span::secs(30));
    world.slow_reports = Span::secs(5);
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.run(Span::secs(1));
    world.servers.change(world.now, AllocId(1), |it| {
        it.job = Ok(Arc::new(job("web", 1)))
    });
    world.run(Span::secs(20));
    let reports = world.checks.reports;
    world.crash(Span::secs(1));
    world.run(Span::secs(60));
    assert_eq!(world.checks.reports, reports);
    assert_eq!(differences(&world), Vec::<String>::new());
}

/// Found by a search: servers that are behind still have it as pending.
#[test]
fn allocation_that_cannot_run_is_reported_once() {
    let mut world = World::quiet();
    let mut one = placed(1, job("web", 0));
    one.job = Err("it cannot be read".to_owned());
    world.servers.place(world.now, one);
    world.run(Span::secs(30));
    let reported = world.servers.allocs[&AllocId(1)].reported.clone();
    assert_eq!(
        reported.map(|it| it.description.to_string()).as_deref(),
        Some("it cannot be read")
    );
    let pending = ClientStatus::Pending;
    world
        .servers
        .change(world.now, AllocId(1), |it| it.client_status = pending);
    world.crash(Span::secs(1));
    world.run(Span::secs(60));
    assert_eq!((world.checks.reports, world.checks.wrong.len()), (1, 0));
}

/// What runs goes on, and nobody waits for it in vain.
#[test]
fn version_that_cannot_be_read_is_unhealthy_for_its_roll_out() {
    let mut world = World::quiet();
    let mut one = placed(1, job("web", 0));
    one.deployment = Some(DeploymentId(1));
    world.servers.place(world.now, one);
    world.run(Span::secs(30));
    world.servers.change(world.now, AllocId(1), |it| {
        it.job = Err("it cannot be read".to_owned());
        it.deployment = Some(DeploymentId(2));
    });
    world.run(Span::secs(30));
    let reported = world.servers.allocs[&AllocId(1)].reported.clone();
    let health = reported.and_then(|it| it.health).map(|it| it.healthy);
    assert_eq!(health, Some(false));
    assert_eq!(world.living().count(), 1);
    let view = world.agent.as_ref().map(|agent| agent.view());
    let alloc = view.and_then(|view| view.alloc(AllocId(1)));
    let says = alloc.is_some_and(|alloc| {
        let tasks = alloc.tasks().iter();
        let mut events = tasks.flat_map(|task| task.state().events.clone());
        events.any(|event| event.display_message.ends_with("it cannot be read"))
    });
    assert!(says, "an event says why");
}

/// Replies have a greatest size.
#[test]
fn many_allocations_are_pulled_in_pieces() {
    let mut world = World::quiet();
    for id in 1..=350 {
        world.servers.place(world.now, placed(id, job("web", 0)));
    }
    world.run(Span::secs(30));
    assert_eq!(world.living().count(), 350);
    assert_eq!(world.servers.largest_pull, 100);
    assert_eq!(differences(&world), Vec::<String>::new());
}

/// Found by a search: the answer to a report came after the servers had lost sight of what it was about.
#[test]
fn late_answer_to_a_report_does_not_hide_what_servers_lost_since() {
    let mut world = World::quiet();
    world.run(Span::secs(30));
    world.slow_reports = Span::secs(20);
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.run(Span::secs(5));
    let unknown = ClientStatus::Unknown;
    world
        .servers
        .change(world.now, AllocId(1), |it| it.client_status = unknown);
    world.run(Span::secs(5));
    world.slow_reports = Span::ZERO;
    world.run(Span::secs(60));
    assert_eq!(differences(&world), Vec::<String>::new());
}
