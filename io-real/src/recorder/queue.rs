//! From the core to the recorder's thread: bounded, and nobody waits on the core's side.
//!
//! Numbers go over in [pages](super::page), without a lock: taking one for every turn of the loop
//! would cost more than writing them. A lock is taken once a page, and for what is no number.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::page::Page;
use super::tape::{Beside, Reader, Tape};

/// How many pages may wait: 2 MiB, of some ten thousand steps.
const PAGES: usize = 128;

/// How many other things may wait.
const BESIDE: usize = 4096;

/// How many empty pages there are for the core, which would have to make new ones where it is in a
/// hurry, and how many are kept at most.
const READY: usize = 6;
const SPARE: usize = 24;

/// After it read something the thread sleeps this long before it looks again, so that under load it
/// is woken by nobody. A crash of the agent costs no more than this.
const NAP: Duration = Duration::from_millis(20);

/// The thread waits to be woken.
const ASLEEP: u8 = 1;
/// A snapshot is wanted.
const SNAPSHOT: u8 = 2;
/// Nothing is recorded any more.
const OVER: u8 = 4;

/// What the core is answered when it hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is taken.
    Taken,
    /// It is taken, and a snapshot is asked for.
    TakenAndMore,
    /// There is no room: it is dropped.
    Full,
    /// Nothing is recorded any more.
    Over,
}

#[derive(Debug, Default)]
struct Inner {
    /// Pages that are not read to their ends. The core fills the last one.
    pages: VecDeque<Arc<Page>>,
    spare: Vec<Arc<Page>>,
    beside: VecDeque<Beside>,
    /// The core says no more.
    ended: bool,
}

/// What both ends know.
#[derive(Debug, Default)]
struct Shared {
    inner: Mutex<Inner>,
    woken: Condvar,
    calls: AtomicU8,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whoever panicked left whole items behind.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self, what: u8) -> bool {
        self.calls.load(Ordering::Relaxed) & what != 0
    }

    /// Whether this was called for; it is not any more.
    fn take_call(&self, what: u8) -> bool {
        self.calls.fetch_and(!what, Ordering::Relaxed) & what != 0
    }
}

/// Both ends of a new queue.
pub(super) fn queue() -> (Sender, Receiver) {
    let shared = Arc::new(Shared::default());
    let page = Arc::new(Page::new());
    let mut inner = shared.lock();
    inner.pages.push_back(page.clone());
    inner.spare.resize_with(READY, || Arc::new(Page::new()));
    drop(inner);
    let sender = Sender {
        shared: shared.clone(),
        page,
        at: 0,
    };
    (sender, Receiver { shared, read: 0 })
}

/// The core's end.
#[derive(Debug)]
pub(super) struct Sender {
    shared: Arc<Shared>,
    /// The page that is filled, and how far it is.
    page: Arc<Page>,
    at: usize,
}

impl Sender {
    /// Takes all of `tape`, or drops it. A snapshot is not asked for twice.
    #[inline]
    pub(super) fn put(&mut self, tape: &mut Tape) -> Answer {
        let fits = tape.numbers.len() <= Page::room(self.at) && tape.beside.is_empty();
        let taken = if fits {
            self.page.write(self.at, &tape.numbers);
            self.at += tape.numbers.len();
            true
        } else {
            self.put_more(tape)
        };
        tape.clear();
        if self.shared.calls.load(Ordering::Relaxed) != 0 {
            return self.called(taken);
        }
        if taken { Answer::Taken } else { Answer::Full }
    }

    /// The same, where it is rare: the code of the frequent case stays short.
    #[cold]
    pub(super) fn put_aside(&mut self, tape: &mut Tape) -> Answer {
        self.put(tape)
    }

    /// What does not fit onto the page.
    #[cold]
    fn put_more(&mut self, tape: &mut Tape) -> bool {
        let mut inner = self.shared.lock();
        let numbers = inner.pages.len() * Page::room(0) + tape.numbers.len();
        let fits =
            numbers <= PAGES * Page::room(0) && inner.beside.len() + tape.beside.len() <= BESIDE;
        if !fits {
            return false;
        }
        inner.beside.extend(tape.beside.drain(..));
        let mut left = self.page.write(self.at, &tape.numbers);
        self.at += tape.numbers.len() - left.len();
        while !left.is_empty() {
            let page = inner.spare.pop().unwrap_or_else(|| Arc::new(Page::new()));
            page.clear();
            let before = left.len();
            left = page.write(0, left);
            self.at = before - left.len();
            self.page = page.clone();
            inner.pages.push_back(page);
        }
        true
    }

    /// The thread wants something.
    #[cold]
    fn called(&self, taken: bool) -> Answer {
        if self.shared.calls(OVER) {
            return Answer::Over;
        }
        // Once is enough, however long it takes to wake up.
        if self.shared.take_call(ASLEEP) {
            // The lock makes sure that it waits already.
            drop(self.shared.lock());
            self.shared.woken.notify_all();
        }
        if !taken {
            return Answer::Full;
        }
        if self.shared.take_call(SNAPSHOT) {
            return Answer::TakenAndMore;
        }
        Answer::Taken
    }

    /// Whether it makes sense to go on after a gap.
    pub(super) fn is_roomy(&self) -> bool {
        let inner = self.shared.lock();
        inner.pages.len() < PAGES / 4 && inner.beside.len() < BESIDE / 4
    }

    /// Lets the thread write what waits and end, and waits for it no longer than this.
    pub(super) fn end(&self, patience: Duration) {
        let mut inner = self.shared.lock();
        inner.ended = true;
        self.shared.woken.notify_all();
        let not_over = |_: &mut Inner| !self.shared.calls(OVER);
        let woken = &self.shared.woken;
        drop(woken.wait_timeout_while(inner, patience, not_over));
    }
}

/// The thread's end.
#[derive(Debug)]
pub(super) struct Receiver {
    shared: Arc<Shared>,
    /// How much of the first page is read.
    read: usize,
}

impl Receiver {
    /// Takes what waits, when something does. `false` at the end.
    pub(super) fn take(&mut self, reader: &mut Reader) -> bool {
        let mut inner = self.wait_for_news();
        let last = inner.pages.len().saturating_sub(1);
        let full: Vec<Arc<Page>> = inner.pages.drain(..last).collect();
        let open = inner.pages.front().cloned();
        drop(inner);
        let before = reader.numbers.len();
        for page in full.iter().chain(&open) {
            let from = core::mem::take(&mut self.read);
            self.read = page.read(from, &mut reader.numbers);
            if !open.as_ref().is_some_and(|open| Arc::ptr_eq(open, page)) {
                self.read = 0;
            }
        }
        let mut inner = self.shared.lock();
        // Last: the open page may have grown meanwhile, and what lies beside a number that was read
        // was put there before it.
        reader.beside.append(&mut inner.beside);
        let room = SPARE.saturating_sub(inner.spare.len());
        inner.spare.extend(full.into_iter().take(room));
        reader.numbers.len() > before
    }

    /// Sleeps until there is something to read, or there will be nothing more.
    fn wait_for_news(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.shared.lock();
        if !self.has_news(&inner) {
            inner = self.sleep(inner, NAP);
        }
        while !self.has_news(&inner) {
            self.shared.calls.fetch_or(ASLEEP, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            // The core looks whether the thread sleeps without making sure that what it wrote just
            // before can be seen. After a nap it can; what is written later wakes.
            inner = self.sleep(inner, NAP);
            if !self.has_news(&inner) && self.shared.calls(ASLEEP) {
                let woken = self.shared.woken.wait(inner);
                inner = woken.unwrap_or_else(PoisonError::into_inner);
            }
            self.shared.take_call(ASLEEP);
        }
        inner
    }

    fn has_news(&self, inner: &Inner) -> bool {
        let open = inner.pages.front();
        inner.ended || inner.pages.len() > 1 || open.is_some_and(|page| page.written() > self.read)
    }

    fn sleep<'a>(&self, inner: MutexGuard<'a, Inner>, longest: Duration) -> MutexGuard<'a, Inner> {
        let waited = self.shared.woken.wait_timeout(inner, longest);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Asks for a snapshot at the end of the next turn.
    pub(super) fn want_snapshot(&self) {
        self.shared.calls.fetch_or(SNAPSHOT, Ordering::Relaxed);
    }

    /// Nothing is recorded any more, and what waits is dropped.
    pub(super) fn give_up(&self) {
        let mut inner = self.shared.lock();
        self.shared.calls.fetch_or(OVER, Ordering::Relaxed);
        *inner = Inner::default();
        drop(inner);
        self.shared.woken.notify_all();
    }
}
