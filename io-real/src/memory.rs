//! Memory that was freed and that the allocator still holds.
//!
//! glibc gives back what is freed at the end of a heap, never what is freed in the middle of it. A burst
//! of jobs, and each snapshot that the recorder writes, leave heaps that are nearly empty and stay
//! resident: after 500 jobs that came and went 57 MiB of one heap alone, and two thirds of what 300
//! running tasks seemed to cost. Asking for it back takes milliseconds, so it is done seldom: as soon as
//! there is nothing to do after much was done, else now and then; never by the thread that owns the core; and
//! only if much was freed since the last time: where a little work comes again and again, as checks do, what is given back
//! would be taken again at once. Pages of the program's own file cost less to let go ([`program_pages`]): that is done
//! after a little work, too.
//!
//! glibc also gives each thread that allocates a heap of its own, up to eight for each processor. Of the
//! two dozen threads that help with the start of tasks each would leave one behind that is nearly empty;
//! so there are two, that of the core's thread and one for all others.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::program_pages;

/// After so many steps of the core it may be worth while when there is nothing to do.
const SOME_STEPS: u32 = 200;

/// After so many also while there is.
const MANY_STEPS: u32 = 2_000;

/// There is nothing to do if there was nothing for so long.
const REST: Duration = Duration::from_millis(250);

/// The shortest pause between two times while there is nothing to do after much was done.
const PAUSE_AT_REST: Duration = Duration::from_secs(2);

/// The same after a little, as the heartbeats of a node are: one passes through as much code as the start of a job.
const PAUSE_AFTER_LITTLE: Duration = Duration::from_secs(10);

/// The same while there is something to do.
const PAUSE: Duration = Duration::from_secs(30);

/// So many more bytes than after the last time are worth it.
const WORTH: u64 = 512 << 10;

/// No page is smaller.
const PAGE: u64 = 4096;

/// Has all threads but the first share a heap. For the start of an agent.
pub fn share_heaps() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointers, and may be called by any thread at any time.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Gives back to the system what was freed.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointers, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Gives memory back now and then, after much was done.
#[derive(Debug)]
pub(crate) struct GivesBack {
    /// Since it was last given back.
    steps: u32,
    last: Instant,
    /// When the last step began.
    busy: Instant,
    /// What was held when it had been given back.
    left: Arc<[AtomicU64; 2]>,
}

impl GivesBack {
    pub(crate) fn new() -> GivesBack {
        let now = Instant::now();
        GivesBack {
            // The start was much work.
            steps: SOME_STEPS,
            last: now,
            busy: now,
            left: Arc::default(),
        }
    }

    /// The core did one more step, which began then.
    #[inline]
    pub(crate) fn step(&mut self, began: Instant) {
        self.steps = self.steps.saturating_add(1);
        self.busy = began;
        if self.steps >= MANY_STEPS && began - self.last >= PAUSE {
            self.work(began);
        }
    }

    /// When to give it back if there is no step until then.
    pub(crate) fn due_at_rest(&self) -> Option<Instant> {
        let pause = match self.steps {
            0 => return None,
            1..SOME_STEPS => PAUSE_AFTER_LITTLE,
            SOME_STEPS.. => PAUSE_AT_REST,
        };
        Some((self.busy + REST).max(self.last + pause))
    }

    /// There was no step until then.
    #[cold]
    pub(crate) fn work(&mut self, now: Instant) {
        (self.steps, self.last) = (0, now);
        let left = self
            .left
            .each_ref()
            .map(|bytes| bytes.load(Ordering::Relaxed));
        let [unused, resident] = held_bytes();
        let (freed, grown) = (unused >= left[0] + WORTH, resident >= left[1] + WORTH);
        if !freed && !grown {
            return;
        }
        let left = self.left.clone();
        drop(tokio::task::spawn_blocking(move || {
            if freed {
                give_back();
            }
            program_pages::let_go();
            for (left, held) in left.iter().zip(held_bytes()) {
                left.store(held, Ordering::Relaxed);
            }
        }));
    }
}

/// How many bytes the allocator holds that nobody uses, given back or not, and how many of the program are in memory.
fn held_bytes() -> [u64; 2] {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointers, and may be called by any thread at any time.
    let unused = unsafe { libc::mallinfo() }.fordblks.cast_unsigned();
    #[cfg(not(target_env = "gnu"))]
    let unused = 0_u32;
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    [unused.into(), pages.unwrap_or(0_u64).saturating_mul(PAGE)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_sooner_after_much_than_after_little() {
        let mut memory = GivesBack::new();
        memory.steps = 0;
        let begin = memory.last;
        assert_eq!(memory.due_at_rest(), None, "nothing was done");
        memory.step(begin);
        assert_eq!(
            memory.due_at_rest(),
            Some(begin + PAUSE_AFTER_LITTLE),
            "a little was"
        );
        memory.step(begin + PAUSE);
        assert_eq!(memory.due_at_rest(), Some(begin + PAUSE + REST));
        for _ in 0..SOME_STEPS {
            memory.step(begin);
        }
        assert_eq!(
            memory.due_at_rest(),
            Some(begin + PAUSE_AT_REST),
            "much was"
        );
    }
}
