//! The hook that awaits the end of an allocation on another node: when it asks, and what it makes of the answers.

use super::*;
use crate::hooks::world_tests::{ALLOC, Began, World, last_words};
use crate::ids::AllocId;
use crate::model::group::EphemeralDisk;
use crate::model::remote::RemotePrevious;
use crate::store::disk::Elsewhere;
use crate::time::Span;

fn previous() -> RemotePrevious {
    RemotePrevious {
        alloc: AllocId(9),
        address: "http://10.0.0.9:4646".into(),
        ..RemotePrevious::default()
    }
}

fn disk(previous: RemotePrevious) -> Disk {
    Disk {
        holder: Some(ALLOC),
        elsewhere: Some(Elsewhere {
            previous,
            ..Elsewhere::default()
        }),
        ..Disk::default()
    }
}

fn asks(index: u64) -> Began {
    let previous = previous();
    Began::asks(AskRemote { previous, index })
}

fn says(remote: Remote) -> Result<HookOutput, Failure> {
    Ok(HookOutput {
        remote: Some(remote),
        ..HookOutput::default()
    })
}

/// An allocation that has asked, and what is answered.
fn answered(result: Result<HookOutput, Failure>) -> (World, AllocRunner, Asking, HookOutcome) {
    let mut world = World::new().with_disk(disk(previous()));
    let group = EphemeralDisk {
        migrate: true,
        ..EphemeralDisk::default()
    };
    world.group().ephemeral_disk = Some(group);
    let (mut alloc, mut asking) = (world.alloc(), Asking::default());
    assert_eq!(world.prerun(&alloc, &AwaitRemote, &mut asking), asks(0));
    let outcome = world.answered(&mut alloc, &AwaitRemote, &mut asking, result);
    (world, alloc, asking, outcome)
}

#[test]
fn alloc_that_replaces_nothing_elsewhere_asks_nobody() {
    let ended = RemotePrevious {
        ended: true,
        ..previous()
    };
    let of_another = Disk {
        holder: Some(AllocId(7)),
        ..disk(previous())
    };
    for disk in [Disk::default(), disk(ended), of_another] {
        let mut world = World::new().with_disk(disk);
        let alloc = world.alloc();
        let start = world.prerun(&alloc, &AwaitRemote, &mut Asking::default());
        assert_eq!(start, Began::Done);
    }
}

#[test]
fn end_of_previous_alloc_is_remembered() {
    let (world, _, asking, outcome) = answered(says(Remote::Ended));
    assert_eq!(outcome, HookOutcome::Over(Ok(())));
    let ended = world.disk().elsewhere.map(|it| it.previous.ended);
    assert_eq!(ended, Some(true));
    assert_eq!(asking, Asking::default(), "the disk is asked for at once");
}

#[test]
fn previous_alloc_that_runs_is_asked_about_again_after_a_moment_from_its_index() {
    let (mut world, alloc, mut asking, outcome) = answered(says(Remote::Runs { index: 40 }));
    assert_eq!(outcome, HookOutcome::Again);
    assert_eq!(
        world.prerun(&alloc, &AwaitRemote, &mut asking),
        Began::Waits
    );
    world.pass(Span::secs(1));
    assert_eq!(world.prerun(&alloc, &AwaitRemote, &mut asking), asks(40));
}

#[test]
fn unknown_previous_alloc_is_not_awaited_and_tasks_learn_that_disk_is_empty() {
    let (world, alloc, _, outcome) = answered(says(Remote::Unknown));
    assert_eq!(outcome, HookOutcome::Over(Ok(())));
    assert_eq!(world.disk().elsewhere, None);
    let told = alloc.tasks().first().map_or("", last_words);
    assert!(
        told.contains("its node knows nothing of it. The disk begins empty"),
        "{told}"
    );
}

#[test]
fn node_that_does_not_answer_is_asked_again_later_and_the_reason_is_told() {
    let empty = Ok(HookOutput::default());
    let refused = Err(Failure::recoverable("connection refused"));
    for (result, why) in [
        (empty, "the answer is empty"),
        (refused, "connection refused"),
    ] {
        let (mut world, alloc, mut asking, outcome) = answered(result);
        assert_eq!(outcome, HookOutcome::Again);
        world.pass(Span::secs(29));
        assert_eq!(
            world.prerun(&alloc, &AwaitRemote, &mut asking),
            Began::Waits
        );
        let words = world.words(&alloc, &AwaitRemote, &asking);
        let of = previous();
        let expected = format!(
            "Waiting for allocation {} at {} to end; the last attempt failed: {why}",
            of.alloc.short(),
            of.address
        );
        assert_eq!(words, expected);
        world.pass(Span::secs(30));
        assert_eq!(world.prerun(&alloc, &AwaitRemote, &mut asking), asks(0));
    }
}

#[test]
fn answer_that_asking_again_does_not_mend_fails_the_setup() {
    let fatal = Failure::fatal("its token is refused");
    let (_, _, _, outcome) = answered(Err(fatal.clone()));
    assert_eq!(outcome, HookOutcome::Over(Err(fatal)));
}

#[test]
fn alloc_that_is_to_end_does_not_ask_again() {
    let mut world = World::new().with_disk(disk(previous()));
    let (mut alloc, mut asking) = (world.alloc(), Asking::default());
    world.prerun(&alloc, &AwaitRemote, &mut asking);
    alloc.stop(&mut world.cx());
    let runs = says(Remote::Runs { index: 40 });
    let outcome = world.answered(&mut alloc, &AwaitRemote, &mut asking, runs);
    assert_eq!(outcome, HookOutcome::Over(Ok(())));
}
