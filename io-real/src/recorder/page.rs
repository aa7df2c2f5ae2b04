//! A page of numbers that one thread fills while another reads what is there already. Neither ever
//! waits for the other.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many numbers a page has room for as a rule: 16 KiB of them.
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
        Page::with_room_for(0)
    }

    /// A page for so many numbers, of the usual size if that is enough.
    pub(super) fn with_room_for(many: usize) -> Page {
        let room = many.max(ROOM);
        Page {
            numbers: (0..room).map(|_| AtomicU64::new(0)).collect(),
            written: AtomicUsize::new(0),
        }
    }

    /// Makes it empty, before it is filled again. Nobody may read it meanwhile.
    pub(super) fn clear(&self) {
        self.written.store(0, Ordering::Relaxed);
    }

    /// How many numbers it has room for.
    pub(super) fn room(&self) -> usize {
        self.numbers.len()
    }

    /// The next places behind the first `at`, if there are so many.
    #[inline]
    pub(super) fn places<const MANY: usize>(&self, at: usize) -> Option<&[AtomicU64; MANY]> {
        self.numbers.get(at..)?.first_chunk()
    }

    /// Puts a number behind the first `at`. Returns whether there was room.
    #[inline]
    pub(super) fn put(&self, at: usize, number: u64) -> bool {
        let place = self.numbers.get(at);
        if let Some(place) = place {
            place.store(number, Ordering::Relaxed);
        }
        place.is_some()
    }

    /// Lets the first `at` be read. What comes next is written soon.
    #[inline]
    pub(super) fn publish(&self, at: usize) {
        self.written.store(at, Ordering::Release);
        // The line after the one that follows, and one more.
        if let Some([one, .., other]) = self.numbers.get(at + LINE..=at + 2 * LINE) {
            is_written_soon(one);
            is_written_soon(other);
        }
    }

    /// How many are there.
    pub(super) fn written(&self) -> usize {
        self.written.load(Ordering::Acquire)
    }

    /// Takes over what stands in `other` from `from` to `to`. Returns how many numbers that are.
    pub(super) fn take_over(&self, other: &Page, from: usize, to: usize) -> usize {
        let numbers = other.numbers.get(from..to).unwrap_or_default();
        for (place, number) in self.numbers.iter().zip(numbers) {
            place.store(number.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        numbers.len()
    }

    /// Whether it is as large as pages are as a rule.
    pub(super) fn is_usual(&self) -> bool {
        self.room() == ROOM
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
