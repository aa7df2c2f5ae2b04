//! Servers that are silent, that forget what they placed or the node, and that go back to what they had before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::ids::AllocId;
use drover_core::model::alloc::DesiredStatus;
use drover_core::model::value::Value;
use drover_core::time::Span;

use crate::allocs::{differences, job, placed};
use crate::world::World;

/// Servers give its place and its ports to others at once.
#[test]
fn allocation_that_servers_purged_ends_at_once() {
    let mut world = World::quiet();
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.servers.place(world.now, placed(2, job("db", 0)));
    world.run(Span::secs(30));
    let beats = world.checks.beats;
    world.servers.collect(world.now, AllocId(1));
    world.run(Span::millis(1500));
    let left: Vec<AllocId> = world.living().map(|it| it.task.alloc).collect();
    assert_eq!(left, [AllocId(2)]);
    assert!(world.checks.beats <= beats + 2, "{}", world.checks.beats);
    world.run(Span::secs(60));
    assert_eq!(differences(&world), Vec::<String>::new());
    assert_eq!(world.checks.wrong, Vec::<String>::new());
}

/// What they knew after it was taken they do not know, and count on from before.
#[test]
fn servers_restored_from_a_snapshot_are_followed() {
    for (changed, lost) in [(true, true), (true, false), (false, false)] {
        let mut world = World::quiet();
        world.servers.place(world.now, placed(1, job("web", 0)));
        world.run(Span::secs(30));
        let (index, snapshot) = (world.servers.index, world.servers.allocs.clone());
        let other = Arc::new(job("web", 1));
        if changed {
            world
                .servers
                .change(world.now, AllocId(1), |it| it.job = Ok(other));
        } else {
            // Of other nodes.
            (0..5).for_each(|_| world.servers.changed(world.now));
        }
        if lost {
            world.servers.place(world.now, placed(2, job("db", 0)));
        }
        world.run(Span::secs(30));
        world.servers.restore(world.now, index, snapshot);
        world.servers.place(world.now, placed(4, job("queue", 0)));
        world.run(Span::secs(5));
        let left: BTreeSet<AllocId> = world.living().map(|it| it.task.alloc).collect();
        assert_eq!(
            left,
            BTreeSet::from([AllocId(1), AllocId(4)]),
            "{changed} {lost}"
        );
        let view = world.agent.as_ref().map(Agent::view);
        let web = view.and_then(|view| view.alloc(AllocId(1)));
        let version = web.map(|alloc| alloc.record().job_version);
        assert_eq!(version, Some(0), "it is as it was");
        world.servers.change(world.now, AllocId(1), |it| {
            it.desired = DesiredStatus::Stop;
        });
        world.run(Span::secs(5));
        assert_eq!(world.living().count(), 1, "it is stopped");
        world.run(Span::secs(60));
        assert_eq!(differences(&world), Vec::<String>::new());
    }
}

#[test]
fn allocation_that_may_not_run_alone_stops_when_servers_are_out_of_reach() {
    let mut world = World::quiet();
    let mut one = job("web", 0);
    for group in &mut one.task_groups {
        group.stop_after_client_disconnect = Some(Span::secs(60));
    }
    world.servers.place(world.now, placed(1, one));
    world.servers.place(world.now, placed(2, job("web", 0)));
    world.run(Span::secs(300));
    assert_eq!(world.living().count(), 2, "servers answer");
    world.unreachable = true;
    world.run(Span::secs(40));
    assert_eq!(world.living().count(), 2);
    world.run(Span::secs(40));
    let left: Vec<AllocId> = world.living().map(|it| it.task.alloc).collect();
    assert_eq!(left, [AllocId(2)]);
    world.unreachable = false;
    world.run(Span::secs(120));
    assert_eq!(differences(&world), Vec::<String>::new());
}

/// A node beats less often than its groups may want to be without servers.
#[test]
fn allocation_that_may_not_run_alone_goes_on_while_servers_answer() {
    let nanos = Span::secs(5).0;
    for within in [Value::Int(nanos), Value::String("5s".to_owned())] {
        let mut world = World::quiet();
        let mut one = job("web", 0);
        for group in &mut one.task_groups {
            let block = BTreeMap::from([("StopOnClientAfter".to_owned(), within.clone())]);
            group.disconnect = Some(Value::Map(block));
        }
        world.servers.place(world.now, placed(1, one));
        world.run(Span::secs(30));
        let reports = world.checks.reports;
        world.crash(Span::secs(1));
        world.run(Span::secs(3600));
        assert_eq!(world.living().count(), 1, "servers answer");
        assert_eq!(world.checks.reports, reports);
        world.unreachable = true;
        // Its last heartbeat counts for 20 s at most, and the next has 7.
        world.run(Span::secs(30));
        assert_eq!(world.living().count(), 0, "servers are silent");
        world.unreachable = false;
        world.run(Span::secs(120));
        assert_eq!(differences(&world), Vec::<String>::new());
    }
}

/// Of its servers it knows nothing then: they are asked before anything is stopped for their silence.
#[test]
fn allocation_that_may_not_run_alone_goes_on_after_an_agent_that_stood_still() {
    let mut world = World::quiet();
    let mut one = job("web", 0);
    for group in &mut one.task_groups {
        group.stop_after_client_disconnect = Some(Span::secs(5));
    }
    world.servers.place(world.now, placed(1, one));
    for _ in 0..5 {
        world.run(Span::secs(30));
        world.now = world.now + Span::secs(60);
    }
    world.run(Span::secs(120));
    assert_eq!(world.checks.starts.get(&AllocId(1)), Some(&1));
    assert_eq!(world.living().count(), 1, "servers answer");
}

#[test]
fn purged_node_keeps_what_its_servers_still_have() {
    let mut world = World::quiet();
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.run(Span::secs(30));
    // They answer that there is nothing, until the node is registered again.
    world.servers.known = None;
    world.servers.changed(world.now);
    world.run(Span::secs(300));
    assert_eq!(world.living().count(), 1);
    assert_eq!(world.checks.starts.get(&AllocId(1)), Some(&1));
    assert_eq!(differences(&world), Vec::<String>::new());
}
