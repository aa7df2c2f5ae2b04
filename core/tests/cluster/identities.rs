//! Identities of tasks that servers placed: signed by the servers, before each start and again in time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::{Agent, Input, TaskWait, Wait};
use drover_core::alloc::runner::AllocRunner;
use drover_core::cx::Rng;
use drover_core::ids::{AllocId, TaskKey};
use drover_core::input::{HookInput, HookOutput};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::EventType;
use drover_core::model::identity::Identity;
use drover_core::model::job::Job;
use drover_core::op::{Failure, Op};
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::{Instant, Span};
use drover_core::work::Issuing;

use crate::allocs::{act, differences, job, placed, stop};
use crate::world::{World, dice};

/// How many worlds are tried in which nothing but allocations with identities is placed.
const SEEDS: u64 = 300;

/// How long the tokens of the named identity are good.
const TTL: Span = Span::secs(40);

/// The job, with the default identity and one whose tokens are good for a while.
pub(crate) fn signed(id: &str, version: u64) -> Job {
    let mut job = job(id, version);
    for task in job.task_groups.iter_mut().flat_map(|it| &mut it.tasks) {
        task.identity = Some(Identity {
            file: true,
            ..Identity::default()
        });
        task.identities = vec![Identity {
            name: "db".to_owned(),
            env: true,
            ttl: TTL,
            ..Identity::default()
        }];
    }
    job
}

/// The new version has the identities and templates of the old one: a change of them is another allocation.
pub(crate) fn keep_what_is_replaced(old: &Job, new: &mut Job) {
    let tasks = new.task_groups.iter_mut().flat_map(|it| &mut it.tasks);
    let old = old.task_groups.iter().flat_map(|it| &it.tasks);
    for (task, old) in tasks.zip(old) {
        task.identity.clone_from(&old.identity);
        task.identities.clone_from(&old.identities);
        task.templates.clone_from(&old.templates);
    }
}

fn names(task: &TaskRunner) -> Vec<String> {
    let task = task.spec().task();
    let all = task.identity.iter().chain(&task.identities);
    let all = all.filter(|it| it.env || it.file);
    all.map(|it| it.name().to_owned()).collect()
}

/// A token.
#[derive(Clone, Copy, Debug)]
struct Token {
    at: Instant,
    until: Option<Instant>,
}

/// A request to servers.
#[derive(Clone, Debug)]
pub(crate) struct Signing {
    pub(crate) op: Op,
    pub(crate) key: TaskKey,
    work: Arc<Issuing>,
}

/// The tokens that tasks have.
#[derive(Debug)]
pub(crate) struct Tokens {
    held: BTreeMap<TaskKey, BTreeMap<String, Token>>,
    /// Those that no start has found yet, with the version of the job for which they were made.
    fresh: BTreeMap<TaskKey, (BTreeSet<String>, u64)>,
    /// When a request for a task failed last.
    trouble: BTreeMap<TaskKey, Instant>,
    /// When there was no agent last.
    absent: Option<Instant>,
    pub(crate) asked: u64,
    pub(crate) signed: u64,
    /// Whether no request reaches the servers.
    pub(crate) lost: bool,
    /// Whether no answer is ever given.
    pub(crate) silent: bool,
    rng: Rng,
}

impl Tokens {
    pub(crate) fn new(seed: u64) -> Tokens {
        Tokens {
            held: BTreeMap::new(),
            fresh: BTreeMap::new(),
            trouble: BTreeMap::new(),
            absent: None,
            asked: 0,
            signed: 0,
            lost: false,
            silent: false,
            rng: Rng::new(seed ^ 0x1d),
        }
    }

    /// There is no agent that could ask.
    pub(crate) fn agent_is_absent(&mut self, now: Instant) {
        self.absent = Some(now);
    }

    /// Whether something kept a task from a new token since then.
    fn was_hindered(&self, key: &TaskKey, since: Instant) -> bool {
        let trouble = self.trouble.get(key).copied();
        trouble.into_iter().chain(self.absent).any(|at| at >= since)
    }

    fn take(&mut self, now: Instant, signing: &Signing, version: u64) {
        let held = self.held.entry(signing.key.clone()).or_default();
        let (fresh, of) = self.fresh.entry(signing.key.clone()).or_default();
        *of = version;
        for identity in &signing.work.identities {
            let until = (identity.ttl.0 > 0).then(|| now + identity.ttl);
            held.insert(identity.name.clone(), Token { at: now, until });
            fresh.insert(identity.name.clone());
        }
        self.signed += 1;
    }

    /// What is wrong with a task that is started now.
    pub(crate) fn started(&mut self, now: Instant, task: &TaskRunner) -> Vec<String> {
        let key = &task.spec().key;
        let (fresh, version) = self.fresh.remove(key).unwrap_or_default();
        // What another version wants besides, the task gets as soon as it runs.
        let wanted = names(task);
        let wanted = wanted
            .iter()
            .filter(|_| version == task.spec().job().version);
        let held = self.held.get(key);
        let lacks = |name: &&String| {
            let token = held.and_then(|held| held.get(*name));
            let good = token.is_some_and(|token| token.until.is_none_or(|until| now < until));
            !good || !fresh.contains(*name)
        };
        let lacking: Vec<String> = wanted.filter(lacks).cloned().collect();
        let none = fresh.is_empty() && !names(task).is_empty();
        match none || !lacking.is_empty() {
            true => vec![format!(
                "{key:?} is started at {now:?} without its identities {lacking:?}"
            )],
            false => Vec::new(),
        }
    }

    /// What is wrong with the tokens of a task that runs: one is good no more, and nothing kept it from a new one.
    fn expired(&self, now: Instant, task: &TaskRunner) -> Option<String> {
        let key = &task.spec().key;
        let held = self.held.get(key)?;
        let wanted = names(task);
        let mut old = held.iter().filter(|(name, token)| {
            let Some(until) = token.until.filter(|until| *until < now) else {
                return false;
            };
            let half = token.at + Span((until - token.at).0 / 2);
            wanted.contains(name) && !self.was_hindered(key, half)
        });
        let (name, _) = old.next()?;
        Some(format!(
            "{key:?} runs at {now:?} with a token of {name} that is good no more"
        ))
    }
}

/// The tasks that run and are to run on.
fn running(agent: &Agent) -> impl Iterator<Item = &TaskRunner> {
    let allocs = agent.view().allocs();
    let placed = allocs.filter(|it| it.record().of_servers && !it.is_ending());
    let tasks = placed.flat_map(AllocRunner::tasks);
    tasks.filter(|it| matches!(it.phase(), Phase::Running) && !it.is_ending())
}

/// What is wrong when nothing failed for a while.
pub(crate) fn wrong_identities(world: &World) -> Vec<String> {
    let Some(agent) = &world.agent else {
        return Vec::new();
    };
    let lacks = |task: &TaskRunner| {
        let held = world.tokens.held.get(&task.spec().key);
        let is_good = |name: &String| {
            let token = held.and_then(|held| held.get(name));
            token.is_some_and(|it| it.until.is_none_or(|until| world.now < until))
        };
        !names(task).iter().all(is_good)
    };
    let lacking = running(agent).filter(|task| lacks(task));
    let mut wrong: Vec<String> = lacking
        .map(|task| format!("{:?} lacks a token", task.spec().key))
        .collect();
    if waits(agent) {
        wrong.push("a task still waits for its identities".to_owned());
    }
    wrong
}

/// Whether a task waits for servers to sign.
fn waits(agent: &Agent) -> bool {
    let is_it = |wait: &Wait| matches!(wait, Wait::Task(_, TaskWait::Identities));
    agent.pending().awaiting.iter().any(|it| is_it(&it.wait))
}

impl World {
    /// Tokens are asked for.
    pub(crate) fn ask_to_sign(&mut self, op: Op, key: TaskKey, work: Arc<Issuing>) {
        self.tokens.asked += 1;
        self.check_request(&key, &work);
        let percent = dice(&mut self.tokens.rng, 100);
        let lost = self.unreachable
            || self.tokens.lost
            || !self.calm && percent < self.servers.trouble.lost;
        if lost || self.tokens.silent {
            self.tokens.trouble.insert(key.clone(), self.now);
            // Half of them are never heard of again.
            if !self.tokens.silent && dice(&mut self.tokens.rng, 2) == 0 {
                self.answer_signing(op, key, Err(Failure::recoverable("no server answers")));
            }
            return;
        }
        let pauses = match self.calm {
            true => [1, 1, 1, 1],
            false => [0, 1, 300, 2000],
        };
        let at = usize::try_from(dice(&mut self.tokens.rng, 4)).unwrap_or(0);
        self.sign_later(Span::millis(pauses[at]), Signing { op, key, work });
    }

    /// A request reaches the servers.
    pub(crate) fn sign(&mut self, signing: &Signing) {
        let agent = self.agent.as_ref();
        // What is not awaited any more was cancelled on its way.
        let awaited = agent.and_then(|it| it.view().operations().get(signing.op));
        if awaited.is_none() {
            return;
        }
        let key = &signing.key;
        let refused = !self.calm && dice(&mut self.tokens.rng, 100) < self.servers.trouble.refused;
        let result = match self.servers.allocs.get(&key.alloc) {
            _ if refused => Err(Failure::recoverable("No cluster leader")),
            None => Err(Failure::recoverable("allocation not found")),
            Some(_) => Ok(HookOutput::default()),
        };
        if result.is_err() {
            self.tokens.trouble.insert(key.clone(), self.now);
        } else {
            let alloc = agent.and_then(|it| it.view().alloc(key.alloc));
            let version = alloc.map_or(0, |it| it.job().version);
            self.tokens.take(self.now, signing, version);
        }
        self.answer_signing(signing.op, key.clone(), result);
    }

    fn answer_signing(&mut self, op: Op, key: TaskKey, result: Result<HookOutput, Failure>) {
        let TaskKey { alloc, task } = key;
        let task = Some(task);
        self.input(
            Span::millis(3),
            Input::Hook(HookInput {
                op,
                alloc,
                task,
                result,
            }),
        );
    }

    /// A hook's answer is not wanted any more; it comes nevertheless, and soon.
    pub(crate) fn cancel_hook(&mut self, op: Op) {
        let agent = self.agent.as_ref();
        let awaited = agent.and_then(|it| it.view().operations().get(op));
        let Some(owner) = awaited.map(|it| it.owner.clone()) else {
            return;
        };
        if let drover_core::operations::Owner::Task(key) = owner {
            self.answer_signing(op, key, Err(Failure::recoverable("it was cancelled")));
        }
    }

    fn check_request(&mut self, key: &TaskKey, work: &Issuing) {
        let agent = self.agent.as_ref();
        let alloc = agent.and_then(|it| it.view().alloc(key.alloc));
        let task = alloc.and_then(|it| it.task(&key.task));
        let is_over = alloc.is_none_or(|it| it.is_ending() || it.is_gone())
            || task.is_none_or(|it| it.is_dead() || it.is_ending());
        if is_over {
            let what = format!("tokens are asked for {key:?}, which is over");
            self.checks.wrong.push(what);
        }
        if work.authority.is_node() {
            self.checks
                .wrong
                .push(format!("tokens of {key:?} are signed here"));
        }
    }

    /// After each step.
    pub(crate) fn check_tokens(&mut self) {
        let Some(agent) = &self.agent else {
            return self.tokens.agent_is_absent(self.now);
        };
        let expired = running(agent).find_map(|task| self.tokens.expired(self.now, task));
        if let Some(wrong) = expired
            && self.checks.wrong.len() < 20
        {
            self.checks.wrong.push(wrong);
        }
    }
}

/// One allocation with identities, which runs.
fn one() -> World {
    let mut world = World::quiet();
    world.servers.place(world.now, placed(1, signed("web", 0)));
    world.run(Span::secs(5));
    assert_eq!(world.living().count(), 1);
    world
}

fn agrees(world: &World) {
    assert_eq!(differences(world), Vec::<String>::new());
}

#[track_caller]
fn waits_in(world: &World) -> bool {
    world.agent.as_ref().is_some_and(waits)
}

/// How often the allocation's task was told of something by an event of this kind.
fn told(world: &World, kind: EventType) -> usize {
    let agent = world.agent.as_ref();
    let alloc = agent.and_then(|it| it.view().alloc(AllocId(1)));
    let tasks = alloc.into_iter().flat_map(AllocRunner::tasks);
    let events = tasks.flat_map(|task| &task.state().events);
    events.filter(|event| event.kind == kind).count()
}

#[test]
fn tasks_have_good_tokens_after_any_trouble() {
    let (mut signed_all, mut hindered) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        let mut next = 100;
        for _ in 0..40 {
            let pause = 1 + dice(&mut world.rng, 15);
            world.run(Span::secs(i64::try_from(pause).unwrap_or(1)));
            act(&mut world, &mut next);
            next += 1;
            let one = placed(next, signed("web", 0));
            world.servers.place(world.now, one);
            if dice(&mut world.rng, 12) == 0 {
                world.crash(Span::secs(5));
            }
        }
        world.calm = true;
        world.run(Span::secs(600));
        let wrong = differences(&world);
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
        signed_all += world.tokens.signed;
        hindered += world.tokens.asked - world.tokens.signed;
    }
    assert!(signed_all > 10 * SEEDS && hindered > SEEDS);
}

#[test]
fn task_waits_for_servers_that_do_not_sign_its_identities() {
    let mut world = World::quiet();
    world.run(Span::secs(30));
    world.tokens.lost = true;
    world.servers.place(world.now, placed(1, signed("web", 0)));
    world.run(Span::secs(600));
    assert_eq!(world.living().count(), 0);
    assert!(waits_in(&world));
    let asked = world.tokens.asked;
    assert!((10..=60).contains(&asked), "{asked} requests");
    assert_eq!(told(&world, EventType::HookFailed), 1);
    world.tokens.lost = false;
    world.run(Span::secs(20));
    assert_eq!(world.living().count(), 1);
    assert!(!waits_in(&world));
    let status = world.servers.allocs[&AllocId(1)].placed.client_status;
    assert_eq!(status, ClientStatus::Running);
    agrees(&world);
}

#[test]
fn identity_that_servers_sign_again_costs_nothing_but_the_wait() {
    let mut world = World::quiet();
    world.run(Span::secs(30));
    world.tokens.lost = true;
    world.servers.place(world.now, placed(1, signed("web", 0)));
    world.run(Span::millis(500));
    world.tokens.lost = false;
    // The limit of the request that was never answered, and a pause.
    world.run(Span::secs(13));
    assert_eq!(world.living().count(), 1);
    assert_eq!(told(&world, EventType::Restarting), 0);
    agrees(&world);
}

#[test]
fn task_that_waits_for_its_identities_ends_at_once() {
    for silent in [true, false] {
        let mut world = World::quiet();
        world.run(Span::secs(30));
        (world.tokens.lost, world.tokens.silent) = (true, silent);
        world.servers.place(world.now, placed(1, signed("web", 0)));
        world.run(Span::secs(100));
        stop(&mut world, AllocId(1));
        world.run(Span::secs(1));
        let status = world.servers.allocs[&AllocId(1)].placed.client_status;
        assert_eq!(status, ClientStatus::Complete, "silent: {silent}");
        let asked = world.tokens.asked;
        world.run(Span::secs(600));
        assert_eq!(world.tokens.asked, asked);
        (world.tokens.lost, world.tokens.silent) = (false, false);
        agrees(&world);
    }
}

#[test]
fn token_is_renewed_before_its_time_is_over() {
    let mut world = one();
    let signed = world.tokens.signed;
    world.run(Span::secs(3600));
    let renewed = world.tokens.signed - signed;
    assert!((150..=200).contains(&renewed), "{renewed} renewals");
    agrees(&world);
}

#[test]
fn failed_renewal_is_made_again_in_time() {
    let mut world = one();
    let (asked, signed) = (world.tokens.asked, world.tokens.signed);
    world.run(Span::secs(10));
    // It falls into the first half of the time that is left.
    world.tokens.lost = true;
    world.run(Span::secs(12));
    assert!(world.tokens.asked > asked, "no renewal was asked for");
    assert_eq!(world.tokens.signed, signed);
    world.tokens.lost = false;
    world.run(Span::secs(12));
    assert_eq!(world.tokens.signed, signed + 1);
    agrees(&world);
    assert_eq!(world.checks.starts.get(&AllocId(1)), Some(&1));
}

/// Nobody hears of the request again, and servers answer the next one.
#[test]
fn renewal_that_is_never_answered_is_made_again_in_time() {
    let mut world = one();
    let (asked, signed) = (world.tokens.asked, world.tokens.signed);
    world.run(Span::secs(13));
    world.tokens.silent = true;
    world.run(Span::secs(4));
    assert_eq!(world.tokens.asked, asked + 1, "no renewal was asked for");
    world.tokens.silent = false;
    world.run(Span::secs(19));
    assert_eq!(world.tokens.signed, signed + 1);
    agrees(&world);
}

#[test]
fn restarted_agent_goes_on_with_the_tokens_that_there_are() {
    let mut world = one();
    let signed = world.tokens.signed;
    world.crash(Span::secs(1));
    world.run(Span::secs(10));
    assert_eq!(world.tokens.signed, signed);
    world.run(Span::secs(20));
    assert_eq!(world.tokens.signed, signed + 1);
    agrees(&world);
}
