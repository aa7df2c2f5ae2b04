//! Instants as people and Go write them; all are UTC.

use std::fmt;

use jiff::Timestamp;
use jiff::fmt::strtime;

/// An instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(Timestamp);

const SECOND: i128 = 1_000_000_000;

impl Time {
    /// From nanoseconds since 1970; the first or last instant of the calendar if there is none.
    pub(crate) fn from_nanos(nanos: i128) -> Self {
        let (first, last) = (Timestamp::MIN, Timestamp::MAX);
        let nanos = nanos.clamp(first.as_nanosecond(), last.as_nanosecond());
        Self(Timestamp::from_nanosecond(nanos).unwrap_or_default())
    }

    /// Whole seconds since 1970.
    pub(crate) fn unix(self) -> i128 {
        self.0.as_nanosecond().div_euclid(SECOND)
    }

    /// As RFC 3339 has it, to the second.
    pub(crate) fn rfc3339(self) -> String {
        self.format("2006-01-02T15:04:05Z07:00")
    }

    /// By a layout of Go's: one that shows how it writes 2006-01-02 15:04:05.
    pub(crate) fn format(self, layout: &str) -> String {
        let mut out = String::new();
        let mut rest = layout;
        while let Some(char) = rest.chars().next() {
            let part = PARTS.iter().find(|(part, _)| rest.starts_with(part));
            match part {
                Some((part, shown)) => {
                    out.push_str(&strtime::format(shown, self.0).unwrap_or_default());
                    rest = rest.get(part.len()..).unwrap_or_default();
                }
                None => match self.fraction(rest) {
                    Some((shown, len)) => {
                        out.push_str(&shown);
                        rest = rest.get(len..).unwrap_or_default();
                    }
                    None => {
                        out.push(char);
                        rest = rest.get(char.len_utf8()..).unwrap_or_default();
                    }
                },
            }
        }
        out
    }

    /// `.000` and `.999`: as many digits; nines leave out zeros at the end.
    fn fraction(self, rest: &str) -> Option<(String, usize)> {
        let digits = rest.strip_prefix(['.', ','])?;
        let digit = digits
            .chars()
            .next()
            .filter(|digit| matches!(digit, '0' | '9'))?;
        let count = digits.len() - digits.trim_start_matches(digit).len();
        let next = digits.chars().nth(count);
        if count > 9 || next.is_some_and(|char| char.is_ascii_digit()) {
            return None;
        }
        let all = format!("{:09}", self.0.as_nanosecond().rem_euclid(SECOND));
        let mut shown = all.get(..count)?.to_owned();
        if digit == '9' {
            shown.truncate(shown.trim_end_matches('0').len());
        }
        let separator = rest.get(..1)?;
        let shown = if shown.is_empty() {
            shown
        } else {
            format!("{separator}{shown}")
        };
        Some((shown, count + 1))
    }
}

/// As Go shows an instant.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}

/// Parts of layouts, and what they are called in other formats; what begins like another one stands
/// after the longer.
const PARTS: [(&str, &str); 33] = [
    ("January", "%B"),
    ("Jan", "%b"),
    ("Monday", "%A"),
    ("Mon", "%a"),
    ("MST", "UTC"),
    ("2006", "%Y"),
    ("002", "%j"),
    ("__2", "%_j"),
    ("_2", "%e"),
    ("01", "%m"),
    ("02", "%d"),
    ("03", "%I"),
    ("04", "%M"),
    ("05", "%S"),
    ("06", "%y"),
    ("15", "%H"),
    ("PM", "%p"),
    ("pm", "%P"),
    ("-07:00:00", "%::z"),
    ("-070000", "+000000"),
    ("-07:00", "%:z"),
    ("-0700", "%z"),
    ("-07", "%:::z"),
    ("Z07:00:00", "Z"),
    ("Z070000", "Z"),
    ("Z07:00", "Z"),
    ("Z0700", "Z"),
    ("Z07", "Z"),
    ("1", "%-m"),
    ("2", "%-d"),
    ("3", "%-I"),
    ("4", "%-M"),
    ("5", "%-S"),
];
