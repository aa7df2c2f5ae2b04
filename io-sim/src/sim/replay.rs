//! The same inputs lead to the same effects.

use std::hash::Hasher;

use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::input::Input;
use drover_core::store::Saved;
use drover_core::time::Now;

use super::hash_of;
use crate::check::{Verdict, ensure};
use crate::hash::Fold;

/// One life of an agent: how it began, what it was told, and what it did.
#[derive(Clone, Debug, Default)]
pub(super) struct Tape {
    began: Option<(Config, Saved, Now)>,
    inputs: Vec<(Now, Option<Input>)>,
    effects: Fold,
}

impl Tape {
    pub(super) fn new(config: Config, saved: Saved, now: Now) -> Tape {
        Tape {
            began: Some((config, saved, now)),
            ..Tape::default()
        }
    }

    pub(super) fn record(&mut self, now: Now, input: Option<Input>) {
        if self.began.is_some() {
            self.inputs.push((now, input));
        }
    }

    pub(super) fn effect(&mut self, hash: u64) {
        self.effects.write_u64(hash);
    }

    /// Another agent that is told the same does the same.
    pub(super) fn plays_the_same(&self) -> Verdict {
        let Some((config, saved, now)) = &self.began else {
            return Ok(());
        };
        let mut agent = Agent::restore(config.clone(), saved.clone(), *now);
        let mut effects = Fold::default();
        let mut drain = |agent: &mut Agent| {
            while let Some(effect) = agent.poll_effect() {
                effects.write_u64(hash_of(&effect));
            }
        };
        drain(&mut agent);
        for (now, input) in &self.inputs {
            match input {
                Some(input) => agent.handle(*now, input.clone()),
                None => agent.handle_timeout(*now),
            }
            drain(&mut agent);
        }
        ensure(
            effects.finish() == self.effects.finish(),
            "same_inputs_same_effects",
            || format!("after {} inputs", self.inputs.len()),
        )
    }
}
