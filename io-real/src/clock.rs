//! The machine's two clocks.

use drover_core::time::{Instant, Now, Timestamp};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// What both clocks say.
pub fn now() -> Now {
    let at = nanos(clock_gettime(ClockId::Boottime));
    Now {
        at: Instant(u64::try_from(at).unwrap_or(0)),
        wall: Timestamp(nanos(clock_gettime(ClockId::Realtime))),
    }
}

fn nanos(time: Timespec) -> i64 {
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec)
}
