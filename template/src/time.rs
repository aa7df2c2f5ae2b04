//! Instants as people and Go write them; all are UTC.

use std::fmt;

/// An instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time {
    seconds: i128,
    nanos: i128,
}

const DAY: i128 = 86_400;

impl Time {
    /// From nanoseconds since 1970.
    pub(crate) fn from_nanos(nanos: i128) -> Self {
        Self {
            seconds: nanos.div_euclid(1_000_000_000),
            nanos: nanos.rem_euclid(1_000_000_000),
        }
    }

    pub(crate) fn unix(self) -> i128 {
        self.seconds
    }

    /// Year, month and day, by the rule of the Gregorian calendar for all times.
    fn date(self) -> (i128, i128, i128) {
        // Years begin in March here, so that the leap day is the last one.
        let days = self.seconds.div_euclid(DAY) + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 {
            march_month + 3
        } else {
            march_month - 9
        };
        let year = year_of_era + era * 400 + i128::from(month <= 2);
        (year, month, day)
    }

    fn clock(self) -> (i128, i128, i128) {
        let second = self.seconds.rem_euclid(DAY);
        (second / 3600, second / 60 % 60, second % 60)
    }

    fn weekday(self) -> i128 {
        (self.seconds.div_euclid(DAY) + 4).rem_euclid(7)
    }

    fn day_of_year(self) -> i128 {
        let (year, month, day) = self.date();
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let index = usize::try_from(month - 1).unwrap_or_default();
        let days = before.get(index).copied().unwrap_or_default();
        days + day + i128::from(leap && month > 2)
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
            let part = PARTS.iter().find(|part| rest.starts_with(**part));
            match part {
                Some(part) => {
                    out.push_str(&self.part(part));
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
        let all = format!("{:09}", self.nanos);
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

    fn part(self, part: &str) -> String {
        let (year, month, day) = self.date();
        let (hour, minute, second) = self.clock();
        let half = if hour % 12 == 0 { 12 } else { hour % 12 };
        let name = |names: &[&'static str], at: i128| {
            let at = usize::try_from(at).unwrap_or_default();
            names.get(at).copied().unwrap_or_default().to_owned()
        };
        match part {
            "January" => name(&MONTHS, month - 1),
            "Jan" => name(&MONTHS, month - 1).chars().take(3).collect(),
            "Monday" => name(&DAYS, self.weekday()),
            "Mon" => name(&DAYS, self.weekday()).chars().take(3).collect(),
            "2006" => format!("{year:04}"),
            "06" => format!("{:02}", year.rem_euclid(100)),
            "01" => format!("{month:02}"),
            "1" => month.to_string(),
            "002" => format!("{:03}", self.day_of_year()),
            "__2" => format!("{:3}", self.day_of_year()),
            "02" => format!("{day:02}"),
            "_2" => format!("{day:2}"),
            "2" => day.to_string(),
            "15" => format!("{hour:02}"),
            "03" => format!("{half:02}"),
            "3" => half.to_string(),
            "04" => format!("{minute:02}"),
            "4" => minute.to_string(),
            "05" => format!("{second:02}"),
            "5" => second.to_string(),
            "PM" => if hour < 12 { "AM" } else { "PM" }.into(),
            "pm" => if hour < 12 { "am" } else { "pm" }.into(),
            "MST" => "UTC".into(),
            "-07:00:00" => "+00:00:00".into(),
            "-070000" => "+000000".into(),
            "-07:00" => "+00:00".into(),
            "-0700" => "+0000".into(),
            "-07" => "+00".into(),
            _ => "Z".into(),
        }
    }
}

/// As Go shows an instant.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// Parts of layouts; what begins like another one stands after the longer.
const PARTS: [&str; 33] = [
    "January",
    "Jan",
    "Monday",
    "Mon",
    "MST",
    "2006",
    "002",
    "__2",
    "_2",
    "01",
    "02",
    "03",
    "04",
    "05",
    "06",
    "15",
    "PM",
    "pm",
    "-07:00:00",
    "-070000",
    "-07:00",
    "-0700",
    "-07",
    "Z07:00:00",
    "Z070000",
    "Z07:00",
    "Z0700",
    "Z07",
    "1",
    "2",
    "3",
    "4",
    "5",
];
