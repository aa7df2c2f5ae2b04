//! A page of numbers that one thread fills while another reads what is there already. Neither ever
//! waits for the other.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many numbers a page has room for: 4 KiB of them.
const ROOM: usize = 512;

/// A page. Whoever fills it remembers how far it is.
#[derive(Debug)]
pub(super) struct Page {
    numbers: Box<[AtomicU64]>,
    /// How many may be read.
    written: AtomicUsize,
}

impl Page {
    pub(super) fn new() -> Page {
        Page {
            numbers: (0..ROOM).map(|_| AtomicU64::new(0)).collect(),
            written: AtomicUsize::new(0),
        }
    }

    /// Makes it empty, before it is filled again. Nobody may read it meanwhile.
    pub(super) fn clear(&self) {
        self.written.store(0, Ordering::Relaxed);
    }

    /// The room that is left after so many.
    pub(super) fn room(after: usize) -> usize {
        ROOM - after
    }

    /// Writes as many of these as fit behind the first `at`. Returns those that did not fit.
    #[inline]
    pub(super) fn write<'n>(&self, at: usize, new: &'n [u64]) -> &'n [u64] {
        let (now, rest) = new.split_at(new.len().min(Page::room(at)));
        for (place, number) in self.numbers.iter().skip(at).zip(now) {
            place.store(*number, Ordering::Relaxed);
        }
        self.written.store(at + now.len(), Ordering::Release);
        rest
    }

    /// How many are there.
    pub(super) fn written(&self) -> usize {
        self.written.load(Ordering::Acquire)
    }

    /// Appends what is there behind the first `from`. Returns how many are read now.
    pub(super) fn read(&self, from: usize, into: &mut Vec<u64>) -> usize {
        let written = self.written();
        let new = self.numbers.iter().take(written).skip(from);
        into.extend(new.map(|number| number.load(Ordering::Relaxed)));
        written
    }
}
