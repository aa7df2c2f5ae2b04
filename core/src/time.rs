//! Time as the core sees it: three integers, none of them read from a clock.
//!
//! Whoever drives the core passes [`Now`] with each call. [`Instant`] counts nanoseconds of the
//! machine's boot clock, so it never jumps and survives a restart of the agent (not of the
//! machine). [`Timestamp`] is wall time, is shown to people and stored, and may jump.

use core::fmt;
use core::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// One second in nanoseconds.
pub const SECOND: i64 = 1_000_000_000;

/// A point on the boot clock, in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Instant(pub u64);

/// A length of time in nanoseconds. Negative spans come from job files only, and validation
/// refuses them; arithmetic treats them as zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Span(pub i64);

/// Wall time: nanoseconds since 1970 in UTC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(pub i64);

/// The two clocks at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Now {
    /// The boot clock: for every decision.
    pub at: Instant,
    /// The wall clock: for what people read, and for what must outlive a reboot.
    pub wall: Timestamp,
}

impl Now {
    /// How far the wall clock is ahead of the boot clock, in nanoseconds: it changes when somebody sets it.
    pub fn wall_ahead(self) -> i64 {
        let at = i64::try_from(self.at.0).unwrap_or(i64::MAX);
        self.wall.0.saturating_sub(at)
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of whole seconds.
    pub const fn secs(n: i64) -> Span {
        Span(n.saturating_mul(SECOND))
    }

    /// A span of whole milliseconds.
    pub const fn millis(n: i64) -> Span {
        Span(n.saturating_mul(1_000_000))
    }

    /// Whether there is nothing to wait for.
    pub const fn is_zero(self) -> bool {
        self.0 <= 0
    }
}

impl Add<Span> for Instant {
    type Output = Instant;
    fn add(self, span: Span) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(span.0).unwrap_or(0)))
    }
}

impl Sub for Instant {
    type Output = Span;
    /// The time since `earlier`; zero if it lies in the future.
    fn sub(self, earlier: Instant) -> Span {
        Span(i64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(i64::MAX))
    }
}

impl Add<Span> for Timestamp {
    type Output = Timestamp;
    fn add(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_add(span.0))
    }
}

impl Sub for Timestamp {
    type Output = Span;
    fn sub(self, earlier: Timestamp) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Span {
    /// The form that Nomad's users write and read: `1h30m0s`, `1.5s`, `250ms`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanos = self.0.unsigned_abs();
        f.write_str(sign)?;
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write_unit(f, nanos, 1_000, "µs"),
            1_000_000..1_000_000_000 => write_unit(f, nanos, 1_000_000, "ms"),
            _ => {
                let whole = nanos / SECOND.unsigned_abs();
                let (hours, minutes) = (whole / 3600, whole / 60 % 60);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if whole >= 60 {
                    write!(f, "{minutes}m")?;
                }
                let rest = nanos - (hours * 3600 + minutes * 60) * SECOND.unsigned_abs();
                write_unit(f, rest, SECOND.unsigned_abs(), "s")
            }
        }
    }
}

fn write_unit(f: &mut fmt::Formatter<'_>, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    let (whole, part) = (nanos / unit, nanos % unit);
    if part == 0 {
        return write!(f, "{whole}{name}");
    }
    let width = unit.ilog10() as usize;
    let digits = format!("{part:0width$}");
    write!(f, "{whole}.{}{name}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_prints_like_nomad() {
        let shown = [
            0,
            5,
            1_500,
            250_000_000,
            1_500_000_000,
            90 * SECOND,
            5400 * SECOND,
        ]
        .map(|n| Span(n).to_string());
        assert_eq!(
            shown,
            ["0s", "5ns", "1.5µs", "250ms", "1.5s", "1m30s", "1h30m0s"]
        );
        assert_eq!(Span(-SECOND).to_string(), "-1s");
    }

    #[test]
    fn instants_saturate_instead_of_wrapping() {
        assert_eq!(Instant(5) - Instant(9), Span::ZERO);
        assert_eq!(Instant(u64::MAX) + Span::secs(1), Instant(u64::MAX));
        assert_eq!(Instant(7) + Span(-3), Instant(7));
    }
}
