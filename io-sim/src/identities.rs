//! Tokens: who has which, and until when they are good.

use drover_core::ids::TaskKey;
use std::collections::BTreeMap;

use drover_core::alloc::runner::AllocRunner;
use drover_core::time::Instant;
use drover_core::work::Issuing;
use serde::Serialize;

use crate::world::World;

/// A token of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Token {
    /// How many there were of this identity, with this one.
    pub number: u32,
    /// When it is good no more; never if none.
    pub until: Option<Instant>,
}

/// The latest tokens of all tasks, by the names of their identities.
pub type Tokens = BTreeMap<TaskKey, BTreeMap<String, Token>>;

impl World {
    /// The latest tokens of all tasks.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Whether an allocation that is not over has tokens that are made anew after a while.
    pub(crate) fn renews_in(&self, alloc: &AllocRunner) -> bool {
        let mut tasks = alloc.tasks().iter();
        !alloc.record().finished && tasks.any(|task| self.renews_of(&task.spec().key))
    }

    /// Whether this task has such tokens.
    pub(crate) fn renews_of(&self, key: &TaskKey) -> bool {
        let tokens = self.tokens.get(key).into_iter().flatten();
        tokens.into_iter().any(|(_, token)| token.until.is_some())
    }

    /// Makes tokens for a task.
    pub(crate) fn issue(&mut self, key: &TaskKey, asked: &Issuing) {
        let tokens = self.tokens.entry(key.clone()).or_default();
        for identity in &asked.identities {
            let token = tokens.entry(identity.name.clone()).or_default();
            token.number += 1;
            token.until = (identity.ttl.0 > 0).then(|| self.at + identity.ttl);
        }
    }
}
