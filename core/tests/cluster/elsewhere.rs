//! What an allocation here replaces on another node of the cluster: its end is awaited, and its disk fetched.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::ids::AllocId;
use drover_core::input::HookOutput;
use drover_core::model::group::EphemeralDisk;
use drover_core::model::remote::{Remote, RemotePrevious};
use drover_core::op::Failure;
use drover_core::time::Span;
use drover_core::work::HookWork;

use crate::allocs::{job, placed, stop};
use crate::world::World;

/// What other nodes have, as far as hooks ask for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elsewhere {
    /// What runs there.
    pub(crate) runs: BTreeSet<AllocId>,
    /// Why nobody gives a disk away, for those of which nobody does.
    pub(crate) kept: BTreeMap<AllocId, String>,
    /// Whether nobody answers there.
    pub(crate) is_silent: bool,
    /// How often the end of something was asked for.
    pub(crate) asked: usize,
    /// Whose disks were asked for.
    pub(crate) fetched: Vec<RemotePrevious>,
}

impl Elsewhere {
    /// The answer to the work of a hook.
    pub(crate) fn answer(&mut self, work: HookWork) -> Result<HookOutput, Failure> {
        let mut output = HookOutput::default();
        let mut is_answered = true;
        if let HookWork::AskRemote(work) = &work {
            self.asked += 1;
            output.remote = Some(match self.runs.contains(&work.previous.alloc) {
                true => Remote::Runs { index: 1 },
                false => Remote::Ended,
            });
        }
        if let HookWork::FetchDisk(work) = work {
            if let Some(why) = self.kept.get(&work.previous.alloc) {
                output.remote = Some(Remote::Unknown);
                output.message.clone_from(why);
            }
            self.fetched.push(work.previous);
            is_answered = !self.is_silent;
        }
        let failure = || Failure::recoverable("it does not answer in time");
        is_answered.then_some(output).ok_or_else(failure)
    }
}

const PREVIOUS: AllocId = AllocId(900);
const NEW: AllocId = AllocId(2);

/// An allocation that replaces one of another node is placed here.
fn replaced(world: &mut World, migrate: bool) {
    let mut job = job("db", 0);
    job.task_groups[0].ephemeral_disk = Some(EphemeralDisk {
        sticky: true,
        migrate,
        size_mb: 0,
    });
    let mut new = placed(NEW.0, job);
    new.previous = Some(PREVIOUS);
    let token = (NEW, "a token".into());
    world.servers.migrate_tokens.extend([token]);
    world.servers.place(world.now, new);
}

fn starts(world: &World) -> u64 {
    world.checks.starts.get(&NEW).copied().unwrap_or(0)
}

/// What people are told of it.
fn told(world: &World) -> String {
    let alloc = world.agent.as_ref().and_then(|it| it.view().alloc(NEW));
    let tasks = alloc.into_iter().flat_map(|it| it.tasks());
    let events = tasks.flat_map(|it| it.state().events.iter());
    events.map(|event| format!("{event:?}\n")).collect()
}

#[test]
fn disk_migrates_when_the_previous_allocation_elsewhere_has_ended() {
    let mut world = World::quiet();
    world.elsewhere.runs.insert(PREVIOUS);
    replaced(&mut world, true);
    world.run(Span::secs(20));
    assert_eq!(starts(&world), 0, "the previous one still runs");
    assert!((5..=25).contains(&world.elsewhere.asked));
    world.elsewhere.runs.clear();
    world.run(Span::secs(5));
    assert_eq!(starts(&world), 1);
    let [fetched] = &world.elsewhere.fetched[..] else {
        panic!("{:?}", world.elsewhere.fetched);
    };
    assert_eq!(fetched.alloc, PREVIOUS);
    assert_eq!(fetched.token.expose(), "a token");
    let disks = world.agent.as_ref().map(|agent| agent.view().disks());
    let is_kept = disks.map(|disks| disks.values().any(|it| it.elsewhere.is_some()));
    assert_eq!(is_kept, Some(false), "the token is kept for nothing");
}

#[test]
fn end_elsewhere_is_awaited_without_a_disk_that_migrates() {
    let mut world = World::quiet();
    world.elsewhere.runs.insert(PREVIOUS);
    replaced(&mut world, false);
    world.run(Span::secs(5));
    assert_eq!(starts(&world), 0);
    world.elsewhere.runs.clear();
    world.run(Span::secs(5));
    assert_eq!(starts(&world), 1);
    assert!(world.elsewhere.fetched.is_empty());
}

#[test]
fn allocation_starts_without_a_disk_that_nobody_gives_away() {
    let mut world = World::quiet();
    let why = "its node is down".to_owned();
    world.elsewhere.kept.insert(PREVIOUS, why);
    replaced(&mut world, true);
    world.run(Span::secs(5));
    assert_eq!(starts(&world), 1);
    assert!(
        told(&world).contains("its node is down"),
        "{}",
        told(&world)
    );
}

#[test]
fn disk_of_a_node_that_does_not_answer_is_given_up_within_a_bound() {
    let mut world = World::quiet();
    world.elsewhere.is_silent = true;
    replaced(&mut world, true);
    world.run(Span::secs(60));
    assert_eq!(starts(&world), 0, "it may come yet");
    world.run(Span::secs(180));
    assert_eq!(starts(&world), 1);
    assert_eq!(world.elsewhere.fetched.len(), 5);
    let told = told(&world);
    assert!(told.contains("it does not answer in time"), "{told}");
}

#[test]
fn restarted_agent_awaits_the_same_and_fetches_the_disk_once() {
    let mut world = World::quiet();
    world.elsewhere.runs.insert(PREVIOUS);
    replaced(&mut world, true);
    world.run(Span::secs(5));
    world.crash(Span::secs(1));
    world.run(Span::secs(5));
    assert_eq!(starts(&world), 0, "the previous one still runs");
    world.elsewhere.runs.clear();
    world.run(Span::secs(5));
    world.crash(Span::secs(1));
    world.run(Span::secs(5));
    assert_eq!(starts(&world), 1);
    let fetched = world.elsewhere.fetched.iter();
    let tokens: Vec<&str> = fetched.map(|it| it.token.expose()).collect();
    assert_eq!(tokens, ["a token"]);
}

#[test]
fn replacement_of_one_that_waits_awaits_the_same() {
    let mut world = World::quiet();
    world.elsewhere.runs.insert(PREVIOUS);
    replaced(&mut world, true);
    world.run(Span::secs(5));
    stop(&mut world, NEW);
    let mut job = job("db", 1);
    job.task_groups[0].ephemeral_disk = Some(EphemeralDisk {
        sticky: true,
        migrate: true,
        size_mb: 0,
    });
    let mut third = placed(3, job);
    third.previous = Some(NEW);
    world.servers.place(world.now, third);
    world.run(Span::secs(10));
    assert_eq!(world.checks.starts.get(&AllocId(3)), None);
    world.elsewhere.runs.clear();
    world.run(Span::secs(5));
    assert_eq!(world.checks.starts.get(&AllocId(3)), Some(&1));
    let fetched = world.elsewhere.fetched.iter();
    let tokens: Vec<&str> = fetched.map(|it| it.token.expose()).collect();
    assert_eq!(tokens, ["a token"]);
}
