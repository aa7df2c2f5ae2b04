//! Tokens: what a start finds of them, that they are good while the task runs, and that a task
//! learns of a new one once.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{Run, TaskKey};
use drover_core::input::HookInput;
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::model::identity::{Identity, RenewMode};
use drover_core::model::task::Task;
use drover_core::op::Op;
use drover_core::task::runner::{Phase, TaskRunner, TaskTimer};
use drover_core::time::{Instant, Span};
use drover_core::work::{IdentityWork, Issuing};

use super::{Checker, Property, Verdict};
use crate::identities::Token;
use crate::world::World;

/// Of which tokens tasks know, by their numbers, through all lives of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Identities {
    /// Since its start, or since it was told.
    known: BTreeMap<TaskKey, BTreeMap<String, u32>>,
    /// Since its last start.
    started: BTreeMap<TaskKey, BTreeMap<String, u32>>,
    /// What servers were asked to sign for a start and did not answer yet, and for whom.
    asked: BTreeMap<Op, TaskKey>,
    /// Which tokens are being made by this life of the agent, and when those were made that it knows.
    making: BTreeMap<Op, (TaskKey, Vec<IdentityWork>)>,
    made: BTreeMap<(TaskKey, String), Made>,
    /// When tokens could not be made last, as long as nobody asked again.
    pub(super) failed: BTreeMap<TaskKey, Instant>,
    /// Of whom they refused to sign it.
    refused: BTreeMap<TaskKey, Refused>,
}

/// A token that was made.
#[derive(Clone, Copy, Debug)]
struct Made {
    /// When, since the beginning.
    at: Span,
    /// For how long it is good.
    ttl: Span,
    /// Whether the disk holds anything of its task that was written since: the next agent knows of it then.
    is_saved: bool,
}

/// Servers refused to sign what a start needs.
#[derive(Clone, Copy, Debug, Default)]
struct Refused {
    /// The start, and the version of the job.
    start: (Run, u64),
    times: u32,
    /// When they did last, since the beginning; not known if they never answered.
    at: Option<Span>,
}

impl Refused {
    /// The pause before they are asked again: it doubles from a second up to a quarter of a minute.
    fn pause(self) -> Span {
        let doubled = Span::secs(1 << self.times.saturating_sub(1).min(4));
        doubled.min(Span::secs(15))
    }
}

impl Identities {
    /// The next agent asks as if nobody had.
    pub(super) fn agent_died(&mut self) {
        self.asked.clear();
        self.making.clear();
        self.made.retain(|_, made| made.is_saved);
        self.failed.clear();
        self.refused.clear();
    }

    /// The disk holds a task's record as it is now.
    pub(super) fn saved(&mut self, key: &TaskKey) {
        let first = (key.clone(), String::new());
        let of_task = self.made.range_mut(first..);
        let of_task = of_task.take_while(|((of, _), _)| of == key);
        of_task.for_each(|(_, made)| made.is_saved = true);
    }

    /// A hook's answer is about to be taken; one that nobody awaits any more is none.
    pub(super) fn delivered(&mut self, world: &World, agent: &Agent, answer: &HookInput) {
        if agent.view().operations().get(answer.op).is_none() {
            return;
        }
        let making = self.making.remove(&answer.op);
        match making {
            Some((key, _)) if answer.result.is_err() => {
                self.failed.insert(key, world.scene.at);
            }
            Some((key, identities)) => {
                let made = identities.into_iter();
                let new = |ttl| Made {
                    at: world.elapsed(),
                    ttl,
                    is_saved: false,
                };
                self.made
                    .extend(made.map(|one| ((key.clone(), one.name), new(one.ttl))));
            }
            None => {}
        }
        let Some(key) = self.asked.remove(&answer.op) else {
            return;
        };
        match (&answer.result, self.refused.get_mut(&key)) {
            (Err(why), Some(refused)) if why.recoverable => {
                refused.times += 1;
                refused.at = Some(world.elapsed());
            }
            (Ok(_) | Err(_), _) => {
                self.refused.remove(&key);
            }
        }
    }
}

/// How late an agent may be called back, and the most that is added to a pause.
const SLACK: Span = Span::secs(66);

/// How far the clocks of two lives of an agent may differ.
const ROUNDING: Span = Span::secs(2);

/// By then who runs was told of a new token.
const SOON: Span = Span::secs(60);

fn wanted(task: &Task) -> impl Iterator<Item = &Identity> {
    let all = task.identity.iter().chain(&task.identities);
    all.filter(|identity| identity.env || identity.file)
}

fn numbers(tokens: Option<&BTreeMap<String, Token>>) -> BTreeMap<String, u32> {
    let tokens = tokens.into_iter().flatten();
    tokens
        .map(|(name, token)| (name.clone(), token.number))
        .collect()
}

impl Checker {
    /// A task starts with identity tokens issued for that start.
    pub(super) fn start_has_its_identity_tokens(
        &mut self,
        world: &World,
        task: &TaskRunner,
    ) -> Verdict {
        let key = &task.spec().key;
        if wanted(task.spec().task()).next().is_none() {
            return Ok(());
        }
        let now = numbers(world.tokens.of(key));
        self.identities.known.insert(key.clone(), now.clone());
        let before = self.identities.started.insert(key.clone(), now.clone());
        let before = before.unwrap_or_default();
        let is_new = |one: &Identity| now.get(one.name()) > before.get(one.name());
        let holds = wanted(task.spec().task()).all(is_new);
        self.holds(Property::StartHasItsIdentityTokens, holds, || {
            format!("{key:?} has {now:?}, and had {before:?} at the start before")
        })
    }

    /// Servers that refuse to sign the tokens of a start are asked again: less and less often, and in time.
    pub(crate) fn refused_signing_is_repeated_in_time(
        &mut self,
        world: &World,
        agent: &Agent,
        op: Op,
        key: &TaskKey,
    ) -> Verdict {
        let alloc = agent.view().alloc(key.alloc);
        let task = alloc.and_then(|alloc| alloc.task(&key.task));
        let Some(task) = task.filter(|task| matches!(task.phase(), Phase::Preparing(_))) else {
            return Ok(());
        };
        let start = (task.record().runs, task.spec().job().version);
        let own = self.identities.asked.extract_if(.., |_, of| of == key);
        let unanswered = own.count() > 0;
        self.identities.asked.insert(op, key.clone());
        let known = self.identities.refused.entry(key.clone()).or_default();
        if known.start != start {
            *known = Refused {
                start,
                ..Refused::default()
            };
        }
        if unanswered {
            (known.times, known.at) = (known.times + 1, None);
        }
        let refused = *known;
        let Some(at) = refused.at else {
            return Ok(());
        };
        let (waited, pause) = (world.elapsed().0 - at.0, refused.pause().0);
        let holds = (pause..=pause + SLACK.0).contains(&waited);
        self.holds(Property::RefusedSigningIsRepeatedInTime, holds, || {
            format!("{key:?} asks again after {:?}: {refused:?}", Span(waited))
        })
    }

    /// Whether all versions of a job want a token of a task to be good for the same time.
    fn wants_one_ttl(&self, alloc: &AllocRunner, key: &TaskKey, name: &str) -> bool {
        let tasks = self.files.tasks(alloc, key).into_iter();
        let ttl = |task| wanted(task).find(|it| it.name() == name).map(|it| it.ttl);
        let ttls: BTreeSet<_> = tasks.map(ttl).collect();
        ttls.len() == 1
    }

    /// While a task runs each of its tokens is made anew when half of its time is over, and no sooner.
    pub(crate) fn token_is_not_renewed_before_its_time(
        &mut self,
        world: &World,
        agent: &Agent,
        op: Op,
        key: &TaskKey,
        work: &Issuing,
    ) -> Verdict {
        let alloc = agent.view().alloc(key.alloc);
        let task = alloc.and_then(|alloc| alloc.task(&key.task));
        self.identities.failed.remove(key);
        self.identities
            .making
            .insert(op, (key.clone(), work.identities.clone()));
        let runs = task.is_some_and(|task| matches!(task.phase(), Phase::Running));
        // Until when a token is good is said in the time of the wall.
        if !runs || world.scene.wall_jumps > 0 {
            return Ok(());
        }
        // A version may want tokens that are good for another time, and the next one not.
        let is_same = |name: &str| alloc.is_some_and(|alloc| self.wants_one_ttl(alloc, key, name));
        let names = work.identities.iter().map(|it| it.name.clone());
        let same: BTreeSet<String> = names.filter(|name| is_same(name)).collect();
        for identity in &work.identities {
            let made = self
                .identities
                .made
                .get(&(key.clone(), identity.name.clone()));
            let made = made.filter(|_| same.contains(&identity.name));
            let now = world.elapsed();
            let early = made
                .filter(|made| now.0 < made.at.0 + made.ttl.0 / 2 - ROUNDING.0)
                .copied();
            self.holds(
                Property::TokenIsNotRenewedBeforeItsTime,
                early.is_none(),
                || {
                    format!(
                        "{key:?}: {} was made at {early:?}, it is {now:?}",
                        identity.name
                    )
                },
            )?;
        }
        Ok(())
    }

    /// Each renewed token is applied to a task once, by its change mode.
    pub(super) fn renewed_token_is_applied_once(
        &mut self,
        world: &World,
        task: &TaskRunner,
        event: &TaskEvent,
    ) -> Verdict {
        let mode = match event.kind {
            EventType::RestartSignaled => RenewMode::Restart,
            EventType::Signaling => RenewMode::Signal,
            _ => return Ok(()),
        };
        if !event.display_message.contains("token") {
            return Ok(());
        }
        let key = &task.spec().key;
        let now = numbers(world.tokens.of(key));
        let known = self.identities.known.insert(key.clone(), now.clone());
        let known = known.unwrap_or_default();
        let is_told =
            |one: &Identity| one.change_mode == mode && now.get(one.name()) > known.get(one.name());
        let holds = wanted(task.spec().task()).any(is_told);
        let restarts = mode == RenewMode::Restart;
        if restarts {
            // It is as if somebody had asked.
            self.lives.task(key).asks += 1;
            self.lives.asked_again.insert(key.alloc);
        }
        self.sometimes(Property::SometimesTokenRestartsTask, restarts);
        self.sometimes(Property::SometimesTokenSignalsTask, !restarts);
        self.holds(Property::RenewedTokenIsAppliedOnce, holds, || {
            format!("{key:?} knows {known:?} and is notified of {now:?} by {mode:?}")
        })
    }

    /// The time at which it gets a new token comes before the old one is good no more, in every life
    /// of the agent. It is counted by the wall's clock, and after a failure tried again soon.
    pub(super) fn token_is_renewed_before_expiry(
        &mut self,
        world: &World,
        task: &TaskRunner,
    ) -> Verdict {
        if !matches!(task.phase(), Phase::Running) || world.scene.wall_jumps > 0 || self.leaving {
            return Ok(());
        }
        let Some((due, TaskTimer::Identity)) = task.deadline() else {
            return Ok(());
        };
        let tokens = world.tokens.of(&task.spec().key);
        for identity in wanted(task.spec().task()).filter(|one| one.ttl.0 > 0) {
            let token = tokens.and_then(|tokens| tokens.get(identity.name()));
            let until = token.and_then(|token| token.until);
            // Of one that is hardly good any more trying again may come too late.
            let fresh = until.filter(|until| *until - world.scene.at > Span(identity.ttl.0 / 4));
            let holds = fresh.is_none_or(|until| due < until);
            self.holds(Property::TokenIsRenewedBeforeExpiry, holds, || {
                let (key, name) = (&task.spec().key, identity.name());
                format!("{key:?}: {name} is good until {until:?}, and due at {due:?}")
            })?;
        }
        Ok(())
    }

    /// Who runs knows the latest of its tokens, if it wants to be told and there was time for it.
    pub(super) fn task_has_current_token(&mut self, world: &World, task: &TaskRunner) -> Verdict {
        let key = &task.spec().key;
        let known = self.identities.known.get(key).cloned().unwrap_or_default();
        let tokens = world.tokens.of(key).cloned().unwrap_or_default();
        let reported = |one: &&Identity| one.change_mode != RenewMode::Noop && one.ttl.0 > 0;
        for identity in wanted(task.spec().task()).filter(reported) {
            let token = tokens.get(identity.name()).copied().unwrap_or_default();
            let left = token.until.map(|until| until - world.scene.at);
            let is_old = left.is_some_and(|left| left.0 < identity.ttl.0 - SOON.0);
            let number = known.get(identity.name());
            let holds = !is_old || number == Some(&token.number);
            self.holds(Property::TaskHasCurrentToken, holds, || {
                format!("{key:?} knows {number:?} of {}: {token:?}", identity.name())
            })?;
        }
        Ok(())
    }

    /// A running task has tokens that have not expired.
    pub(super) fn token_is_valid(&mut self, world: &World, agent: &Agent) -> Verdict {
        let allocs = agent.view().allocs();
        let running = |task: &&TaskRunner| matches!(task.phase(), Phase::Running);
        for task in allocs.flat_map(|alloc| alloc.tasks()).filter(running) {
            self.task_has_current_token(world, task)?;
            let key = &task.spec().key;
            for identity in wanted(task.spec().task()).filter(|one| one.ttl.0 > 0) {
                let tokens = world.tokens.of(key);
                let until = tokens.and_then(|tokens| tokens.get(identity.name())?.until);
                let holds = until.is_some_and(|until| until > world.scene.at);
                self.holds(Property::TokenIsValid, holds, || {
                    let (name, now) = (identity.name(), world.scene.at);
                    format!("{key:?}: {name} is good until {until:?}, and it is {now:?}")
                })?;
            }
        }
        Ok(())
    }
}
