//! A page of numbers that one thread fills while another reads what is there already. Neither ever
//! waits for the other.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many numbers a page has room for: 16 KiB of them.
const ROOM: usize = 2048;

/// How many numbers lie together in the processor's fast memory: a step takes about one such line.
const LINE: usize = 8;

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
        let places = self.numbers.get(at..).unwrap_or_default();
        for (place, number) in places.iter().zip(now) {
            place.store(*number, Ordering::Relaxed);
        }
        self.written.store(at + now.len(), Ordering::Release);
        // The line after the one that follows, and one more.
        let soon = now.len() + LINE..=now.len() + 2 * LINE;
        if let Some([one, .., other]) = places.get(soon) {
            is_written_soon(one);
            is_written_soon(other);
        }
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

/// The reader had this place last, and to take it back takes the processor longer than all else that
/// is done for a step. So it is asked to long before, and goes on meanwhile.
#[inline]
#[cfg(target_arch = "x86_64")]
fn is_written_soon(place: &AtomicU64) {
    // SAFETY: a hint, which changes nothing that a program could see, whatever the address.
    unsafe {
        std::arch::asm!(
            "prefetchw [{place}]",
            place = in(reg) place.as_ptr(),
            options(nostack, preserves_flags, readonly)
        );
    }
}

#[inline]
#[cfg(not(target_arch = "x86_64"))]
fn is_written_soon(_: &AtomicU64) {}
