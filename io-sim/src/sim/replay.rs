//! The same inputs lead to the same effects.

use std::hash::Hasher;

use drover_core::agent::{Agent, Input};
use drover_core::config::Config;
use drover_core::effect::Effect;
use drover_core::store::Saved;
use drover_core::time::Now;
use drover_recorder::file::End;
use drover_recorder::{FORMAT, Header, Start, Step};

use super::{Sim, mark_of};
use crate::check::{Verdict, ensure};
use crate::hash::StateHasher;
use crate::replay::{Segment, outcome};

/// Of so many states in a recording the first is hashed.
const HASHED_EACH: usize = 7;

/// One life of an agent: how it began, what it was told, and what it did.
#[derive(Clone, Debug, Default)]
pub(super) struct Tape {
    began: Option<(Config, Saved, Now)>,
    inputs: Vec<(Now, Option<Input>)>,
    effects: StateHasher,
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

    /// The same inputs lead to the same effects.
    pub(super) fn plays_the_same(&self, deep: bool) -> Verdict {
        let Some((config, saved, now)) = &self.began else {
            return Ok(());
        };
        let mut agent = Agent::restore(config.clone(), saved.clone(), *now);
        let mut effects = StateHasher::default();
        let mut drain = |agent: &mut Agent| {
            while let Some(effect) = agent.poll_effect() {
                effects.write_u64(mark_of(&effect, deep));
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

impl Sim {
    /// This life of the agent as a flight recorder would have it, with nothing hidden; none if
    /// no agent has lived yet.
    pub fn recording(&self) -> Option<Segment> {
        let (config, saved, now) = self.tape.began.clone()?;
        let mut agent = Agent::restore(config.clone(), saved.clone(), now);
        let drain = |agent: &mut Agent| -> Vec<Effect> {
            core::iter::from_fn(|| agent.poll_effect()).collect()
        };
        let header = Header {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            life: self.seed.to_string(),
            step: 0,
            gap: false,
            start: Start::Restore {
                config: Box::new(config),
                saved: Box::new(saved),
                now,
                outcome: outcome(&drain(&mut agent), None),
            },
        };
        let mut steps = Vec::with_capacity(self.tape.inputs.len());
        for (nth, (now, input)) in self.tape.inputs.iter().cloned().enumerate() {
            match input.clone() {
                Some(input) => agent.handle(now, input),
                None => agent.handle_timeout(now),
            }
            let effects = drain(&mut agent);
            let outcome = outcome(&effects, (nth % HASHED_EACH == 0).then_some(&agent));
            steps.push(Step {
                now,
                input,
                outcome,
            });
        }
        Some(Segment {
            name: format!("seed {}", self.seed),
            header,
            steps,
            end: End::Whole,
        })
    }
}
