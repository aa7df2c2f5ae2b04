//! Functions of dates and times, which are texts such as `2026-01-31T12:30:00Z`.

use drover_core::text::{parse_duration, quote};

use super::super::eval::value::Val;
use super::args::text;
use super::{Context, Function, Outcome};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("formatdate", (2, 2), |_, args| {
        let time = Moment::parse(&text(args, 1)?)?;
        Ok(Val::text(time.format(&text(args, 0)?)?))
    }),
    Function::new("timeadd", (2, 2), timeadd),
];

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
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

/// A date and time of day, as it is shown in its zone.
#[derive(Clone, Copy)]
struct Moment {
    /// Seconds since 1970 as the zone's clock shows them.
    local: i64,
    /// Seconds that the zone is east of UTC.
    offset: i64,
    /// Parts of a second.
    nanos: i64,
}

struct Date {
    year: i64,
    month: i64,
    day: i64,
}

fn timeadd(_: &Context<'_>, args: &[Val]) -> Outcome {
    let time = Moment::parse(&text(args, 0)?)?;
    let span = text(args, 1)?;
    let bad = |why| format!("{} is no duration: {why}", quote(&span));
    let span = parse_duration(&span).map_err(bad)?.0;
    let nanos = time.nanos + span.rem_euclid(1_000_000_000);
    let moved = Moment {
        local: time.local + span.div_euclid(1_000_000_000) + nanos / 1_000_000_000,
        nanos: nanos % 1_000_000_000,
        ..time
    };
    Ok(Val::text(moved.rfc3339()))
}

impl Moment {
    fn parse(text: &str) -> Result<Moment, String> {
        let bad = || format!("\"{text}\" is no time such as \"2026-01-31T12:30:00Z\"");
        Moment::read(text).ok_or_else(bad)
    }

    fn read(text: &str) -> Option<Moment> {
        let number = |from: usize, len: usize| -> Option<i64> {
            let digits = text.get(from..from + len)?;
            digits
                .bytes()
                .all(|b| b.is_ascii_digit())
                .then(|| digits.parse().ok())?
        };
        let marks = [(4, '-'), (7, '-'), (10, 'T'), (13, ':'), (16, ':')];
        let marked = |(at, mark): &(usize, char)| {
            text.get(*at..).is_some_and(|rest| rest.starts_with(*mark))
        };
        if !marks.iter().all(marked) {
            return None;
        }
        let date = Date {
            year: number(0, 4)?,
            month: number(5, 2)?,
            day: number(8, 2)?,
        };
        let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
        let in_range = (1..=12).contains(&date.month)
            && (1..=date.days_in_month()).contains(&date.day)
            && hour < 24
            && minute < 60
            && second < 60;
        let mut zone = text.get(19..)?;
        let mut nanos = 0;
        if let Some(part) = zone.strip_prefix('.') {
            let end = part.find(|c: char| !c.is_ascii_digit())?;
            let (digits, rest) = part.split_at(end);
            nanos = format!("{digits:0<9}").get(..9)?.parse().ok()?;
            zone = rest;
        }
        let offset = match zone {
            "Z" => 0,
            zone => {
                let at = text.len() - zone.len();
                let size = number(at + 1, 2)? * 3600 + number(at + 4, 2)? * 60;
                let well_formed = zone.len() == 6 && zone.get(3..4) == Some(":");
                match zone.chars().next() {
                    Some('+') if well_formed => size,
                    Some('-') if well_formed => -size,
                    _ => return None,
                }
            }
        };
        in_range.then(|| Moment {
            local: date.to_days() * 86_400 + hour * 3600 + minute * 60 + second,
            offset,
            nanos,
        })
    }

    fn date(self) -> Date {
        Date::from_days(self.local.div_euclid(86_400))
    }

    fn clock(self) -> (i64, i64, i64) {
        let seconds = self.local.rem_euclid(86_400);
        (seconds / 3600, seconds / 60 % 60, seconds % 60)
    }

    /// The zone with the given text between hours and minutes.
    fn zone(self, separator: &str) -> String {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let size = self.offset.abs();
        format!("{sign}{:02}{separator}{:02}", size / 3600, size / 60 % 60)
    }

    fn rfc3339(self) -> String {
        let (date, (hour, minute, second)) = (self.date(), self.clock());
        let zone = if self.offset == 0 {
            "Z".to_owned()
        } else {
            self.zone(":")
        };
        let Date { year, month, day } = date;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
    }

    fn format(self, format: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = format;
        while let Some(letter) = rest.chars().next() {
            if letter == '\'' {
                let (quoted, after) = quoted(rest)?;
                out.push_str(&quoted);
                rest = after;
                continue;
            }
            let end = rest.find(|c| c != letter).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            rest = after;
            if letter.is_ascii_alphabetic() {
                out.push_str(&self.part(run)?);
            } else {
                out.push_str(run);
            }
        }
        Ok(out)
    }

    /// What a run of one letter stands for.
    fn part(self, run: &str) -> Result<String, String> {
        let (date, (hour, minute, second)) = (self.date(), self.clock());
        let month = MONTHS.get(date.month as usize - 1).copied().unwrap_or("");
        let weekday = self.local.div_euclid(86_400).rem_euclid(7);
        let weekday = DAYS.get(weekday as usize).copied().unwrap_or("");
        let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
        let short = |name: &str| name.chars().take(3).collect::<String>();
        Ok(match run {
            "YYYY" => format!("{:04}", date.year),
            "YY" => format!("{:02}", date.year % 100),
            "MMMM" => month.to_owned(),
            "MMM" => short(month),
            "MM" => format!("{:02}", date.month),
            "M" => date.month.to_string(),
            "DD" => format!("{:02}", date.day),
            "D" => date.day.to_string(),
            "EEEE" => weekday.to_owned(),
            "EEE" => short(weekday),
            "hh" => format!("{hour:02}"),
            "h" => hour.to_string(),
            "HH" => format!("{twelve:02}"),
            "H" => twelve.to_string(),
            "AA" => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            "aa" => if hour < 12 { "am" } else { "pm" }.to_owned(),
            "mm" => format!("{minute:02}"),
            "m" => minute.to_string(),
            "ss" => format!("{second:02}"),
            "s" => second.to_string(),
            "ZZZZZ" => self.zone(":"),
            "ZZZZ" => self.zone(""),
            "ZZZ" if self.offset == 0 => "UTC".to_owned(),
            "ZZZ" => self.zone(""),
            "Z" if self.offset == 0 => "Z".to_owned(),
            "Z" => self.zone(":"),
            other => {
                return Err(format!(
                    "unknown part \"{other}\" of a date; quote text with '"
                ));
            }
        })
    }
}

/// The text in single quotes at the start, two of which stand for one, and what follows.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut out = String::new();
    let mut rest = text.get(1..).unwrap_or("");
    loop {
        let at = rest
            .find('\'')
            .ok_or("a quote in the format is not closed")?;
        out.push_str(rest.get(..at).unwrap_or(""));
        rest = rest.get(at + 1..).unwrap_or("");
        if !rest.starts_with('\'') {
            return Ok((out, rest));
        }
        out.push('\'');
        rest = rest.get(1..).unwrap_or("");
    }
}

impl Date {
    /// Days since 1970. Years are counted from March here, so that the leap day is the last.
    fn to_days(&self) -> i64 {
        let year = if self.month <= 2 {
            self.year - 1
        } else {
            self.year
        };
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    fn from_days(days: i64) -> Date {
        let days = days + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let shifted = (5 * of_year + 2) / 153;
        let month = if shifted < 10 {
            shifted + 3
        } else {
            shifted - 9
        };
        Date {
            year: year + era * 400 + i64::from(month <= 2),
            month,
            day: of_year - (153 * shifted + 2) / 5 + 1,
        }
    }

    fn days_in_month(&self) -> i64 {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        match self.month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}
