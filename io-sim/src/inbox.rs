//! Inputs on their way to the agent: one queue for each source, in order within it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::ids::LaunchId;
use drover_core::op::Op;
use drover_core::time::Instant;
use serde::Serialize;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Source {
    /// Who asks things of the agent.
    Operator,
    /// Who tells the agent to end.
    Control,
    /// A stream of reports on the machine.
    Stream(Op),
    /// The store.
    Store,
    /// The answer to one operation; the number tells the second of a doubled answer.
    Answer(Op, u8),
    /// The end of the session that was opened by this operation.
    Session(Op),
    /// The end of a launch.
    Exit(LaunchId),
    /// What else a driver says of a launch.
    Chatter(LaunchId),
}

/// One input on its way.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Delivery {
    /// From when on it can be delivered.
    pub(crate) at: Instant,
    /// The how-manieth it is of all.
    #[serde(skip)]
    pub(crate) number: u64,
    /// What chance says of its turn: the lowest goes first.
    pub(crate) rank: u32,
    /// Whom it is about, for searches that give turns by entity.
    #[serde(skip)]
    pub(crate) entity: Arc<str>,
    pub(crate) input: Input,
}

/// The queues.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inbox {
    queues: BTreeMap<Source, VecDeque<Delivery>>,
}

impl Inbox {
    /// `delivery` can be delivered after everything that `source` said before.
    pub(crate) fn push(&mut self, source: Source, delivery: Delivery) {
        self.queues.entry(source).or_default().push_back(delivery);
    }

    /// The first input of each source, also of those that cannot be delivered yet.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (Source, &Delivery)> {
        let heads = self.queues.iter();
        heads.filter_map(|(source, queue)| Some((*source, queue.front()?)))
    }

    /// Every source with all that it said.
    pub(crate) fn queues(&self) -> impl Iterator<Item = (&Source, &VecDeque<Delivery>)> {
        self.queues.iter()
    }

    /// When the next input can be delivered.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heads().map(|(_, delivery)| delivery.at).min()
    }

    /// Takes the first input of a source.
    pub(crate) fn pop(&mut self, source: Source) -> Option<Input> {
        let queue = self.queues.get_mut(&source)?;
        let delivery = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&source);
        }
        Some(delivery.input)
    }

    /// The clock was set back to `at`: what could be delivered later than that can be at once.
    pub(crate) fn clock_set_back(&mut self, at: Instant) {
        for delivery in self.queues.values_mut().flatten() {
            delivery.at = delivery.at.min(at);
        }
    }

    /// Whether something of `source` is under way.
    pub(crate) fn has(&self, source: Source) -> bool {
        self.queues.contains_key(&source)
    }

    /// The agent died: nobody hears what was under way.
    pub(crate) fn clear(&mut self) {
        self.queues.clear();
    }
}
