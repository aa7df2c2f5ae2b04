//! Heartbeats: the servers shall know that the node is alive.
//!
//! - The first follows at once when the node is registered, or when an agent starts whose node was.
//! - Each following one is sent when the time is over for which the last reply says that the node counts as alive,
//!   and no sooner, whatever else is asked of the servers. (A reply to a registration may shorten that time: servers
//!   count anew from there.) The exception: where servers do not name any more what they had as living, the next one
//!   tells at once whether they know the node, and so whether that is to end ([`super::watch`]).
//! - One that failed is tried again by [`super::retry::heartbeat`].
//! - Servers that do not know the node hear none until it is registered.

use serde::{Deserialize, Serialize};

use crate::op::Op;
use crate::time::{Instant, Span};

/// The times that are believed, whatever a reply says.
const SHORTEST: Span = Span::secs(1);
const LONGEST: Span = Span::secs(24 * 3600);

/// How soon one tells whether servers know the node, and the least time after another.
const CONFIRMS: Span = Span::millis(50);
const BETWEEN: Span = Span::secs(1);

/// When the servers heard of the node, and when they hear again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Heartbeat {
    state: State,
    /// When the last one was acknowledged in this life of the agent.
    last: Option<Instant>,
    /// For how long it counts.
    ttl: Span,
    /// Whether the servers have the node as one that is ready.
    ready: bool,
    /// Whether the last one failed.
    failing: bool,
    /// When the last one was sent.
    sent_at: Instant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    /// The node has to be registered first.
    #[default]
    Unregistered,
    /// The next is sent then.
    Due(Instant),
    /// One is under way.
    Asked(Op),
}

impl Heartbeat {
    /// The servers know the node.
    pub(super) fn registered(&mut self, now: Instant, ttl: Span) {
        let next = match self.ready {
            true => now + ttl.clamp(SHORTEST, LONGEST),
            false => now,
        };
        self.state = match self.state {
            State::Unregistered => State::Due(now),
            State::Due(at) => State::Due(at.min(next)),
            State::Asked(op) => State::Asked(op),
        };
    }

    /// The servers do not know the node.
    pub(super) fn forgotten(&mut self) {
        (self.state, self.ready) = (State::Unregistered, false);
    }

    /// When the next is sent.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Due(at) => Some(at),
            State::Unregistered | State::Asked(_) => None,
        }
    }

    /// When the next is sent, if servers shall say that they know the node, as they did not since then.
    pub(super) fn confirms(&self, since: Instant) -> Option<Instant> {
        let is_wanted = self.ready && !self.failing && self.sent_at <= since;
        let soon = (since + CONFIRMS).max(self.sent_at + BETWEEN);
        self.deadline().filter(|_| is_wanted).map(|at| at.min(soon))
    }

    pub(super) fn asked(&mut self, now: Instant, op: Op) {
        (self.state, self.sent_at) = (State::Asked(op), now);
    }

    /// When the last one was sent.
    pub(super) fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// Whose answer is awaited.
    pub(super) fn awaited(&self) -> Option<Op> {
        match self.state {
            State::Asked(op) => Some(op),
            State::Unregistered | State::Due(_) => None,
        }
    }

    pub(super) fn acknowledge(&mut self, now: Instant, ttl: Span) {
        self.ttl = ttl.clamp(SHORTEST, LONGEST);
        self.last = Some(now);
        (self.ready, self.failing) = (true, false);
        self.state = State::Due(now + self.ttl);
    }

    pub(super) fn failed(&mut self, again: Instant) {
        self.failing = true;
        self.state = State::Due(again);
    }

    /// Until when the last one counts.
    pub fn counts_until(&self) -> Option<Instant> {
        self.last.map(|last| last + self.ttl)
    }

    /// From when on servers owe an answer, which they last gave at `last`: when it does not count any more, and not before
    /// they are asked again.
    pub(super) fn owed_since(&self, last: Instant) -> Instant {
        let counts = self.counts_until().unwrap_or(last);
        let asked = match self.state {
            State::Due(at) => at,
            State::Asked(_) => self.sent_at,
            State::Unregistered => counts,
        };
        match self.failing {
            true => counts,
            false => counts.max(asked),
        }
    }

    /// Whether the next one is overdue, and nothing was wrong with the last.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        !self.failing && self.deadline().is_some_and(|at| at <= now)
    }

    /// When the last one was acknowledged in this life of the agent.
    pub fn last(&self) -> Option<Instant> {
        self.last
    }

    /// Whether the servers have the node as one that is ready.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Whether the last one failed.
    pub fn is_failing(&self) -> bool {
        self.failing
    }
}
