//! From the core to the recorder's thread: bounded, and nobody waits on the core's side.
//!
//! Numbers go over in [pages](super::page), without a lock: taking one for every turn of the loop
//! would cost more than writing them. A lock is taken once a page, and for what is no number.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::effect::Effect;
use drover_core::input::Input;
use drover_core::record::Mark;
use drover_core::time::Now;

use super::page::Page;
use super::tape::{Beside, PageIsFull, Reader, Tape};

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

/// How many numbers are many: they do not wait for more.
const LONG: usize = 128;

/// What the core is answered when it hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is taken.
    Taken,
    /// A snapshot is asked for; because of a gap, if there is one.
    Snapshot { gap: bool },
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
        tape: Tape::new(page),
        gap: false,
    };
    (sender, Receiver { shared, read: 0 })
}

/// The core's end.
#[derive(Debug)]
pub(super) struct Sender {
    shared: Arc<Shared>,
    /// What is not handed over yet.
    tape: Tape,
    /// Whether steps were left out, and no snapshot followed yet.
    gap: bool,
}

impl Sender {
    /// See [`Tape::step`].
    #[inline]
    pub(super) fn step(&mut self, now: Now, input: Option<&Input>) {
        if !self.gap && self.tape.step(now, input) == Err(PageIsFull) {
            self.step_on_another_page(now, input);
        }
    }

    #[cold]
    fn step_on_another_page(&mut self, now: Now, input: Option<&Input>) {
        if self.turn() {
            self.gap = self.tape.step(now, input).is_err();
        }
    }

    /// See [`Tape::effect`].
    #[inline]
    pub(super) fn effect(&mut self, effect: &Effect) {
        if !self.gap {
            let mark = Mark::of(effect);
            if self.tape.effect(mark) == Err(PageIsFull) {
                self.effect_on_another_page(mark);
            }
        }
    }

    #[cold]
    fn effect_on_another_page(&mut self, mark: Mark) {
        if self.turn() {
            self.gap = self.tape.effect(mark).is_err();
        }
    }

    /// A segment begins, with something that lies beside the numbers.
    #[cold]
    pub(super) fn push(&mut self, now: Now, beside: Beside) {
        self.gap = false;
        self.tape.close();
        if self.tape.is_roomy() || self.turn() {
            self.tape.push(now, beside);
        }
    }

    /// Hands over what happened, up to the end of a step. Where `more` is to come at once, it may
    /// wait for that. A snapshot is not asked for twice.
    #[inline]
    pub(super) fn hand_over(&mut self, more: bool) -> Answer {
        if more && self.tape.len() < LONG || self.tape.len() == 0 && !self.gap {
            return Answer::Taken;
        }
        self.tape.close();
        if self.tape.has_beside() {
            self.hand_beside_over();
        } else {
            self.tape.hand_over();
        }
        if self.gap || self.shared.calls.load(Ordering::Relaxed) != 0 {
            return self.called();
        }
        Answer::Taken
    }

    /// First what lies beside the numbers: who reads them looks for it.
    #[cold]
    fn hand_beside_over(&mut self) {
        let mut inner = self.shared.lock();
        let beside = self.tape.take_beside();
        if inner.beside.len() + beside.len() <= BESIDE {
            inner.beside.extend(beside);
            drop(inner);
            self.tape.hand_over();
        } else {
            drop((inner, beside));
            self.tape.forget();
            self.gap = true;
        }
    }

    /// Goes on with an empty page. Where there is no room, all that was not handed over is left out.
    #[cold]
    fn turn(&mut self) -> bool {
        let mut inner = self.shared.lock();
        let open = self.tape.open();
        let beside = self.tape.take_beside();
        if inner.pages.len() >= PAGES || inner.beside.len() + beside.len() > BESIDE {
            drop((inner, beside));
            self.tape.forget();
            self.gap = true;
            return false;
        }
        inner.beside.extend(beside);
        let spare = inner.spare.pop();
        let page = spare.filter(|page| page.room() > 2 * open);
        let page = page.unwrap_or_else(|| Arc::new(Page::with_room_for(2 * open)));
        page.clear();
        self.tape.turn(page.clone());
        inner.pages.push_back(page);
        true
    }

    /// What is rare at a hand-over.
    #[cold]
    fn called(&mut self) -> Answer {
        if self.shared.calls(OVER) {
            return Answer::Over;
        }
        // Once is enough, however long it takes to wake up.
        if self.shared.take_call(ASLEEP) {
            // The lock makes sure that it waits already.
            drop(self.shared.lock());
            self.shared.woken.notify_all();
        }
        if self.gap {
            let gap = true;
            return match self.is_roomy() {
                true => Answer::Snapshot { gap },
                false => Answer::Taken,
            };
        }
        if self.shared.take_call(SNAPSHOT) {
            return Answer::Snapshot { gap: false };
        }
        Answer::Taken
    }

    /// Whether it makes sense to go on after a gap.
    fn is_roomy(&self) -> bool {
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
    /// Takes what waits, when something may. `false` at the end.
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
        let usual = full.into_iter().filter(|page| page.is_usual());
        inner.spare.extend(usual.take(room));
        reader.numbers.len() > before || !inner.ended
    }

    /// Sleeps a while, and on until there is something to read or there will be nothing more. Also
    /// under load: what is read while it is written is taken away from the core's processor.
    fn wait_for_news(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.shared.lock();
        if !inner.ended && inner.pages.len() < PAGES / 4 {
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

#[cfg(test)]
mod tests {
    use drover_core::effect::Told;
    use drover_core::input::ShutdownMode;

    use super::super::tape::{Nonsense, What};
    use super::*;

    /// Steps of which every fifth is not made of numbers, with so many effects each.
    fn live(sender: &mut Sender, effects: impl IntoIterator<Item = u64>) {
        for (nth, many) in effects.into_iter().enumerate() {
            let input = (nth % 5 == 0).then_some(Input::Shutdown(ShutdownMode::KeepTasks));
            sender.step(Now::default(), input.as_ref());
            for number in 0..many {
                sender.effect(&Effect::Tell(Told::Index(number)));
            }
        }
    }

    /// Of each thing that is read, whether it is not made of numbers, and how many effects followed.
    fn read(receiver: &mut Receiver, reader: &mut Reader) -> Vec<(bool, u64)> {
        let mut all = Vec::new();
        receiver.take(reader);
        let read = reader.read(|_, what, marks| {
            let is_beside = !matches!(what, What::Step(None));
            all.push((is_beside, u64::try_from(marks.len()).unwrap_or(0)));
            Ok::<(), Nonsense>(())
        });
        assert_eq!(read, Ok(()));
        all
    }

    fn expected(effects: impl IntoIterator<Item = u64>) -> Vec<(bool, u64)> {
        let all = effects.into_iter().enumerate();
        all.map(|(nth, many)| (nth % 5 == 0, many)).collect()
    }

    #[test]
    fn steps_are_whole_on_whatever_pages_they_lie() {
        let (mut sender, mut receiver) = queue();
        let mut reader = Reader::default();
        let turns = [vec![3; 1000], vec![5000, 1, 2000, 2043], vec![0, 20_000]];
        for turn in turns {
            live(&mut sender, turn.clone());
            assert_eq!(sender.hand_over(false), Answer::Taken);
            assert_eq!(read(&mut receiver, &mut reader), expected(turn));
        }
    }

    #[test]
    fn what_has_no_room_is_left_out_and_a_snapshot_wanted() {
        let (mut sender, mut receiver) = queue();
        let mut reader = Reader::default();
        live(&mut sender, [1; 7]);
        assert_eq!(sender.hand_over(false), Answer::Taken);
        let far_too_many = 3 * PAGES * 2048 / 100;
        live(&mut sender, vec![98; far_too_many]);
        assert_eq!(sender.hand_over(false), Answer::Taken);
        let whole = read(&mut receiver, &mut reader);
        assert_eq!(whole[..7], expected([1; 7]));
        assert_eq!(whole[7..], expected(vec![98; whole.len() - 7]));
        assert!(whole.len() < far_too_many);
        live(&mut sender, [1; 7]);
        assert_eq!(sender.hand_over(false), Answer::Snapshot { gap: true });
        let input = Input::Shutdown(ShutdownMode::KeepTasks);
        sender.push(Now::default(), Beside::Input(Box::new(input)));
        live(&mut sender, [2; 7]);
        assert_eq!(sender.hand_over(false), Answer::Taken);
        let after = read(&mut receiver, &mut reader);
        assert_eq!(after[0], (true, 0));
        assert_eq!(after[1..], expected([2; 7]));
    }
}
