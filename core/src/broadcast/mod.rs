//! The latest version of something, for listeners who may be slow.
//!
//! A listener may miss versions, but what it reads is always the latest, it never reads an older
//! one after a newer, and it always ends with the last one. Listeners depend on nothing else of the
//! sender.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::AllocId;
use crate::model::alloc::ClientStatus;

/// A value with a version that only rises.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Latest<T> {
    version: u64,
    value: Option<T>,
    closed: bool,
}

/// How far one listener has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Listener {
    seen: u64,
}

/// What a listener finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received<'a, T> {
    /// A version that it has not read yet.
    New(&'a T),
    /// Nothing new, and there may be more.
    Nothing,
    /// Nothing new, and there never will be.
    Closed,
}

impl<T> Latest<T> {
    /// Replaces the value; what nobody read yet is dropped. Nothing happens after the end.
    pub fn send(&mut self, value: T) {
        if !self.closed {
            self.version += 1;
            self.value = Some(value);
        }
    }

    /// The end: the last value can still be read.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Reads on behalf of `listener`. A new listener begins with the current value.
    pub fn read(&self, listener: &mut Listener) -> Received<'_, T> {
        match &self.value {
            Some(value) if listener.seen < self.version => {
                listener.seen = self.version;
                Received::New(value)
            }
            Some(_) | None if self.closed => Received::Closed,
            Some(_) | None => Received::Nothing,
        }
    }
}

/// What is broadcast of an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AllocUpdate {
    /// What became of it.
    pub status: ClientStatus,
    /// Whether nothing of it is alive any more.
    pub finished: bool,
}

/// The broadcasters of all allocations of this node, and who listens to which.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Broadcasts {
    senders: BTreeMap<AllocId, Sender>,
    woken: BTreeSet<AllocId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Sender {
    latest: Latest<AllocUpdate>,
    listeners: BTreeMap<AllocId, Listener>,
}

impl Broadcasts {
    /// Sends news of `alloc` and wakes its listeners. News that are none wake nobody.
    pub fn send(&mut self, alloc: AllocId, update: AllocUpdate) {
        let sender = self.senders.entry(alloc).or_default();
        if sender.latest.value != Some(update) {
            sender.latest.send(update);
            self.woken.extend(sender.listeners.keys());
        }
    }

    /// `alloc` is gone: its listeners are woken and will find the end.
    pub fn close(&mut self, alloc: AllocId) {
        if let Some(sender) = self.senders.remove(&alloc) {
            self.woken.extend(sender.listeners.into_keys());
        }
    }

    /// What `listener` finds of `alloc`; listening begins with the first question.
    pub fn listen(&mut self, alloc: AllocId, listener: AllocId) -> Received<'_, AllocUpdate> {
        match self.senders.get_mut(&alloc) {
            None => Received::Closed,
            Some(sender) => sender
                .latest
                .read(sender.listeners.entry(listener).or_default()),
        }
    }

    /// `listener` listens to nobody any longer.
    pub fn leave(&mut self, listener: AllocId) {
        for sender in self.senders.values_mut() {
            sender.listeners.remove(&listener);
        }
    }

    /// A listener for which something may be new, each once.
    pub fn next_woken(&mut self) -> Option<AllocId> {
        self.woken.pop_first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcaster_drops_only_stale_versions() {
        let mut latest = Latest::default();
        let mut listener = Listener::default();
        assert_eq!(latest.read(&mut listener), Received::Nothing);
        for version in 1..=3 {
            latest.send(version);
        }
        assert_eq!(
            latest.read(&mut listener),
            Received::New(&3),
            "1 and 2 were stale"
        );
        assert_eq!(
            latest.read(&mut listener),
            Received::Nothing,
            "no version is read twice"
        );
    }

    #[test]
    fn last_version_is_readable_after_close() {
        let mut latest = Latest::default();
        latest.send(1);
        latest.close();
        latest.send(2);
        let mut late = Listener::default();
        assert_eq!(latest.read(&mut late), Received::New(&1));
        assert_eq!(latest.read(&mut late), Received::Closed);
    }

    #[test]
    fn listener_of_removed_alloc_gets_close() {
        let (old, new) = (AllocId(1), AllocId(2));
        let mut broadcasts = Broadcasts::default();
        broadcasts.send(old, AllocUpdate::default());
        assert!(matches!(broadcasts.listen(old, new), Received::New(_)));
        broadcasts.close(old);
        assert_eq!(broadcasts.next_woken(), Some(new));
        assert_eq!(broadcasts.listen(old, new), Received::Closed);
    }
}
