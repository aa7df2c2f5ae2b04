//! Tokens: who has which, and until when they are good.

use drover_core::ids::TaskKey;
use std::collections::BTreeMap;

use drover_core::alloc::runner::AllocRunner;
use drover_core::time::Instant;
use drover_core::work::Issuing;
use serde::Serialize;

/// A token of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Token {
    /// How many there were of this identity, with this one.
    pub number: u32,
    /// When it is good no more; never if none.
    pub until: Option<Instant>,
}

/// The latest tokens of all tasks, by the names of their identities.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    of_task: BTreeMap<TaskKey, BTreeMap<String, Token>>,
}

impl Tokens {
    /// Those of a task.
    pub fn of(&self, key: &TaskKey) -> Option<&BTreeMap<String, Token>> {
        self.of_task.get(key)
    }

    /// Those of each task that ever had any.
    pub fn iter(&self) -> impl Iterator<Item = (&TaskKey, &BTreeMap<String, Token>)> {
        self.of_task.iter()
    }

    /// Whether an allocation that is not over has tokens that are made anew after a while.
    pub(crate) fn are_renewed_in(&self, alloc: &AllocRunner) -> bool {
        let mut tasks = alloc.tasks().iter();
        !alloc.record().finished && tasks.any(|task| self.are_renewed_of(&task.spec().key))
    }

    /// Whether this task has such tokens.
    pub(crate) fn are_renewed_of(&self, key: &TaskKey) -> bool {
        let tokens = self.of(key).into_iter().flatten();
        tokens.into_iter().any(|(_, token)| token.until.is_some())
    }

    /// Makes tokens for a task.
    pub(crate) fn issue(&mut self, now: Instant, key: &TaskKey, asked: &Issuing) {
        let tokens = self.of_task.entry(key.clone()).or_default();
        for identity in &asked.identities {
            let token = tokens.entry(identity.name.clone()).or_default();
            token.number += 1;
            token.until = (identity.ttl.0 > 0).then(|| now + identity.ttl);
        }
    }
}
