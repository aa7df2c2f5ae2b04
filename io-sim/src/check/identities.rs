//! Tokens: what a start finds of them, that they are good while the task runs, and that a new one is
//! told once.

use std::collections::BTreeMap;

use drover_core::agent::Agent;
use drover_core::input::TaskKey;
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::model::identity::{Identity, RenewMode};
use drover_core::model::task::Task;
use drover_core::task::runner::{Phase, TaskRunner};

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
}

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
    /// A task starts with tokens that were made for that start.
    pub(super) fn a_start_finds_its_tokens(&mut self, world: &World, task: &TaskRunner) -> Verdict {
        let key = &task.spec().key;
        if wanted(task.spec().task()).next().is_none() {
            return Ok(());
        }
        let now = numbers(world.tokens.get(key));
        self.identities.known.insert(key.clone(), now.clone());
        let before = self.identities.started.insert(key.clone(), now.clone());
        let before = before.unwrap_or_default();
        let is_new = |one: &Identity| now.get(one.name()) > before.get(one.name());
        let holds = wanted(task.spec().task()).all(is_new);
        self.holds(Property::AStartFindsItsTokens, holds, || {
            format!("{key:?} has {now:?}, and had {before:?} at the start before")
        })
    }

    /// Of each new token a task is told once, and only in the way that it wants.
    pub(super) fn a_new_token_is_told_once(
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
        let now = numbers(world.tokens.get(key));
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
        self.sometimes(Property::SometimesATokenRestarts, restarts);
        self.sometimes(Property::SometimesATokenSignals, !restarts);
        self.holds(Property::ANewTokenIsToldOnce, holds, || {
            format!("{key:?} knows {known:?} and is told of {now:?} by {mode:?}")
        })
    }

    /// What runs has tokens that are good.
    pub(super) fn a_token_is_good(&mut self, world: &World, agent: &Agent) -> Verdict {
        let allocs = agent.view().allocs();
        let running = |task: &&TaskRunner| matches!(task.phase(), Phase::Running);
        for task in allocs.flat_map(|alloc| alloc.tasks()).filter(running) {
            let key = &task.spec().key;
            for identity in wanted(task.spec().task()).filter(|one| one.ttl.0 > 0) {
                let tokens = world.tokens.get(key);
                let until = tokens.and_then(|tokens| tokens.get(identity.name())?.until);
                let holds = until.is_some_and(|until| until > world.at);
                self.holds(Property::ATokenIsGood, holds, || {
                    let (name, now) = (identity.name(), world.at);
                    format!("{key:?}: {name} is good until {until:?}, and it is {now:?}")
                })?;
            }
        }
        Ok(())
    }
}
