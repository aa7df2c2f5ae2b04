//! Services of allocations that servers placed: registered, changed and removed at the servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::ids::AllocId;
use drover_core::model::alloc::DesiredStatus;
use drover_core::model::job::Job;
use drover_core::model::value::Value;
use drover_core::time::Span;

use crate::allocs::{act, differences, job, placed, stop};
use crate::servers::Trouble;
use crate::world::World;

/// How many of these worlds are tried.
const SEEDS: u64 = 150;

fn service(name: &str, version: u64) -> Value {
    let text = |text: &str| Value::String(text.to_owned());
    Value::Map(BTreeMap::from([
        ("Name".to_owned(), text(name)),
        ("Provider".to_owned(), text("nomad")),
        (
            "Tags".to_owned(),
            Value::List(vec![text(&format!("v{version}"))]),
        ),
        ("CanaryTags".to_owned(), Value::List(vec![text("canary")])),
    ]))
}

/// The job, with a service of its group and one of its task.
pub(crate) fn served(id: &str, version: u64) -> Job {
    let mut job = job(id, version);
    for group in &mut job.task_groups {
        group.services = vec![service("api", version)];
        for task in &mut group.tasks {
            task.services = vec![service("side", version)];
        }
    }
    job
}

/// Each service that servers have, with its tags.
fn listed(world: &World) -> BTreeMap<String, Vec<String>> {
    let services = world.servers.services.values();
    services
        .map(|it| (it.id.to_string(), it.tags.clone()))
        .collect()
}

/// What servers have is exactly what runs.
pub(crate) fn wrong_services(world: &World) -> Option<String> {
    let mut wanted = BTreeMap::new();
    for process in world.living() {
        let id = process.task.alloc;
        let Some(alloc) = world.servers.allocs.get(&id).map(|it| &it.placed) else {
            continue;
        };
        let Ok(job) = &alloc.job else { continue };
        let has_services = job.task_groups.iter().any(|it| !it.services.is_empty());
        if !has_services || alloc.desired != DesiredStatus::Run {
            continue;
        }
        let tags = match alloc.canary {
            true => vec!["canary".to_owned()],
            false => vec![format!("v{}", job.version)],
        };
        wanted.insert(format!("_nomad-task-{id}-group-g-api-"), tags.clone());
        wanted.insert(format!("_nomad-task-{id}-t-side-"), tags);
    }
    let listed = listed(world);
    (listed != wanted).then(|| format!("servers have {listed:?}, there are {wanted:?}"))
}

/// One allocation with services, which runs.
fn one() -> World {
    let mut world = World::quiet();
    world.orderly = true;
    world.servers.place(world.now, placed(1, served("web", 0)));
    world.run(Span::secs(5));
    assert_eq!(listed(&world).len(), 2);
    world
}

fn update(world: &mut World, job: Job) {
    world.servers.change(world.now, AllocId(1), |it| {
        it.job = Ok(Arc::new(job));
    });
}

fn agrees(world: &World) {
    assert_eq!(differences(world), Vec::<String>::new());
}

#[test]
fn services_are_gone_before_their_tasks_are_asked_to_end() {
    let mut stopped = 0;
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        (world.calm, world.orderly) = (true, true);
        world.servers.trouble = Trouble::default();
        let mut next = 100;
        for _ in 0..60 {
            world.run(Span::millis(700));
            act(&mut world, &mut next);
        }
        world.run(Span::secs(120));
        let wrong = differences(&world);
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
        stopped += world.checks.services_sent;
    }
    assert!(stopped > 1000, "{stopped}");
}

#[test]
fn service_is_registered_and_removed_within_milliseconds() {
    let mut world = World::quiet();
    world.orderly = true;
    world.run(Span::secs(30));
    world.servers.place(world.now, placed(1, served("web", 0)));
    world.run(Span::millis(60));
    assert_eq!(listed(&world).len(), 2);
    stop(&mut world, AllocId(1));
    world.run(Span::millis(200));
    assert_eq!((listed(&world).len(), world.living().count()), (0, 0));
    agrees(&world);
}

#[test]
fn services_that_come_together_are_few_calls() {
    let mut world = World::quiet();
    world.run(Span::secs(30));
    for id in 1..=300 {
        world.servers.place(world.now, placed(id, served("web", 0)));
    }
    world.run(Span::secs(10));
    let calls = world.checks.service_calls;
    assert!((1..=8).contains(&calls), "{calls} calls");
    assert_eq!(world.checks.services_sent, 600);
    agrees(&world);
}

#[test]
fn changed_tags_are_sent_and_nothing_else() {
    let mut world = one();
    world.servers.place(world.now, placed(2, served("web", 0)));
    world.run(Span::secs(5));
    assert_eq!(world.checks.services_sent, 4);
    update(&mut world, served("web", 1));
    world.run(Span::secs(5));
    assert_eq!(world.checks.services_sent, 6);
    agrees(&world);
    // A canary that is promoted has other tags.
    let mut canary = placed(3, served("web", 2));
    canary.canary = true;
    world.servers.place(world.now, canary);
    world.run(Span::secs(5));
    agrees(&world);
    world
        .servers
        .change(world.now, AllocId(3), |it| it.canary = false);
    world.run(Span::secs(5));
    agrees(&world);
    assert_eq!(world.checks.starts.values().max(), Some(&1));
}

#[test]
fn restarted_agent_registers_nothing_again() {
    let mut world = one();
    world.crash(Span::secs(1));
    world.run(Span::secs(600));
    assert_eq!(world.checks.services_sent, 2);
    agrees(&world);
}

#[test]
fn service_of_alloc_that_was_stopped_meanwhile_is_removed() {
    let mut world = one();
    world.crash(Span::secs(30));
    stop(&mut world, AllocId(1));
    world.run(Span::secs(60));
    assert_eq!((listed(&world).len(), world.living().count()), (0, 0));
    agrees(&world);
}

#[test]
fn service_that_a_version_does_not_have_is_removed() {
    let mut world = one();
    world.unreachable = true;
    update(&mut world, job("web", 1));
    world.run(Span::secs(1));
    world.unreachable = false;
    world.run(Span::secs(120));
    assert_eq!((listed(&world).len(), world.living().count()), (0, 1));
    agrees(&world);
}

/// The removal is lost, and the agent dies before it could be made again.
#[test]
fn service_whose_removal_was_lost_is_removed_by_the_next_agent() {
    let mut world = one();
    update(&mut world, job("web", 1));
    world.services_lost = true;
    world.run(Span::secs(10));
    assert_eq!(listed(&world).len(), 2);
    world.crash(Span::secs(1));
    world.run(Span::millis(1500));
    world.services_lost = false;
    world.run(Span::secs(120));
    assert_eq!(listed(&world).len(), 0);
    agrees(&world);
}

#[test]
fn task_ends_though_servers_do_not_answer_that_its_services_are_gone() {
    let mut world = one();
    (world.services_lost, world.orderly) = (true, false);
    stop(&mut world, AllocId(1));
    world.run(Span::secs(4));
    assert_eq!(world.living().count(), 1);
    world.run(Span::secs(2));
    assert_eq!(world.living().count(), 0);
    world.services_lost = false;
    world.run(Span::secs(120));
    agrees(&world);
}

#[test]
fn service_is_removed_when_the_shutdown_delay_begins() {
    let mut world = World::quiet();
    world.orderly = true;
    let mut delayed = served("web", 0);
    for group in &mut delayed.task_groups {
        group.shutdown_delay = Some(Span::secs(20));
    }
    world.servers.place(world.now, placed(1, delayed));
    world.run(Span::secs(5));
    stop(&mut world, AllocId(1));
    world.run(Span::secs(1));
    assert_eq!((listed(&world).len(), world.living().count()), (0, 1));
    world.run(Span::secs(25));
    assert_eq!(world.living().count(), 0);
    agrees(&world);
}

#[test]
fn servers_that_forgot_the_node_are_told_its_services_again() {
    let mut world = one();
    world.servers.known = None;
    world.servers.services.clear();
    world.servers.changed(world.now);
    world.run(Span::secs(300));
    assert_eq!(listed(&world).len(), 2);
    agrees(&world);
}
