//! Durations and sizes, without fractions that are rounded unsaid.

/// The longest duration, in nanoseconds: a hundred years.
const LONGEST: u128 = 100 * 366 * 24 * 3_600 * 1_000_000_000;

const NANOS: [(&str, u128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A duration in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Duration(pub u128);

impl Duration {
    pub(crate) const fn secs(secs: u128) -> Duration {
        Duration(secs * 1_000_000_000)
    }

    /// As job files have it, in one unit.
    pub(crate) fn text(self) -> String {
        let units = [
            ("h", 6),
            ("m", 5),
            ("s", 4),
            ("ms", 3),
            ("us", 1),
            ("ns", 0),
        ];
        let size = |at: usize| NANOS.get(at).map_or(1, |(_, size)| *size);
        let fits = |(_, at): &&(&str, usize)| self.0 > 0 && self.0.is_multiple_of(size(*at));
        match units.iter().find(fits) {
            // 90 seconds rather than 1.5 minutes, but no 86400 seconds.
            Some((name, at)) => format!("{}{name}", self.0 / size(*at)),
            None => "0s".to_owned(),
        }
    }
}

/// A duration as compose has it, such as `1m30s`; a number alone is seconds.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    sum(text, &NANOS)
}

/// A span of time as systemd has it, such as `1min 30s`; a number alone is seconds.
pub(crate) fn span(text: &str) -> Option<Duration> {
    const SECOND: u128 = 1_000_000_000;
    const UNITS: [(&str, u128); 28] = [
        ("nsec", 1),
        ("ns", 1),
        ("usec", 1_000),
        ("us", 1_000),
        ("µs", 1_000),
        ("msec", 1_000_000),
        ("ms", 1_000_000),
        ("seconds", SECOND),
        ("second", SECOND),
        ("sec", SECOND),
        ("s", SECOND),
        ("minutes", 60 * SECOND),
        ("minute", 60 * SECOND),
        ("min", 60 * SECOND),
        ("m", 60 * SECOND),
        ("hours", 3_600 * SECOND),
        ("hour", 3_600 * SECOND),
        ("hr", 3_600 * SECOND),
        ("h", 3_600 * SECOND),
        ("days", 86_400 * SECOND),
        ("day", 86_400 * SECOND),
        ("d", 86_400 * SECOND),
        ("weeks", 604_800 * SECOND),
        ("week", 604_800 * SECOND),
        ("w", 604_800 * SECOND),
        ("months", 2_629_800 * SECOND),
        ("month", 2_629_800 * SECOND),
        ("M", 2_629_800 * SECOND),
    ];
    sum(text, &UNITS)
}

/// Numbers with units, one behind the other.
fn sum(text: &str, units: &[(&str, u128)]) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut all: u128 = 0;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let behind = behind.trim_start();
        let end = behind
            .find(|c: char| c.is_ascii_digit() || c.is_whitespace())
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let size = match unit {
            // A number without a unit is seconds, and stands alone.
            "" if rest.len() == text.trim().len() && behind.is_empty() => 1_000_000_000,
            unit => units.iter().find(|(name, _)| *name == unit)?.1,
        };
        all = all.checked_add(decimal(number, size)?)?;
        rest = behind.trim_start();
    }
    (all <= LONGEST).then_some(Duration(all))
}

/// A decimal number times a size; what is left of the last digit is cut.
pub(crate) fn decimal(number: &str, size: u128) -> Option<u128> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.len() <= 20 && text.bytes().all(|c| c.is_ascii_digit());
    if !digits(whole) || !digits(part) || (whole.is_empty() && part.is_empty()) {
        return None;
    }
    let value = |text: &str| {
        if text.is_empty() {
            Some(0)
        } else {
            text.parse::<u128>().ok()
        }
    };
    let ten = 10_u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part = value(part)?.checked_mul(size)? / ten;
    value(whole)?.checked_mul(size)?.checked_add(part)
}

/// A size in bytes: `512m`, `1.5G`, `64KiB`, `100`; units count by 1024.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    let bytes = u64::try_from(decimal(number, 1 << shift)?).ok()?;
    (bytes <= 1 << 50).then_some(bytes)
}

/// Bytes as megabytes, rounded up.
pub(crate) fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(found: Option<Duration>) -> String {
        found.map_or("none".to_owned(), Duration::text)
    }

    #[test]
    fn durations_of_compose() {
        for (given, wanted) in [
            ("1m30s", "90s"),
            ("1.5s", "1500ms"),
            ("10", "10s"),
            ("0s", "0s"),
            ("2h", "2h"),
            ("1h0m1", "none"),
            ("s", "none"),
            ("", "none"),
            ("99999999999999999999h", "none"),
            ("1.2.3s", "none"),
        ] {
            assert_eq!(text_of(duration(given)), wanted, "{given}");
        }
    }

    #[test]
    fn spans_of_systemd() {
        for (given, wanted) in [
            ("1min 30s", "90s"),
            ("1min30s", "90s"),
            ("5", "5s"),
            ("100 ms", "100ms"),
            ("2 days", "48h"),
            ("infinity", "none"),
        ] {
            assert_eq!(text_of(span(given)), wanted, "{given}");
        }
    }

    #[test]
    fn sizes() {
        for (given, wanted) in [
            ("512m", Some(512 << 20)),
            ("1.5g", Some(1536 << 20)),
            ("64KiB", Some(65536)),
            ("100", Some(100)),
            ("1x", None),
            ("9999999999t", None),
            ("", None),
        ] {
            assert_eq!(bytes(given), wanted, "{given}");
        }
    }
}
