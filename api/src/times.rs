//! Points of time as programs read them.

use drover_core::time::Timestamp;

/// `2026-11-21T04:43:17.364225901Z`, without trailing zeros of the fraction.
pub fn to_nanos(time: Timestamp) -> String {
    civil(time).to_string()
}

/// The same in the calendar, in UTC.
pub fn civil(time: Timestamp) -> jiff::Timestamp {
    // Every number of nanoseconds that fits is within the calendar.
    jiff::Timestamp::from_nanosecond(time.0.into()).unwrap_or_default()
}
