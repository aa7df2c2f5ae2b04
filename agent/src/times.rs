//! Points and lengths of time as people and programs read them. Everything is in UTC.

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
    let seconds = time.0.div_euclid(SECOND);
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let of_day = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The time of day in UTC, as `10:20:30`.
pub fn clock(time: Timestamp) -> String {
    to_seconds(time).chars().skip(11).take(8).collect()
}

/// `2026-11-21T04:43:17.364225901Z`, without trailing zeros of the fraction.
pub fn to_nanos(time: Timestamp) -> String {
    let nanos = time.0.rem_euclid(SECOND);
    let text = to_seconds(time);
    if nanos == 0 {
        return text;
    }
    let fraction = format!("{nanos:09}");
    let fraction = fraction.trim_end_matches('0');
    format!("{}.{fraction}Z", text.trim_end_matches('Z'))
}

/// The year, month and day of a number of days since 1970, in the calendar of today.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that the leap day is a year's last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Reads what [`to_nanos`] and [`to_seconds`] write.
pub fn parse(text: &str) -> Option<Timestamp> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut clock = whole.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let ranges = (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !ranges
        || !(0..24).contains(&hour)
        || !(0..60).contains(&minute)
        || !(0..61).contains(&second)
    {
        return None;
    }
    let nanos: i64 = match fraction.len() {
        0 => 0,
        1..=9 => format!("{fraction:0<9}").parse().ok()?,
        _ => return None,
    };
    let (shifted, from_march) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leaps = shifted.div_euclid(4) - shifted.div_euclid(100) + shifted.div_euclid(400);
    let days = shifted * 365 + leaps + (153 * from_march + 2) / 5 + day - 1 - 719_468;
    let seconds = days * DAY + hour * 3600 + minute * 60 + second;
    Some(Timestamp(seconds.checked_mul(SECOND)?.checked_add(nanos)?))
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
