//! Events of the node that people read at the servers: that a driver works, or does not any more.
//!
//! They are gathered for 5 s; of more than 10 the oldest are dropped. Those whose call failed are sent again, so that
//! one whose answer was lost may be there twice.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::cluster::ClientNode;
use crate::model::node::NodeEvent;
use crate::op::Op;
use crate::time::{Instant, Span, Timestamp};

/// How long events are gathered.
const GATHERED: Span = Span::secs(5);
/// How many are kept.
const MAX_EVENTS: usize = 10;

/// What the servers have yet to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeEvents {
    /// Which drivers worked when the node was last seen.
    healthy: BTreeMap<String, bool>,
    queue: VecDeque<NodeEvent>,
    state: State,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    #[default]
    Resting,
    Due(Instant),
    Asked(Op, Vec<NodeEvent>),
}

impl NodeEvents {
    /// The node is this one from now on.
    pub(super) fn observe(&mut self, now: Instant, wall: Timestamp, node: &ClientNode) {
        let healthy = node.drivers.iter();
        let healthy: BTreeMap<String, bool> = healthy
            .map(|(name, driver)| (name.clone(), driver.detected && driver.healthy))
            .collect();
        for (name, is_healthy) in &healthy {
            let before = self.healthy.get(name);
            if before.is_some_and(|before| before != is_healthy)
                && let Some(driver) = node.drivers.get(name)
            {
                self.queue.push_back(NodeEvent {
                    time: wall,
                    subsystem: "Driver".to_owned(),
                    message: driver.description.clone(),
                    details: [("driver".to_owned(), name.clone())].into(),
                });
            }
        }
        self.healthy = healthy;
        self.gather(now + GATHERED);
    }

    /// What is in the queue is sent then, if nothing else is under way.
    fn gather(&mut self, at: Instant) {
        let too_many = self.queue.len().saturating_sub(MAX_EVENTS);
        self.queue.drain(..too_many);
        match &self.state {
            State::Resting if !self.queue.is_empty() => self.state = State::Due(at),
            State::Resting | State::Due(_) | State::Asked(..) => {}
        }
    }

    /// When they are sent.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Due(at) => Some(*at),
            State::Resting | State::Asked(..) => None,
        }
    }

    /// What is to be sent now, if it is time.
    pub(super) fn due(&self, now: Instant) -> Option<Vec<NodeEvent>> {
        let is_due = self.deadline().is_some_and(|at| at <= now);
        is_due.then(|| self.queue.iter().cloned().collect())
    }

    pub(super) fn asked(&mut self, op: Op) {
        self.state = State::Asked(op, core::mem::take(&mut self.queue).into());
    }

    /// Whose answer is awaited.
    pub(super) fn awaited(&self) -> Option<Op> {
        match &self.state {
            State::Asked(op, _) => Some(*op),
            State::Resting | State::Due(_) => None,
        }
    }

    pub(super) fn acknowledge(&mut self, now: Instant) {
        self.state = State::Resting;
        self.gather(now + GATHERED);
    }

    pub(super) fn failed(&mut self, again: Instant) {
        if let State::Asked(_, sent) = core::mem::take(&mut self.state) {
            let later = core::mem::take(&mut self.queue);
            self.queue = sent.into_iter().chain(later).collect();
        }
        self.gather(again);
    }
}
