//! The registration: the servers shall know the node as it is.
//!
//! - The first is made when all of the node is known that its scheduler reads, so that no driver is missing in it.
//! - What the servers acknowledged last is compared with what the node is now. While both are the same nothing is
//!   sent; when they differ, the whole node is sent again, 5 s after the last change and 10 s after the first at the
//!   latest: fingerprints come in groups.
//! - After a registration that failed nobody knows what the servers have: one whose answer was lost may count. So
//!   it is sent again whatever the node is then.
//! - Servers that forgot the node are told again at once; but servers that acknowledge a registration and do not know
//!   the node afterwards are not asked without a pause.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::ClientNode;
use crate::op::Op;
use crate::time::{Instant, Span};

/// How long it must be quiet before a change is registered.
const QUIET: Span = Span::secs(5);
/// How long a change waits at the most for others.
const LONGEST: Span = Span::secs(10);
/// Within which time after a registration being unknown is no news.
pub(super) const TAKES_EFFECT: Span = Span::secs(15);

/// What the servers know of the node, and what they shall know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Registration {
    /// The node as it is; none before enough of it is known.
    present: Option<Arc<ClientNode>>,
    /// As the servers have it; none if nobody can know.
    acknowledged: Option<Arc<ClientNode>>,
    state: State,
    /// When the first change came that the servers do not have.
    changed_at: Option<Instant>,
    /// When a registration was acknowledged last.
    acknowledged_at: Option<Instant>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    /// There is nothing to tell, or the node is not known yet.
    #[default]
    Resting,
    /// It is made then.
    Due(Instant),
    /// It is made, of this node.
    Asked(Op, Arc<ClientNode>),
}

impl Registration {
    /// The node is this one from now on.
    pub(super) fn observe(&mut self, now: Instant, node: ClientNode) {
        if self.present.as_deref() != Some(&node) {
            self.present = Some(Arc::new(node));
            self.compare(now);
        }
    }

    /// What is present was compared with what the servers have: says when to register.
    fn compare(&mut self, now: Instant) {
        let (is_unknown, is_same) = (
            self.acknowledged.is_none(),
            self.acknowledged == self.present,
        );
        match (&self.state, self.changed_at) {
            // It is compared again with the answer. One that failed is tried again in its time.
            (State::Asked(..), _) | (State::Due(_), None) => {}
            (State::Resting, _) if is_unknown => self.state = State::Due(now),
            (State::Resting | State::Due(_), _) if is_same => {
                (self.state, self.changed_at) = (State::Resting, None);
            }
            (State::Resting | State::Due(_), first) => {
                let first = first.unwrap_or(now);
                self.changed_at = Some(first);
                self.state = State::Due((now + QUIET).min(first + LONGEST));
            }
        }
    }

    /// When it is made next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Due(at) => Some(*at),
            State::Resting | State::Asked(..) => None,
        }
    }

    /// The node that is to be registered now, if it is time.
    pub(super) fn due(&self, now: Instant) -> Option<Arc<ClientNode>> {
        let is_due = self.deadline().is_some_and(|at| at <= now);
        self.present.clone().filter(|_| is_due)
    }

    /// It is under way.
    pub(super) fn asked(&mut self, op: Op, node: Arc<ClientNode>) {
        (self.state, self.changed_at) = (State::Asked(op, node), None);
    }

    /// Whose answer is awaited.
    pub(super) fn awaited(&self) -> Option<Op> {
        match &self.state {
            State::Asked(op, _) => Some(*op),
            State::Resting | State::Due(_) => None,
        }
    }

    /// The servers have the node as it was sent.
    pub(super) fn acknowledge(&mut self, now: Instant) {
        if let State::Asked(_, sent) = core::mem::take(&mut self.state) {
            (self.acknowledged, self.acknowledged_at) = (Some(sent), Some(now));
        }
        self.compare(now);
    }

    /// It failed, and is tried again then.
    pub(super) fn failed(&mut self, again: Instant) {
        (self.acknowledged, self.changed_at) = (None, None);
        self.state = State::Due(again);
    }

    /// The servers do not know the node: at once, or `pause` after the last registration.
    pub(super) fn forgotten(&mut self, now: Instant, pause: Span) {
        (self.acknowledged, self.changed_at) = (None, None);
        let again = match self.acknowledged_at {
            Some(at) if now - at < TAKES_EFFECT => at + pause,
            Some(_) | None => now,
        };
        self.state = match (core::mem::take(&mut self.state), &self.present) {
            (State::Asked(op, node), _) => State::Asked(op, node),
            (State::Due(at), Some(_)) => State::Due(at.min(again)),
            (State::Resting, Some(_)) => State::Due(again),
            // It is made as soon as the node is known.
            (State::Due(_) | State::Resting, None) => State::Resting,
        };
    }

    /// Whether the servers have the node as it is.
    pub fn is_current(&self) -> bool {
        self.acknowledged.is_some() && self.acknowledged == self.present
    }

    /// The node as the servers acknowledged it last, if that is what they have.
    pub fn acknowledged(&self) -> Option<&ClientNode> {
        self.acknowledged.as_deref()
    }
}
