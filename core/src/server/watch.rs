//! Which allocations the node has: watched at the servers, and pulled where they are new or newer.
//!
//! A *round* is one answer that says more than the last, and the pull of what it names and this node does not have.
//!
//! - **Servers may be behind**, and behind what they said before. An answer that is not newer than what was asked for is no
//!   news, and an allocation that is older than the one that is here is left alone. After such an answer it is asked
//!   again at once, and after two within a second a second later; and by index 0, which servers that are not behind
//!   answer, if it does not name an allocation that is here, or names one that is not or by another index.
//! - **Servers may go back for good**, when they are restored from a snapshot. The answer to index 0 counts whatever its
//!   index is, and what it names by another index than is here is pulled.
//! - **A round is pulled in pieces**, because replies have a greatest size and jobs may be large. What one piece brings is
//!   used whatever becomes of the others. What cannot be read is pulled no more until servers change it.
//! - **What replaces another comes after it**, also where that one is of a later piece: it gets the disk that the other
//!   one has or was to get. So it is held back until that one is here, and for one round at most.
//! - **A round counts when all of it was pulled.** What came of an incomplete one is used, and the rest is asked for by
//!   the same index in a few seconds.
//! - **What servers do not name any more is removed**; but not by a round alone, since servers that lost the node
//!   itself name nothing either. A heartbeat that was sent after the round has to be acknowledged, and from the
//!   question to that acknowledgement nothing may have been registered: so the node was known all the time. Where
//!   servers had it as living, that heartbeat is sent at once: they give away its place and its ports.
//! - **After an error** it is asked again in half a minute or more, or as soon as another call succeeds.
//! - It begins when the node is ready in the servers' eyes, and anew when they had forgotten it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::retry::up_to_twice;
use crate::cluster::{AllocIndexes, PlacedAlloc, PulledAllocs};
use crate::cx::Cx;
use crate::effect::{Effect, ServerEffect};
use crate::ids::AllocId;
use crate::model::secret::Secret;
use crate::op::Op;
use crate::time::{Instant, Span};

/// How many allocations are pulled at once.
const AT_ONCE: usize = 100;
/// How many allocations a node is believed to have.
const MAX_ALLOCS: usize = 20_000;
/// Two answers without news within this time are answered by a pause as long.
const STALE_PAUSE: Span = Span::secs(1);
/// The pause after an error, and what is added to it at most.
const ERROR_PAUSE: Span = Span::secs(30);
/// How soon after an error another call's success lets it be asked again.
const SOONEST: Span = Span::secs(1);
/// The pause after a pull in which something was missing, and what is added to it at most.
const MISSING_PAUSE: Span = Span::secs(2);

/// What is known of the allocations that servers placed here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Watch {
    state: State,
    /// The servers' index of the last round that counted.
    index: u64,
    /// Whether a round counted in this life of the agent.
    applied: bool,
    /// When an answer without news came last.
    stale_at: Option<Instant>,
    /// The servers' index of each allocation, as it is here.
    known: BTreeMap<AllocId, u64>,
    /// How many registrations had begun or ended when the servers were asked; none if one was under way.
    asked_in: Option<u64>,
    /// Those that the last round did not name, since when.
    dropped: BTreeMap<AllocId, Instant>,
    /// The same of the questions that did not name them.
    dropped_in: Option<u64>,
    /// Whether something of the round was asked for and did not come.
    misses: bool,
    /// Whether a server waited in vain then until it knew more.
    behind: bool,
    /// What came of the round, and replaces something of it that did not come yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held: Vec<Arc<PlacedAlloc>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    /// The node is not ready in the servers' eyes.
    #[default]
    Off,
    /// It is asked then.
    Due(Instant),
    /// It failed at the first time, and is asked again at the second or when servers answer.
    Failed(Instant, Instant),
    /// The servers are asked.
    Asked(Op),
    /// A round needs these, of which the first are to be asked for.
    Lacks(AllocIndexes, BTreeSet<AllocId>),
    /// The first of them are asked for.
    Pulling(Op, AllocIndexes, BTreeSet<AllocId>),
}

/// What of these is asked for at once.
fn piece(ids: &BTreeSet<AllocId>) -> BTreeSet<AllocId> {
    ids.iter().copied().take(AT_ONCE).collect()
}

impl Watch {
    /// These allocations are here, with the servers' index of each.
    pub(super) fn restored(known: BTreeMap<AllocId, u64>) -> Watch {
        Watch {
            known,
            ..Watch::default()
        }
    }

    /// The node is ready in the servers' eyes: they are asked from then on.
    pub(super) fn start(&mut self, at: Instant) {
        match self.state {
            State::Off => self.state = State::Due(at),
            State::Due(_)
            | State::Failed(..)
            | State::Asked(_)
            | State::Lacks(..)
            | State::Pulling(..) => {}
        }
    }

    /// The servers do not know the node: what they answered before counts no more, nor what they are asked now.
    pub(super) fn stop(&mut self, cx: &mut Cx<'_>) {
        if let Some(op) = self.awaited() {
            cx.shared.operations.end(op);
            cx.send(Effect::Server(ServerEffect::Cancel { op }));
        }
        (self.state, self.index) = (State::Off, 0);
        self.dropped.clear();
        self.held.clear();
    }

    /// A call succeeded: servers can be reached.
    pub(super) fn wake(&mut self, now: Instant) {
        if let State::Failed(at, _) = self.state {
            self.state = State::Due(now.max(at + SOONEST));
        }
    }

    /// When it is asked next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Due(at) | State::Failed(_, at) => Some(*at),
            State::Off | State::Asked(_) | State::Lacks(..) | State::Pulling(..) => None,
        }
    }

    /// By which index it is asked now, if it is time.
    pub(super) fn due(&self, now: Instant) -> Option<u64> {
        let is_due = self.deadline().is_some_and(|at| at <= now);
        is_due.then_some(self.index)
    }

    /// It is asked, when so many registrations had begun or ended; none if one is under way.
    pub(super) fn asked(&mut self, op: Op, registrations: Option<u64>) {
        (self.state, self.asked_in) = (State::Asked(op), registrations);
    }

    /// What is to be pulled now, and what servers have to be ahead of to have any of it.
    pub(super) fn lacks(&self) -> Option<(Vec<AllocId>, u64)> {
        let State::Lacks(round, ids) = &self.state else {
            return None;
        };
        let ids = piece(ids);
        let newer_than = newer_than(round, &ids);
        Some((ids.into_iter().collect(), newer_than))
    }

    pub(super) fn pulls(&mut self, op: Op) {
        if let State::Lacks(round, ids) = core::mem::take(&mut self.state) {
            self.state = State::Pulling(op, round, ids);
        }
    }

    /// Whose answer is awaited.
    pub(super) fn awaited(&self) -> Option<Op> {
        match &self.state {
            State::Asked(op) | State::Pulling(op, ..) => Some(*op),
            State::Off | State::Due(_) | State::Failed(..) | State::Lacks(..) => None,
        }
    }

    /// The servers say which allocations the node has.
    pub(super) fn on_indexes(&mut self, cx: &mut Cx<'_>, round: AllocIndexes) {
        let now = cx.now.at;
        if round.allocs.len() > MAX_ALLOCS {
            return self.failed(cx);
        }
        let is_older = |(id, index): (&AllocId, &u64)| {
            let known = self.known.get(id);
            known.is_some_and(|known| index < known)
        };
        let goes_back = self.index > 0 && round.allocs.iter().any(is_older);
        if round.index <= self.index || goes_back {
            self.look_for_others(&round);
            let often = self.stale_at.is_some_and(|at| now - at < STALE_PAUSE);
            let pause = if often { STALE_PAUSE } else { Span::ZERO };
            (self.state, self.stale_at) = (State::Due(now + pause), Some(now));
            return;
        }
        let is_first = self.index == 0;
        let is_new = |(id, index): &(&AllocId, &u64)| {
            let known = self.known.get(*id);
            known.is_none_or(|known| known < *index || is_first && known != *index)
        };
        let lacks = round.allocs.iter().filter(is_new).map(|(id, _)| *id);
        let lacks: BTreeSet<AllocId> = lacks.collect();
        (self.misses, self.behind) = (false, false);
        match lacks.is_empty() {
            true => self.counts(now, &round),
            false => self.state = State::Lacks(round, lacks),
        }
    }

    /// The index of servers before Nomad 2.0.5 falls when the allocation is gone that changed last: an answer that is not
    /// newer may be right. Who names less than was named before is one like that, or behind; and who names what is not
    /// here, or by another index, has forgotten what came after, or is behind. An answer to index 0 is never behind.
    fn look_for_others(&mut self, round: &AllocIndexes) {
        let mut here = self.known.keys();
        let lacks = |id: &AllocId| !round.allocs.contains_key(id) && !self.dropped.contains_key(id);
        let mut named = round.allocs.iter();
        if here.any(lacks) || named.any(|(id, index)| self.known.get(id) != Some(index)) {
            self.index = 0;
        }
    }

    /// The servers sent allocations. Returns those that are news, and of those that cannot be read why.
    pub(super) fn on_pulled(&mut self, cx: &mut Cx<'_>, pulled: PulledAllocs) -> Pulled {
        let State::Pulling(_, round, mut ids) = core::mem::take(&mut self.state) else {
            return Pulled::default();
        };
        let mut asked = piece(&ids);
        ids.retain(|id| !asked.contains(id));
        let mut news = Pulled::default();
        let mut came = core::mem::take(&mut self.held);
        for alloc in pulled.allocs {
            let wanted = asked
                .contains(&alloc.id)
                .then(|| round.allocs.get(&alloc.id));
            let Some(named) = wanted.flatten() else {
                continue;
            };
            if alloc.modify_index >= *named {
                asked.remove(&alloc.id);
            }
            came.push(alloc);
        }
        for (id, why) in pulled.unreadable {
            if let Some(named) = round.allocs.get(&id)
                && asked.remove(&id)
            {
                self.known.insert(id, *named);
                news.unreadable.push((id, *named, why));
            }
        }
        if !asked.is_empty() {
            self.misses = true;
            self.behind |= pulled.index <= newer_than(&round, &asked);
        }
        if ids.is_empty() && !self.behind {
            // What did not come until now is no more.
            asked.clear();
        }
        self.hold_back(&mut came, asked.iter().chain(&ids));
        self.take(came, &round, &mut news);
        self.goes_on(cx, round, ids);
        news
    }

    /// Takes what is news of what came.
    fn take(&mut self, came: Vec<Arc<PlacedAlloc>>, round: &AllocIndexes, news: &mut Pulled) {
        for alloc in came {
            let (known, is) = (self.known.get(&alloc.id), alloc.modify_index);
            let goes_back = self.index == 0 && round.allocs.get(&alloc.id) == Some(&is);
            if known.is_none_or(|known| *known < is || goes_back && *known != is) {
                self.known.insert(alloc.id, alloc.modify_index);
                let token = round.migrate_tokens.get(&alloc.id);
                news.tokens
                    .extend(token.map(|token| (alloc.id, token.clone())));
                news.placed.push(alloc);
            }
        }
    }

    /// Takes out of what came what replaces something that is `missing`, or something else that is held back.
    fn hold_back<'a>(
        &mut self,
        came: &mut Vec<Arc<PlacedAlloc>>,
        missing: impl Iterator<Item = &'a AllocId>,
    ) {
        let here: BTreeSet<AllocId> = came.iter().map(|alloc| alloc.id).collect();
        let missing = missing.filter(|id| !here.contains(id) && !self.known.contains_key(id));
        let mut missing: BTreeSet<AllocId> = missing.copied().collect();
        loop {
            let waits = |alloc: &mut Arc<PlacedAlloc>| {
                let replaces_it = alloc.previous.is_some_and(|id| missing.contains(&id));
                replaces_it && !self.known.contains_key(&alloc.id)
            };
            let held: Vec<Arc<PlacedAlloc>> = came.extract_if(.., waits).collect();
            if held.is_empty() {
                return;
            }
            missing.extend(held.iter().map(|alloc| alloc.id));
            self.held.extend(held);
        }
    }

    /// A piece of a round came, and these are left.
    fn goes_on(&mut self, cx: &mut Cx<'_>, round: AllocIndexes, ids: BTreeSet<AllocId>) {
        let now = cx.now.at;
        if !ids.is_empty() {
            self.state = State::Lacks(round, ids);
            return;
        }
        self.held.clear();
        if !self.misses {
            self.counts(now, &round);
        } else if self.behind {
            // It waited in vain until it knew more.
            self.failed(cx);
        } else {
            self.state = State::Due(now + up_to_twice(cx, MISSING_PAUSE));
        }
    }

    /// All of a round is here.
    fn counts(&mut self, now: Instant, round: &AllocIndexes) {
        // The answer to index 0 is no older than what is here. Its index is that of what servers name in it, which may be
        // older than what they have no more.
        let is_first = self.index == 0;
        (self.index, self.applied) = (round.index, true);
        self.state = State::Due(now);
        let is_dropped = |(id, index): &(&AllocId, &u64)| {
            // What was pulled since may be newer than the round.
            !round.allocs.contains_key(*id) && (is_first || **index <= round.index)
        };
        let dropped = self.known.iter().filter(is_dropped).map(|(id, _)| *id);
        let is_same = self.dropped_in == self.asked_in;
        let since = |id| (id, self.dropped.get(&id).copied().filter(|_| is_same));
        let dropped = dropped.map(since);
        self.dropped = dropped.map(|(id, at)| (id, at.unwrap_or(now))).collect();
        self.dropped_in = self.asked_in;
    }

    /// It failed.
    pub(super) fn failed(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now.at;
        self.held.clear();
        self.state = State::Failed(now, now + up_to_twice(cx, ERROR_PAUSE));
    }

    /// A heartbeat that was sent at `sent` was acknowledged, when so many registrations had begun or ended: what
    /// servers did not name before, they do not have. Returns the allocations that are to be removed.
    pub(super) fn confirmed(
        &mut self,
        cx: &mut Cx<'_>,
        sent: Instant,
        registrations: u64,
    ) -> Vec<AllocId> {
        if self.dropped.is_empty() {
            return Vec::new();
        }
        if self.dropped_in != Some(registrations) {
            // They may have been asked while they did not know the node: anew, whatever they are asked now.
            let again = self.deadline().map_or(cx.now.at, |at| at.max(cx.now.at));
            self.stop(cx);
            self.start(again);
            return Vec::new();
        }
        let is_over = |(_, since): &(&AllocId, &Instant)| **since < sent;
        let over = self.dropped.iter().filter(is_over).map(|(id, _)| *id);
        over.collect()
    }

    /// Since when servers do not name the last of those that are such.
    pub(super) fn dropped_since(&self, is_such: impl Fn(AllocId) -> bool) -> Option<Instant> {
        let dropped = self.dropped.iter().filter(|(id, _)| is_such(**id));
        dropped.map(|(_, since)| *since).max()
    }

    /// Nothing of an allocation is left here.
    pub(super) fn forget(&mut self, id: AllocId) {
        self.known.remove(&id);
        self.dropped.remove(&id);
    }

    /// Whether a round counted in this life of the agent: before, nothing is reported.
    pub fn is_applied(&self) -> bool {
        self.applied
    }

    /// Whether something is to be pulled, or could not be asked.
    pub fn is_at_rest(&self) -> bool {
        match &self.state {
            State::Asked(_) | State::Due(_) => {
                self.applied && self.index > 0 && self.dropped.is_empty()
            }
            State::Off | State::Failed(..) | State::Lacks(..) | State::Pulling(..) => false,
        }
    }

    /// The servers' index of an allocation, as it is here.
    pub fn index_of(&self, id: AllocId) -> Option<u64> {
        self.known.get(&id).copied()
    }
}

/// What came of a pull.
#[derive(Debug, Default)]
pub(super) struct Pulled {
    /// What is news.
    pub(super) placed: Vec<Arc<PlacedAlloc>>,
    /// The migrate tokens of those that have one.
    pub(super) tokens: BTreeMap<AllocId, Secret>,
    /// What cannot be read, as it is at this index of the servers, and why.
    pub(super) unreadable: Vec<(AllocId, u64, String)>,
}

/// What servers have to be ahead of to have the latest of these allocations.
fn newer_than(round: &AllocIndexes, ids: &BTreeSet<AllocId>) -> u64 {
    let newest = ids.iter().filter_map(|id| round.allocs.get(id)).max();
    newest.map_or(0, |newest| newest.saturating_sub(1))
}
