//! The hook that fetches a disk from another node: when it asks, how often, and when it goes on without.

use super::*;
use crate::hooks::world_tests::{ALLOC, Began, World, last_words};
use crate::ids::AllocId;
use crate::model::group::EphemeralDisk;
use crate::model::remote::RemotePrevious;
use crate::store::disk::Elsewhere;

fn previous() -> RemotePrevious {
    RemotePrevious {
        alloc: AllocId(9),
        address: "http://10.0.0.9:4646".into(),
        ended: true,
        ..RemotePrevious::default()
    }
}

/// An allocation whose group wants its disk migrated, and which replaces this one of another node.
fn world(previous: RemotePrevious) -> World {
    let mut world = World::new().with_disk(Disk {
        holder: Some(ALLOC),
        elsewhere: Some(Elsewhere {
            previous,
            ..Elsewhere::default()
        }),
        ..Disk::default()
    });
    world.group().ephemeral_disk = Some(EphemeralDisk {
        migrate: true,
        ..EphemeralDisk::default()
    });
    world
}

fn fetches(previous: RemotePrevious) -> Began {
    Began::asks(work::FetchDisk {
        previous,
        tasks: vec!["server".into()],
    })
}

fn told(alloc: &AllocRunner) -> &str {
    alloc.tasks().first().map_or("", last_words)
}

#[test]
fn disk_of_another_node_is_fetched_once_and_what_was_left_out_is_told() {
    let mut world = world(previous());
    let (mut alloc, mut asking) = (world.alloc(), Asking::default());
    assert_eq!(
        world.prerun(&alloc, &FetchDisk, &mut asking),
        fetches(previous())
    );
    let output = HookOutput {
        message: "Left out: local/pipe".to_owned(),
        ..HookOutput::default()
    };
    let outcome = world.answered(&mut alloc, &FetchDisk, &mut asking, Ok(output));
    assert_eq!(outcome, HookOutcome::Over(Ok(())));
    assert_eq!(world.disk().elsewhere, None);
    assert_eq!(told(&alloc), "Left out: local/pipe");
    assert_eq!(world.prerun(&alloc, &FetchDisk, &mut asking), Began::Done);
}

#[test]
fn disk_that_group_does_not_want_is_forgotten() {
    let mut world = world(previous());
    world.group().ephemeral_disk = None;
    let (alloc, mut asking) = (world.alloc(), Asking::default());
    assert_eq!(world.prerun(&alloc, &FetchDisk, &mut asking), Began::Done);
    assert_eq!(world.disk().elsewhere, None);
}

#[test]
fn disk_that_does_not_come_is_tried_five_times_with_pauses_and_then_begins_empty() {
    let mut world = world(previous());
    let (mut alloc, mut asking) = (world.alloc(), Asking::default());
    for time in 1..=DISK_TRIES {
        let asked = world.prerun(&alloc, &FetchDisk, &mut asking);
        assert_eq!(asked, fetches(previous()), "try {time}");
        let failure = Err(Failure::recoverable("connection reset"));
        let outcome = world.answered(&mut alloc, &FetchDisk, &mut asking, failure);
        if time == DISK_TRIES {
            assert_eq!(outcome, HookOutcome::Over(Ok(())), "try {time}");
            break;
        }
        assert_eq!(outcome, HookOutcome::Again, "try {time}");
        let waits = world.prerun(&alloc, &FetchDisk, &mut asking);
        assert_eq!(waits, Began::Waits, "try {time}");
        let words = world.words(&alloc, &FetchDisk, &asking);
        assert!(
            words.ends_with("the last attempt failed: connection reset"),
            "{words}"
        );
        world.pass(Span::secs(60));
    }
    assert_eq!(world.disk().elsewhere, None);
    let end = "at http://10.0.0.9:4646: connection reset. The disk begins empty";
    assert!(told(&alloc).ends_with(end), "{}", told(&alloc));
}

#[test]
fn disk_that_cannot_be_written_fails_the_setup_and_stays_known() {
    let mut world = world(previous());
    let before = world.disk();
    let (mut alloc, mut asking) = (world.alloc(), Asking::default());
    world.prerun(&alloc, &FetchDisk, &mut asking);
    let failure = Failure::fatal("no space left");
    let outcome = world.answered(&mut alloc, &FetchDisk, &mut asking, Err(failure.clone()));
    assert_eq!(outcome, HookOutcome::Over(Err(failure)));
    assert_eq!(world.disk(), before, "the replacement fetches it");
}

#[test]
fn node_that_does_not_offer_the_disk_is_gone_on_without() {
    for (message, why) in [
        ("", "its node does not offer it"),
        ("it is too large", "it is too large"),
    ] {
        let mut world = world(previous());
        let (mut alloc, mut asking) = (world.alloc(), Asking::default());
        world.prerun(&alloc, &FetchDisk, &mut asking);
        let output = HookOutput {
            remote: Some(Remote::Unknown),
            message: message.to_owned(),
            ..HookOutput::default()
        };
        let outcome = world.answered(&mut alloc, &FetchDisk, &mut asking, Ok(output));
        assert_eq!(outcome, HookOutcome::Over(Ok(())));
        assert!(
            told(&alloc).contains(&format!("{why}. The disk begins empty")),
            "{}",
            told(&alloc)
        );
    }
}

#[test]
fn disk_that_lies_with_yet_another_alloc_is_sought_there_if_servers_placed_them() {
    let further = RemotePrevious {
        alloc: AllocId(8),
        of_servers: true,
        ..RemotePrevious::default()
    };
    for of_servers in [true, false] {
        let mut world = world(RemotePrevious {
            of_servers,
            ..previous()
        });
        let (mut alloc, mut asking) = (world.alloc(), Asking::default());
        world.prerun(&alloc, &FetchDisk, &mut asking);
        let output = HookOutput {
            lies_with: Some(Box::new(further.clone())),
            ..HookOutput::default()
        };
        let outcome = world.answered(&mut alloc, &FetchDisk, &mut asking, Ok(output));
        let next = world.disk().elsewhere.map(|it| it.previous.alloc);
        match of_servers {
            true => assert_eq!((outcome, next), (HookOutcome::FromStart, Some(AllocId(8)))),
            false => assert_eq!((outcome, next), (HookOutcome::Over(Ok(())), None)),
        }
    }
}

#[test]
fn fetching_a_disk_may_take_longer_than_other_hooks() {
    let timeouts = Timeouts::default();
    assert_eq!(FetchDisk.timeout(&timeouts), timeouts.disk);
    assert!(timeouts.disk > timeouts.hook);
}
