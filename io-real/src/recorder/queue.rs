//! From the core to the recorder's thread: bounded, and nobody waits on the core's side.
//!
//! What the thread is done with goes back the same way, to be dropped where it was made: memory that
//! another thread gives back costs an allocator more than the copies themselves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::effect::Effect;
use drover_core::input::Input;
use drover_core::store::Saved;
use drover_core::time::Now;

/// How many items may wait: some megabytes at most.
const CAPACITY: usize = 32 * 1024;

/// How many items may wait for being dropped while the core has nothing to do.
const MAX_SPENT: usize = 1024;

/// After a hand-over the thread sleeps this long before it looks again, so that under load it is
/// woken by nobody. A crash of the agent costs no more than this.
const NAP: Duration = Duration::from_millis(5);

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Item {
    /// An agent is restored.
    Begin(Box<(Config, Saved, Now)>),
    /// A new segment begins here; `gap` says that steps before it are missing.
    Snapshot {
        agent: Box<Agent>,
        now: Now,
        gap: bool,
    },
    /// A step began.
    Step(Now, Option<Input>),
    /// An effect of it.
    Effect(Effect),
}

#[derive(Debug, Default)]
struct Inner {
    items: Vec<Item>,
    /// What was written.
    spent: Vec<Item>,
    ended: bool,
    /// Whether the thread waits to be woken.
    asleep: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    woken: Condvar,
    wants_snapshot: AtomicBool,
    over: AtomicBool,
}

impl Queue {
    /// Takes all of `items`, or drops them and returns `false` if there are too many.
    pub(super) fn put(&self, items: &mut Vec<Item>) -> bool {
        let mut inner = self.lock();
        let fits = inner.items.len() + items.len() <= CAPACITY;
        if !fits {
            items.clear();
        } else if inner.items.is_empty() {
            core::mem::swap(&mut inner.items, items);
        } else {
            inner.items.append(items);
        }
        let mut spent = core::mem::take(&mut inner.spent);
        let asleep = inner.asleep;
        drop(inner);
        if asleep {
            self.woken.notify_all();
        }
        spent.clear();
        if items.capacity() < spent.capacity() {
            *items = spent;
        }
        fits
    }

    /// Whether it makes sense to go on after a gap.
    pub(super) fn is_roomy(&self) -> bool {
        self.lock().items.len() < CAPACITY / 4
    }

    /// What waits, when something does; none at the end. What was taken before goes
    /// back, as much as there is room for.
    pub(super) fn take(&self, spent: &mut Vec<Item>) -> Option<Vec<Item>> {
        let mut inner = self.lock();
        let room = MAX_SPENT.saturating_sub(inner.spent.len());
        inner.spent.extend(spent.drain(..room.min(spent.len())));
        if inner.items.is_empty() && !inner.ended {
            inner = self.wait(inner, Some(NAP));
        }
        while inner.items.is_empty() && !inner.ended {
            inner.asleep = true;
            inner = self.wait(inner, None);
            inner.asleep = false;
        }
        let items = core::mem::take(&mut inner.items);
        (!items.is_empty() || !inner.ended).then_some(items)
    }

    /// Asks for a snapshot at the end of the next turn.
    pub(super) fn want_snapshot(&self) {
        self.wants_snapshot.store(true, Ordering::Relaxed);
    }

    /// Whether a snapshot is wanted; it is not wanted twice.
    pub(super) fn wants_snapshot(&self) -> bool {
        self.wants_snapshot.load(Ordering::Relaxed)
            && self.wants_snapshot.swap(false, Ordering::Relaxed)
    }

    /// Whether nothing is recorded any more.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Nothing is recorded any more, and what waits is dropped.
    pub(super) fn give_up(&self) {
        self.over.store(true, Ordering::Relaxed);
        let mut inner = self.lock();
        inner.items.clear();
        inner.spent.clear();
        drop(inner);
        self.woken.notify_all();
    }

    /// Lets the thread write what waits and end, and waits for it no longer than this.
    pub(super) fn end(&self, patience: Duration) {
        let mut inner = self.lock();
        inner.ended = true;
        self.woken.notify_all();
        let not_over = |_: &mut Inner| !self.is_over();
        let waited = self.woken.wait_timeout_while(inner, patience, not_over);
        drop(waited);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whoever panicked left whole items behind.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        inner: MutexGuard<'a, Inner>,
        patience: Option<Duration>,
    ) -> MutexGuard<'a, Inner> {
        match patience {
            None => {
                let waited = self.woken.wait(inner);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
            Some(patience) => {
                let waited = self.woken.wait_timeout(inner, patience);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}
