//! How long things take: a few counters that one side adds to and others read, without locks.
//!
//! Histograms have fixed buckets. The time of a step begins when the loop takes an input and ends
//! when its effects are begun.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets. What takes longer than the last is in none of them.
pub const BOUNDS: [Duration; 8] = [
    Duration::from_micros(3),
    Duration::from_micros(10),
    Duration::from_micros(30),
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
];

/// Adds up how long things take.
#[derive(Debug, Default)]
pub struct Timer {
    count: AtomicU64,
    sum: AtomicU64,
    longest: AtomicU64,
    buckets: [AtomicU64; BOUNDS.len()],
}

/// How long things took so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// How many there were.
    pub count: u64,
    /// All of their times together.
    pub sum: Duration,
    /// The longest.
    pub longest: Duration,
    /// How many took no longer than each of [`BOUNDS`], and longer than the one before it.
    pub buckets: [u64; BOUNDS.len()],
}

impl Timer {
    /// One more, which took so long.
    pub fn note(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(nanos, Ordering::Relaxed);
        self.longest.fetch_max(nanos, Ordering::Relaxed);
        let bucket = BOUNDS.iter().zip(&self.buckets);
        if let Some((_, bucket)) = bucket.into_iter().find(|(bound, _)| time <= **bound) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was noted so far. Who notes at this moment may be in one number and not in another.
    pub fn timing(&self) -> Timing {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Timing {
            count: read(&self.count),
            sum: Duration::from_nanos(read(&self.sum)),
            longest: Duration::from_nanos(read(&self.longest)),
            buckets: self.buckets.each_ref().map(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_uses_first_fitting_bucket() {
        let timer = Timer::default();
        for micros in [1, 3, 4, 2_000_000] {
            timer.note(Duration::from_micros(micros));
        }
        let timing = timer.timing();
        assert_eq!(
            (timing.count, timing.sum),
            (4, Duration::from_micros(2_000_008))
        );
        assert_eq!(timing.longest, Duration::from_secs(2));
        assert_eq!(timing.buckets, [2, 1, 0, 0, 0, 0, 0, 0]);
    }
}
