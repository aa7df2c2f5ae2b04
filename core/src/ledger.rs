//! When something is written: changed records only, one commit in flight, effects behind it.
//!
//! Each step's changes are one part of a batch. While a commit is in flight, later changes gather
//! in the next batch, so that under load one flush serves many steps (group commit), and at rest a
//! commit leaves at once. A record that did not change is not written, nor one that changed and
//! changed back before it was saved. A commit that failed is tried again every second; nothing is
//! lost, and what waits for it goes on waiting.
//!
//! An effect that must not happen twice or be forgotten waits for the commit that holds everything
//! decided up to it (remember before acting). These wait:
//!
//! - starting, stopping and destroying a task;
//! - making and removing an allocation's directory;
//! - replies to requests, except for a signal's.
//!
//! A step that something waits for is committed at once, one that only the destruction of a task
//! waits for after 5 ms (`soon_commit`: where many tasks end, one commit serves several), any other
//! after 50 ms at most (`lazy_commit`). These do not wait: events and the index (people see them at
//! once; a crash may forget what was shown, and show it again), searches for launches, signals of
//! operators, task directories.
//!
//! The time for an answer begins when its request leaves ([`crate::operations`]).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::op::Op;
use crate::store::{Batch, CommitId, Key, Record};
use crate::time::{Instant, Now, Span};

/// The core's side of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// What the store holds as soon as everything below is written.
    #[serde(with = "crate::pairs")]
    known: BTreeMap<Key, Record>,
    /// Changes that no commit holds yet.
    #[serde(with = "crate::pairs")]
    dirty: Batch,
    /// What the commits before hold under the keys of `dirty`: a change that is taken back costs
    /// nothing.
    #[serde(with = "crate::pairs")]
    replaced: Batch,
    /// The latest moment at which `dirty` must leave though nothing waits for it.
    dirty_until: Option<Instant>,
    /// The commit that the store works on.
    in_flight: Option<InFlight>,
    /// When a commit that failed is tried again.
    retry_at: Option<Instant>,
    /// The number of the next commit.
    next: u64,
    /// Effects of the current step that wait for its changes.
    staged: Vec<Effect>,
    /// How long the next commit may be put off.
    haste: Haste,
    /// Effects and the commit that each waits for, in order.
    gated: VecDeque<(CommitId, Effect)>,
    /// Why the last commit failed, while it is not saved.
    last_error: Option<String>,
}

/// How long a commit may be put off, for the sake of what waits for it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Haste {
    /// As where nothing waits.
    #[default]
    Lazy,
    /// A moment, in which others may join.
    Soon,
    /// Not at all.
    AtOnce,
}

/// How long changes may stay unsaved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// If nothing waits for them.
    pub lazy: Span,
    /// If what waits for them has a moment.
    pub soon: Span,
}

impl Delays {
    /// Everything is saved at once.
    pub const NONE: Delays = Delays {
        lazy: Span::ZERO,
        soon: Span::ZERO,
    };
}

/// A commit that the store works on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct InFlight {
    id: CommitId,
    #[serde(with = "crate::pairs::shared")]
    batch: Arc<Batch>,
}

impl Ledger {
    /// A ledger of a store that holds `records`.
    pub fn of(records: impl IntoIterator<Item = (Key, Record)>) -> Ledger {
        Ledger {
            known: records.into_iter().collect(),
            next: 1,
            ..Ledger::default()
        }
    }

    /// Remembers `record`. An unchanged one costs nothing.
    pub fn put(&mut self, key: Key, record: Record) {
        if self.known.get(&key) == Some(&record) {
            return;
        }
        let before = self.known.insert(key.clone(), record.clone());
        self.change(key, before, Some(record));
    }

    /// Forgets what stands under `key`.
    pub fn delete(&mut self, key: Key) {
        if let Some(before) = self.known.remove(&key) {
            self.change(key, Some(before), None);
        }
    }

    /// The next commit makes `after` of what was known as `before`.
    fn change(&mut self, key: Key, before: Option<Record>, after: Option<Record>) {
        match self.replaced.entry(key.clone()) {
            Entry::Occupied(replaced) if *replaced.get() == after => {
                replaced.remove();
                self.dirty.remove(&key);
                return;
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(replaced) => {
                replaced.insert(before);
            }
        }
        self.dirty.insert(key, after);
    }

    /// Releases `effect` only when everything decided up to the end of this step is saved, for
    /// which a commit is put off no longer than `haste` says.
    pub fn after_save(&mut self, effect: Effect, haste: Haste) {
        self.haste = self.haste.max(haste);
        self.staged.push(effect);
    }

    /// Whether the effect of operation `op` did not leave yet: nobody outside was asked so far.
    pub fn holds(&self, op: Op) -> bool {
        let gated = self.gated.iter().map(|(_, effect)| effect);
        let mut waiting = self.staged.iter().chain(gated);
        waiting.any(|effect| effect.op() == Some(op))
    }

    /// Takes back the effect of operation `op`. `false` if it left already.
    pub fn withdraw(&mut self, op: Op) -> bool {
        let before = self.staged.len() + self.gated.len();
        self.staged.retain(|effect| effect.op() != Some(op));
        self.gated.retain(|(_, effect)| effect.op() != Some(op));
        self.staged.len() + self.gated.len() < before
    }

    /// What waits for changes that were all taken back waits for the commit before, and leaves now
    /// where that is saved. To be called before [`Ledger::settle`].
    pub fn open_empty_gate(&mut self, out: &mut VecDeque<Effect>) {
        if !self.dirty.is_empty() {
            return;
        }
        let next = CommitId(self.next);
        let first = self.gated.partition_point(|(needed, _)| *needed < next);
        match &self.in_flight {
            Some(flight) => {
                let waiting = self.gated.range_mut(first..);
                waiting.for_each(|(needed, _)| *needed = flight.id);
            }
            None => out.extend(self.gated.drain(first..).map(|(_, effect)| effect)),
        }
    }

    /// Ends a step: hands out what may leave now.
    pub fn settle(&mut self, now: Now, delays: Delays, out: &mut VecDeque<Effect>) {
        self.gate_staged(out);
        if self.dirty.is_empty() {
            self.dirty_until = None;
            self.haste = Haste::Lazy;
            return;
        }
        let delay = match self.haste {
            Haste::Lazy => delays.lazy,
            Haste::Soon => delays.soon.min(delays.lazy),
            Haste::AtOnce => Span::ZERO,
        };
        // Who is in a hurry now does not wait for a moment that was chosen at leisure.
        let until = now.at + delay;
        let until = self.dirty_until.map_or(until, |before| before.min(until));
        self.dirty_until = Some(until);
        if self.in_flight.is_none() && until <= now.at {
            self.commit(out);
        }
    }

    fn gate_staged(&mut self, out: &mut VecDeque<Effect>) {
        let needed = if !self.dirty.is_empty() {
            Some(CommitId(self.next))
        } else {
            self.in_flight.as_ref().map(|flight| flight.id)
        };
        match needed {
            Some(id) => self
                .gated
                .extend(self.staged.drain(..).map(|effect| (id, effect))),
            None => out.extend(self.staged.drain(..)),
        }
    }

    fn commit(&mut self, out: &mut VecDeque<Effect>) {
        let id = CommitId(self.next);
        self.next += 1;
        self.dirty_until = None;
        self.haste = Haste::Lazy;
        let batch = Arc::new(core::mem::take(&mut self.dirty));
        self.replaced.clear();
        self.in_flight = Some(InFlight {
            id,
            batch: batch.clone(),
        });
        out.push_back(Effect::commit(id, batch));
    }

    /// The store wrote commit `id`. Returns whether it was the awaited one.
    pub fn saved(&mut self, id: CommitId, out: &mut VecDeque<Effect>) -> bool {
        if self.in_flight.as_ref().is_none_or(|flight| flight.id != id) {
            return false;
        }
        self.in_flight = None;
        self.retry_at = None;
        self.last_error = None;
        while self.gated.front().is_some_and(|(needed, _)| *needed <= id) {
            out.extend(self.gated.pop_front().map(|(_, effect)| effect));
        }
        true
    }

    /// The store could not write commit `id`: it is tried again at `retry`. Nothing is lost, and
    /// what waits for it goes on waiting.
    pub fn failed(&mut self, id: CommitId, why: String, retry: Instant) -> bool {
        if self.in_flight.as_ref().is_none_or(|flight| flight.id != id) {
            return false;
        }
        self.retry_at = Some(retry);
        self.last_error = Some(why);
        true
    }

    /// Tries a failed commit again, or writes what waited long enough, if that is due.
    pub fn handle_timeout(&mut self, now: Now, out: &mut VecDeque<Effect>) {
        if self.retry_at.is_some_and(|at| at <= now.at) {
            self.retry_at = None;
            if let Some(flight) = &self.in_flight {
                out.push_back(Effect::commit(flight.id, flight.batch.clone()));
            }
        }
        if self.in_flight.is_none() && self.dirty_until.is_some_and(|at| at <= now.at) {
            self.commit(out);
        }
    }

    /// When [`Ledger::handle_timeout`] has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let lazy = if self.in_flight.is_none() {
            self.dirty_until
        } else {
            None
        };
        self.retry_at.into_iter().chain(lazy).min()
    }

    /// Whether everything is written.
    pub fn is_clean(&self) -> bool {
        self.dirty.is_empty() && self.in_flight.is_none()
    }

    /// How many effects wait for a commit.
    pub fn waiting(&self) -> usize {
        self.gated.len()
    }

    /// Why nothing can be written at present, if so.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Notification;
    use crate::store::Meta;

    fn meta(index: u64) -> Record {
        Record::Meta(Arc::new(Meta {
            index,
            ..Meta::default()
        }))
    }

    fn settled(ledger: &mut Ledger) -> Vec<Effect> {
        let mut out = VecDeque::new();
        ledger.open_empty_gate(&mut out);
        let delays = Delays {
            lazy: Span::secs(1),
            soon: Span::millis(1),
        };
        ledger.settle(Now::default(), delays, &mut out);
        out.into()
    }

    /// What waits for a change that is taken back does not wait for ever, and leaves in order.
    #[test]
    fn reverted_change_blocks_no_effect() {
        let effects = [1, 2, 3].map(|index| Effect::Notify(Notification::Index(index)));
        let [first, second, third] = effects.clone();
        let mut ledger = Ledger::of([(Key::Meta, meta(0))]);
        ledger.put(Key::Meta, meta(1));
        ledger.after_save(first, Haste::AtOnce);
        assert_eq!(settled(&mut ledger).len(), 1, "the commit");
        ledger.put(Key::Meta, meta(2));
        ledger.after_save(second, Haste::AtOnce);
        assert_eq!(settled(&mut ledger), []);
        ledger.put(Key::Meta, meta(1));
        ledger.after_save(third, Haste::AtOnce);
        assert_eq!(settled(&mut ledger), []);
        let mut out = VecDeque::new();
        assert!(ledger.saved(CommitId(1), &mut out));
        assert_eq!(Vec::from(out), effects);
        assert!(ledger.is_clean());
    }

    /// Where something ends, another end shortly after shares its commit, and a start takes both
    /// along.
    #[test]
    fn effects_that_have_a_moment_share_a_commit() {
        let effects = [1, 2, 3].map(|index| Effect::Notify(Notification::Index(index)));
        let [first, second, third] = effects.clone();
        let mut ledger = Ledger::of([(Key::Meta, meta(0))]);
        ledger.put(Key::Meta, meta(1));
        ledger.after_save(first, Haste::Soon);
        assert_eq!(settled(&mut ledger), []);
        assert_eq!(ledger.deadline(), Some(Now::default().at + Span::millis(1)));
        ledger.put(Key::Meta, meta(2));
        ledger.after_save(second, Haste::Soon);
        assert_eq!(settled(&mut ledger), []);
        ledger.put(Key::Meta, meta(3));
        ledger.after_save(third, Haste::AtOnce);
        assert_eq!(settled(&mut ledger).len(), 1, "the commit");
        let mut out = VecDeque::new();
        assert!(ledger.saved(CommitId(1), &mut out));
        assert_eq!(Vec::from(out), effects);
    }

    /// As before, with nothing under way: the change waited for its time.
    #[test]
    fn reverted_lazy_change_causes_no_commit() {
        let notification = Effect::Notify(Notification::Index(1));
        let mut ledger = Ledger::of([(Key::Meta, meta(0))]);
        ledger.put(Key::Meta, meta(1));
        ledger.after_save(notification.clone(), Haste::Lazy);
        assert_eq!(settled(&mut ledger), []);
        ledger.put(Key::Meta, meta(0));
        assert_eq!(settled(&mut ledger), [notification]);
        assert!(ledger.is_clean());
    }
}
