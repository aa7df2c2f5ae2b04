//! Points and lengths of time as people and programs read them. Everything is in UTC.

use drover_api::civil;
pub use drover_api::to_nanos;
use drover_core::time::{SECOND, Span, Timestamp};

const DAY: i64 = 24 * 3600;

/// Now, by the wall clock.
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    Timestamp(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// `2026-11-21T04:43:14Z`.
pub fn to_seconds(time: Timestamp) -> String {
    format!("{:.0}", civil(time))
}

/// The time of day in UTC, as `10:20:30`.
pub fn clock(time: Timestamp) -> String {
    civil(time).strftime("%H:%M:%S").to_string()
}

/// Reads what [`to_nanos`] and [`to_seconds`] write.
pub fn parse(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok().map(Timestamp)
}

/// How long ago, as people say it: the two largest units. `10s ago`, `1m3s ago`, `2d3h ago`.
pub fn ago(time: Timestamp, now: Timestamp) -> String {
    if time.0 <= 0 {
        return "N/A".to_owned();
    }
    format!("{} ago", rough(now - time))
}

/// A length of time in its two largest units; less than a second is `0s`.
pub fn rough(span: Span) -> String {
    let seconds = (span.0 / SECOND).max(0);
    let units = [
        (DAY * 365, "y"),
        (DAY * 30, "mo"),
        (DAY, "d"),
        (3600, "h"),
        (60, "m"),
        (1, "s"),
    ];
    let mut rest = seconds;
    let mut text = String::new();
    let mut parts = 0;
    for (size, name) in units {
        let count = rest / size;
        rest %= size;
        if count > 0 {
            text.push_str(&format!("{count}{name}"));
            parts += 1;
        } else if parts > 0 {
            break;
        }
        if parts == 2 {
            break;
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_and_parse() {
        let time = Timestamp(1_795_236_197_364_225_901);
        assert_eq!(to_nanos(time), "2026-11-21T04:43:17.364225901Z");
        assert_eq!(to_seconds(time), "2026-11-21T04:43:17Z");
        assert_eq!(parse(&to_nanos(time)), Some(time));
        for seconds in [0, 951_782_400, 951_868_800, 4_107_542_399, -1] {
            let time = Timestamp(seconds * SECOND);
            assert_eq!(parse(&to_seconds(time)), Some(time), "{}", to_seconds(time));
        }
        assert_eq!(
            to_seconds(Timestamp(951_782_400 * SECOND)),
            "2000-02-29T00:00:00Z"
        );
        assert_eq!(parse("yesterday"), None);
        assert_eq!(parse("2026-13-01T00:00:00Z"), None);
    }

    #[test]
    fn ages_have_two_units() {
        assert_eq!(rough(Span::secs(0)), "0s");
        assert_eq!(rough(Span::secs(63)), "1m3s");
        assert_eq!(rough(Span::secs(3600)), "1h");
        assert_eq!(rough(Span::secs(86_400 * 2 + 3 * 3600 + 5)), "2d3h");
        assert_eq!(ago(Timestamp(0), Timestamp(5)), "N/A");
        assert_eq!(ago(Timestamp(SECOND), Timestamp(11 * SECOND)), "10s ago");
    }
}
