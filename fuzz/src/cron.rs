//! Cron expressions: what can be read has times, in order, forwards and backwards the same.

use drover_core::cron::schedule::{Next, Schedule};
use drover_core::cron::zone::ZoneOffsets;
use drover_core::model::policy::PeriodicConfig;

/// A second of 2026, from which times are looked for.
const NOW: i64 = 1_795_632_000;

/// A cron expression.
///
/// # Panics
/// Something does not hold.
pub fn cron(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    let periodic = PeriodicConfig {
        spec: text.to_owned(),
        ..PeriodicConfig::default()
    };
    let schedule = match Schedule::of(&periodic) {
        Ok(schedule) => schedule,
        Err(bad) => {
            let inside = |at: usize| text.is_char_boundary(at);
            return assert!(bad.iter().all(|one| inside(one.mistake.at)), "{bad:?}");
        }
    };
    let moved = ZoneOffsets {
        from: NOW - 1_000_000,
        until: NOW + 1_000_000,
        first: 3600,
        changes: vec![(NOW + 500, 7200), (NOW + 90_000, -3600)],
    };
    for zone in [ZoneOffsets::utc(), moved] {
        let mut last = NOW;
        for _ in 0..5 {
            let Next::At(at) = schedule.next(&zone, last) else {
                break;
            };
            assert!(at > last, "{text:?} goes back from {last} to {at}");
            assert_eq!(
                schedule.latest(&zone, last, at),
                Some(at),
                "{text:?} backwards"
            );
            assert_eq!(
                schedule.latest(&zone, last, at - 1),
                None,
                "{text:?} in between"
            );
            last = at;
        }
    }
}
