//! The hook `network`: what is made before the tasks, what is kept of the answer, and how its end is awaited.

use super::*;
use crate::effect::{Effect, HookEffect};
use crate::hooks::world_tests::{Began, World};
use crate::model::alloc::ClientStatus;
use crate::model::network::{Ipv4, Network, NetworkMode, PluginNetwork};
use crate::op::Op;
use crate::store::record::{AllocNetwork, AssignedPort};
use crate::time::Span;
use crate::work::{BuildNetwork, HookWork};

const ADDRESS: Ipv4 = Ipv4(0x0a00_0002);

fn own() -> AllocNetwork {
    AllocNetwork {
        address: Some(ADDRESS),
        ..AllocNetwork::default()
    }
}

fn world() -> World {
    let mut world = World::new();
    world.group().networks = vec![Network {
        mode: "bridge".to_owned(),
        ..Network::default()
    }];
    world.record.network = Some(own());
    world.record.ports = vec![AssignedPort {
        label: "http".to_owned(),
        value: 8080,
        ..AssignedPort::default()
    }];
    world
}

/// An allocation that ran and ended, and whose network is being removed; and the number of that work.
fn ended(world: &mut World) -> (AllocRunner, Op) {
    world.record.finished = true;
    world.record.status = ClientStatus::Complete;
    let mut alloc = world.alloc();
    alloc.settle(&mut world.cx());
    let op = asked(world, "remove the network");
    (alloc, op)
}

/// The number of the only work that was asked for, which is this.
fn asked(world: &mut World, words: &str) -> Op {
    let mut works = Vec::new();
    for effect in world.effects() {
        if let Effect::Hook(HookEffect::Run { op, work, .. }) = effect {
            works.push((op, work.words()));
        }
    }
    let [(op, asked)] = works.as_slice() else {
        panic!("{words} is not all that is asked for: {works:?}");
    };
    assert_eq!(*asked, words);
    *op
}

fn nothing_is_asked(world: &mut World) {
    let effects = world.effects();
    let works = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Hook(_)));
    assert_eq!(works.count(), 0, "{effects:?}");
}

#[test]
fn alloc_in_network_of_host_has_none_made() {
    let mut world = world();
    world.record.network = None;
    let alloc = world.alloc();
    let start = world.prerun(&alloc, &NetworkHook, &mut Asking::default());
    assert_eq!(start, Began::Done);
    assert_eq!(world.destroy(&alloc, &NetworkHook), Began::Done);
}

#[test]
fn network_is_made_of_what_the_record_says() {
    let mut world = world();
    let alloc = world.alloc();
    let Began::Asks(HookWork::BuildNetwork(work)) =
        world.prerun(&alloc, &NetworkHook, &mut Asking::default())
    else {
        panic!("nothing is made");
    };
    let BuildNetwork {
        mode,
        address,
        ports,
        ..
    } = BuildNetwork::clone(&work);
    assert_eq!((mode, address), (NetworkMode::Bridge, Some(ADDRESS)));
    assert_eq!(ports, world.record.ports);
}

#[test]
fn network_that_is_made_may_be_made_again_and_failure_ends_the_setup() {
    let mut world = world();
    let mut alloc = world.alloc();
    let mut asking = Asking::default();
    let made = world.answered(
        &mut alloc,
        &NetworkHook,
        &mut asking,
        Ok(HookOutput::default()),
    );
    assert_eq!(made, HookOutcome::Over(Ok(())));
    let again = world.prerun(&alloc, &NetworkHook, &mut asking);
    assert!(
        matches!(again, Began::Asks(HookWork::BuildNetwork(_))),
        "{again:?}"
    );
    let failure = Failure::recoverable("no bridge");
    let failed = world.answered(&mut alloc, &NetworkHook, &mut asking, Err(failure.clone()));
    assert_eq!(failed, HookOutcome::Over(Err(failure)));
}

/// After a reboot it is made anew, and may be another.
#[test]
fn network_is_known_as_plugins_made_it_last() {
    let mut world = world();
    let mut alloc = world.alloc();
    for interface in ["eth0", "eth1"] {
        let found = PluginNetwork {
            interface: interface.to_owned(),
            ..PluginNetwork::default()
        };
        let output = HookOutput {
            network: Some(Box::new(found.clone())),
            ..HookOutput::default()
        };
        world.answered(&mut alloc, &NetworkHook, &mut Asking::default(), Ok(output));
        let network = alloc.record().network.as_ref();
        let kept = network.and_then(|network| network.found.clone());
        assert_eq!(kept, Some(found));
    }
}

#[test]
fn removal_of_network_is_awaited_and_then_the_directory_goes() {
    let mut world = world();
    let (mut alloc, op) = ended(&mut world);
    assert_eq!(world.destroy(&alloc, &NetworkHook), Began::Waits);
    alloc.on_hook(&mut world.cx(), None, op, Ok(HookOutput::default()));
    assert_eq!(world.destroy(&alloc, &NetworkHook), Began::Done);
}

/// Best-effort: all that can go goes, all that failed is told, and all of it is tried again until nothing is left.
#[test]
fn network_that_resists_keeps_no_directory_and_both_failures_are_told() {
    let mut world = world();
    let (mut alloc, op) = ended(&mut world);
    alloc.destroy(&mut world.cx());
    world.shared.destroys.has_permit(&alloc.record().clone());
    world.shared.destroys.grant(1);
    alloc.settle(&mut world.cx());
    nothing_is_asked(&mut world);
    let busy = Err(Failure::recoverable("the link is busy"));
    alloc.on_hook(&mut world.cx(), None, op, busy);
    alloc.settle(&mut world.cx());
    let op = asked(&mut world, "remove directory");
    let full = Err(Failure::recoverable("not permitted"));
    alloc.on_hook(&mut world.cx(), None, op, full);
    alloc.settle(&mut world.cx());
    assert_eq!(
        alloc.destroy_errors(),
        ["network: the link is busy", "alloc_dir: not permitted"]
    );
    assert!(alloc.has_remains(), "what it holds is not free");
    let retried = retry(&mut world, &mut alloc, Span::secs(10));
    assert_eq!(
        retried,
        ["remove the network"],
        "before the directory's turn"
    );
    let retried = retry(&mut world, &mut alloc, Span::secs(60));
    assert_eq!(retried, ["remove directory"]);
    assert!(matches!(
        alloc.phase(),
        crate::alloc::runner::Phase::Destroyed
    ));
}

/// So much time passes, and all that is asked for then is done. Returns what that was.
fn retry(world: &mut World, alloc: &mut AllocRunner, span: Span) -> Vec<&'static str> {
    world.pass(span);
    alloc.handle_timeout(&mut world.cx());
    let mut done = Vec::new();
    loop {
        alloc.settle(&mut world.cx());
        world.shared.destroys.grant(1);
        alloc.settle(&mut world.cx());
        let before = done.len();
        for effect in world.effects() {
            if let Effect::Hook(HookEffect::Run { op, work, .. }) = effect {
                done.push(work.words());
                alloc.on_hook(&mut world.cx(), None, op, Ok(HookOutput::default()));
            }
        }
        if done.len() == before {
            return done;
        }
    }
}
