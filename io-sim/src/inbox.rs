//! Inputs on their way to the agent: one queue for each source, in order within it.

use std::collections::{BTreeMap, VecDeque};

use drover_core::ids::LaunchId;
use drover_core::input::Input;
use drover_core::op::Op;
use drover_core::time::Instant;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// Who asks things of the agent.
    Operator,
    /// Who tells the agent to end, and what the node learns of itself.
    Control,
    /// The store.
    Store,
    /// The answer to one operation; the number tells the second of a doubled answer.
    Answer(Op, u8),
    /// The end of a launch.
    Exit(LaunchId),
}

/// The queues.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inbox {
    queues: BTreeMap<Source, VecDeque<(Instant, Input)>>,
}

impl Inbox {
    /// `input` can be delivered from `at` on, after everything that `source` said before.
    pub(crate) fn push(&mut self, source: Source, at: Instant, input: Input) {
        self.queues
            .entry(source)
            .or_default()
            .push_back((at, input));
    }

    /// Sources whose first input can be delivered.
    pub(crate) fn ready(&self, now: Instant) -> Vec<Source> {
        let heads = self.queues.iter().filter_map(|(source, queue)| {
            let (at, _) = queue.front()?;
            (*at <= now).then_some(*source)
        });
        heads.collect()
    }

    /// When the next input can be delivered.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.queues
            .values()
            .filter_map(|queue| queue.front())
            .map(|(at, _)| *at)
            .min()
    }

    /// The first input of a source.
    pub(crate) fn pop(&mut self, source: Source) -> Option<Input> {
        let queue = self.queues.get_mut(&source)?;
        let (_, input) = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&source);
        }
        Some(input)
    }

    /// Whether something of `source` is under way.
    pub(crate) fn has(&self, source: Source) -> bool {
        self.queues.contains_key(&source)
    }

    /// The agent died: answers find nobody; what people ask waits for the next agent.
    pub(crate) fn agent_died(&mut self) {
        self.queues.retain(|source, _| *source == Source::Operator);
        for queue in self.queues.values_mut() {
            for (at, _) in queue {
                *at = Instant(0);
            }
        }
    }
}
