//! The life of a node: registered, alive, known as it is.

use crate::allocs::{differences, job, placed};
use crate::servers::Trouble;
use crate::world::{World, dice};
use drover_core::agent::{Agent, ServersWait, Wait};
use drover_core::cluster::Credentials;
use drover_core::config::Config;
use drover_core::effect::Effect;
use drover_core::ids::AllocId;
use drover_core::model::drain::Eligibility;
use drover_core::model::node::Node;
use drover_core::store::Saved;
use drover_core::time::{Instant, Now, Span, Timestamp};

/// So many seeds are tried.
const SEEDS: u64 = 3000;

fn view_of<T>(world: &World, what: impl FnOnce(&Agent) -> Option<T>) -> Option<T> {
    world.agent.as_ref().and_then(what)
}

fn is_ready(world: &World) -> bool {
    view_of(world, |it| Some(it.view().server()?.heartbeat().is_ready())).unwrap_or(false)
}

/// What is wrong when nothing failed for a while.
pub(crate) fn disagreements(world: &World) -> Vec<String> {
    let mut wrong = world.checks.wrong.clone();
    let mut say = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    let known = world.servers.known.as_ref();
    say(is_ready(world), "the node thinks that it is not ready");
    say(
        known.is_some_and(|it| it.ready),
        "the servers do not have the node as ready",
    );
    let agent_has = view_of(world, |it| {
        it.view().server()?.registration().acknowledged().cloned()
    });
    say(
        agent_has.as_ref() == known.map(|it| &*it.node),
        "node and servers disagree about the node",
    );
    let present = view_of(world, |it| Some(it.view().node().drivers.clone()));
    let of_servers = known.and_then(|it| it.node.drivers.get("test").map(|it| it.healthy));
    let of_node = present.and_then(|it| it.get("test").map(|it| it.healthy));
    say(
        of_servers == of_node,
        "the servers do not know how the driver is",
    );
    let eligible = view_of(world, |it| it.view().server()?.eligibility());
    say(
        eligible == known.map(|it| it.eligibility),
        "node and servers disagree about eligibility",
    );
    say(
        world.checks.servers == world.servers.names,
        "the servers that were handed on",
    );
    let awaits = view_of(world, |it| Some(it.pending().awaiting));
    let awaits = awaits.unwrap_or_default();
    say(
        !awaits.iter().any(|it| matches!(it.wait, Wait::Servers(_))),
        "something is still awaited of the servers",
    );
    wrong
}

fn trouble(world: &mut World, seconds: u64) {
    let mut left = seconds;
    while left > 0 {
        let pause = (1 + dice(&mut world.rng, 20)).min(left);
        left -= pause;
        world.run(Span::secs(i64::try_from(pause).unwrap_or(1)));
        match dice(&mut world.rng, 12) {
            0 => {
                let back = [0, 1, 5, 40].map(Span::secs);
                let at = usize::try_from(dice(&mut world.rng, 4)).unwrap_or(0);
                world.crash(back[at]);
            }
            1 => world.set_health(false),
            2 => world.set_health(true),
            3 => {
                let eligible = dice(&mut world.rng, 2) == 0;
                if let Some(known) = &mut world.servers.known {
                    known.eligibility = match eligible {
                        true => Eligibility::Eligible,
                        false => Eligibility::Ineligible,
                    };
                }
            }
            4 if dice(&mut world.rng, 4) == 0 => world.servers.new_keys(),
            _ => {}
        }
    }
}

#[test]
fn node_and_servers_agree_after_any_trouble() {
    let (mut beats, mut registrations, mut losses) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        trouble(&mut world, 300);
        world.calm = true;
        world.run(Span::secs(200));
        losses += world.servers.losses;
        let before = world.servers.losses;
        world.run(Span::secs(300));
        let wrong = disagreements(&world);
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
        assert_eq!(
            world.servers.losses, before,
            "seed {seed}: beats came too late"
        );
        beats += world.checks.beats;
        registrations += world.checks.registrations;
    }
    // The trouble is one: else nothing was tested.
    assert!(beats > SEEDS * 20 && registrations > SEEDS && losses > SEEDS / 100);
}

#[test]
fn same_seed_gives_the_same_life() {
    let life = |seed| {
        let mut world = World::new(seed);
        trouble(&mut world, 300);
        world.agent.clone()
    };
    for seed in 0..20 {
        assert!(life(seed) == life(seed), "seed {seed}");
    }
}

#[test]
fn first_heartbeat_follows_first_registration_at_once() {
    let mut world = World::quiet();
    world.run(Span::millis(50));
    assert!(is_ready(&world), "the node is ready soon");
    assert_eq!((world.checks.registrations, world.checks.beats), (1, 1));
}

#[test]
fn idle_node_beats_as_often_as_asked_and_sends_nothing_else() {
    let mut world = World::quiet();
    world.run(Span::secs(3600));
    assert_eq!(world.checks.registrations, 1);
    let beats = world.checks.beats;
    assert!(
        (190..=360).contains(&beats),
        "{beats} beats, with 10 to 19 s between them"
    );
    assert_eq!(world.servers.losses, 0);
}

#[test]
fn changes_are_registered_together_when_it_is_quiet() {
    let mut world = World::quiet();
    world.run(Span::secs(1));
    world.set_health(false);
    world.run(Span::secs(4));
    assert_eq!(world.checks.registrations, 1, "more may follow");
    world.run(Span::secs(2));
    assert_eq!(world.checks.registrations, 2);
    // One that was taken back is none.
    world.set_health(true);
    world.run(Span::secs(2));
    world.set_health(false);
    world.run(Span::secs(60));
    assert_eq!(world.checks.registrations, 2);
    // More and more of them do not wait for ever.
    for second in 0..12 {
        world.describe_driver(&format!("changed {second} times"));
        world.run(Span::secs(1));
    }
    assert_eq!(world.checks.registrations, 3);
    world.run(Span::secs(60));
    assert_eq!(world.checks.registrations, 4);
    assert_eq!(disagreements(&world), Vec::<String>::new());
}

#[test]
fn event_during_a_call_about_events_is_sent_after_it() {
    let mut world = World::quiet();
    world.run(Span::secs(1));
    world.describe_driver("it broke");
    world.set_health(false);
    // For so long events are gathered; then their call is under way, for 2 ms.
    world.run(Span::secs(5));
    assert!(world.servers.events.is_empty(), "none arrived yet");
    world.describe_driver("it works");
    world.set_health(true);
    world.run(Span::secs(60));
    let events = world.servers.events.iter();
    let calls = events.map(|call| call.iter().map(|it| it.message.as_str()).collect());
    assert_eq!(calls.collect::<Vec<Vec<_>>>(), [["it broke"], ["it works"]]);
    assert_eq!(disagreements(&world), Vec::<String>::new());
}

#[test]
fn node_that_servers_forgot_registers_at_once() {
    let mut world = World::quiet();
    world.run(Span::secs(1));
    world.servers.known = None;
    world.run(Span::secs(21));
    assert_eq!(world.checks.registrations, 2);
    assert_eq!(disagreements(&world), Vec::<String>::new());
}

/// A node with an identity, and with an allocation that runs.
fn known_by_identity() -> World {
    let mut world = World::quiet();
    world.servers.identity_ttl = Span::secs(60);
    world.servers.place(world.now, placed(1, job("web", 0)));
    world.run(Span::secs(30));
    assert_eq!(world.servers.registered_by, [Credentials::None]);
    world
}

/// It goes on, and is registered the second time by what this says, with an identity that counts.
fn goes_on(world: &World, registered: impl Fn(&[Credentials]) -> bool) {
    let by = &world.servers.registered_by;
    assert!(registered(by), "{by:?}");
    assert_eq!(differences(world), Vec::<String>::new());
    assert_eq!(world.checks.starts.get(&AllocId(1)), Some(&1));
    assert_eq!(world.living().count(), 1);
}

/// As of a node that was away for as long as its identity counts.
#[test]
fn node_whose_identity_is_over_registers_by_it_and_goes_on() {
    let mut world = known_by_identity();
    world.crash(Span::secs(60));
    world.run(Span::secs(180));
    goes_on(&world, |by| matches!(by, [_, Credentials::Identity(_)]));
    // From then on it is renewed before that.
    world.run(Span::secs(3600));
    goes_on(&world, |by| by.len() == 2);
}

#[test]
fn node_whose_identity_nobody_believes_registers_as_new() {
    let mut world = known_by_identity();
    world.servers.new_keys();
    world.run(Span::secs(60));
    goes_on(&world, |by| by == [Credentials::None, Credentials::None]);
}

#[test]
fn node_whose_registration_has_no_effect_asks_seldom() {
    let mut world = World::quiet();
    for _ in 0..600 {
        world.run(Span::secs(1));
        world.servers.known = None;
    }
    let registrations = world.checks.registrations;
    assert!(
        (20..=60).contains(&registrations),
        "{registrations} in ten minutes"
    );
}

#[test]
fn known_node_beats_at_once_after_a_restart() {
    let mut world = World::quiet();
    world.run(Span::secs(5));
    let beats = world.checks.beats;
    world.crash(Span::secs(3));
    world.run(Span::millis(3001));
    assert_eq!(
        world.checks.beats,
        beats + 1,
        "before anything is known of the machine"
    );
}

#[test]
fn unreachable_servers_are_awaited_and_named() {
    let mut world = World::new(3);
    world.servers.trouble = Trouble {
        lost: 100,
        ..Trouble::default()
    };
    world.run(Span::secs(600));
    let waits = view_of(&world, |it| Some(it.pending().awaiting)).unwrap_or_default();
    let of_servers = |wait| {
        let mut waits = waits.iter().filter(|it| it.until.is_some());
        waits.any(|it| it.wait == Wait::Servers(wait))
    };
    assert!(of_servers(ServersWait::Registration) && of_servers(ServersWait::Heartbeat));
    let error = view_of(&world, |it| {
        Some(it.view().server()?.last_error()?.to_owned())
    });
    assert_eq!(error.as_deref(), Some("no server answers"));
    let registrations = world.checks.registrations;
    assert!(
        (10..=40).contains(&registrations),
        "{registrations} in ten minutes"
    );
}

/// However long they were away. A call that got lost is waited for at first.
#[test]
fn servers_that_return_are_found_within_minutes() {
    for seed in 0..30 {
        let mut world = World::new(seed);
        world.calm = true;
        world.run(Span::secs(300));
        world.unreachable = true;
        world.run(Span::secs(3600 * 5 + i64::try_from(seed).unwrap_or(0)));
        world.unreachable = false;
        world.run(Span::secs(180));
        let known = world.servers.known.as_ref();
        assert!(known.is_some_and(|it| it.ready), "seed {seed}");
    }
}

#[test]
fn node_on_its_own_calls_nobody() {
    let config = Config::new(1, Node::default(), "/alloc");
    let at = |second| Now {
        at: Instant(0) + Span::secs(second),
        wall: Timestamp(0) + Span::secs(second),
    };
    let mut agent = Agent::restore(config, Saved::default(), at(0));
    for second in 0..3600 {
        agent.handle_timeout(at(second));
        while let Some(effect) = agent.poll_effect() {
            assert!(!matches!(effect, Effect::Server(_)), "{effect:?}");
        }
    }
    assert!(agent.view().server().is_none());
    assert!(
        !agent
            .pending()
            .awaiting
            .iter()
            .any(|it| matches!(it.wait, Wait::Servers(_)))
    );
}
