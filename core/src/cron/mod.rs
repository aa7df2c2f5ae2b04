//! Cron expressions: when a periodic job is launched. Whole seconds and integers only.
//!
//! | fields | what they are |
//! |---|---|
//! | 5 | minute, hour, day of month, month, day of week; at second 0 |
//! | 6 | the same, and a year at the end |
//! | 7 | second, minute, hour, day of month, month, day of week, year |
//!
//! A field is a list of values, ranges and steps (`*`, `?`, `5`, `1-5`, `*/15`, `10/5`, `0-30/10`), with names of
//! months and of days of the week. A day of the month may be `L` (the last), `15W` (the nearest workday) and `LW`; a
//! day of the week `5L` (the last Friday) and `5#2` (the second Friday). If both days are restricted, one of them
//! has to fit. `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly` and `@annually` stand for expressions.
//!
//! These are the expressions of Nomad's library. What that takes and never launches, or reads in part, is an error
//! here: ranges that run backwards, and more than seven fields.
//!
//! An expression is about the local time of a zone ([`zone::ZoneOffsets`]): a time fits if its local second does. So
//! what lies in an hour that is skipped in spring does not come, and what lies in one that is repeated in autumn
//! comes twice, as in Nomad.

mod calendar;
mod days;
mod field;
pub mod schedule;
mod search;
#[cfg(test)]
mod tests;
pub mod zone;

use core::fmt;

use self::days::Days;
use self::field::{HOUR, MINUTE, MONTH, SECOND, YEAR};

/// The longest expression, in bytes.
pub const MAX_LENGTH: usize = 256;

/// The first year that expressions know.
const FIRST_YEAR: i64 = 1970;
/// The last.
const LAST_YEAR: i64 = 2099;

/// A cron expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// Bits of those that fit.
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: Days,
    months: u64,
    /// A bit for each year from 1970 to 2099.
    years: [u64; 3],
}

/// Why a text is no cron expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// At which byte of the text.
    pub at: usize,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Mistake {}

/// A field of an expression: where it begins, and its text.
#[derive(Clone, Copy)]
struct Part<'a> {
    at: usize,
    text: &'a str,
}

impl Part<'_> {
    fn mistake(&self, message: String) -> Mistake {
        Mistake {
            at: self.at,
            message,
        }
    }
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Expression, Mistake> {
        let whole = Part { at: 0, text };
        if text.len() > MAX_LENGTH {
            let message = format!("must not be longer than {MAX_LENGTH} bytes");
            return Err(whole.mistake(message));
        }
        let lower = text.to_ascii_lowercase();
        let parts = match lower.trim() {
            name if name.starts_with('@') => return predefined(name),
            _ => split(&lower),
        };
        match *parts.as_slice() {
            [minute, hour, day, month, weekday] => read(
                [None, Some(minute), Some(hour), Some(month), None],
                day,
                weekday,
            ),
            [minute, hour, day, month, weekday, year] => read(
                [None, Some(minute), Some(hour), Some(month), Some(year)],
                day,
                weekday,
            ),
            [second, minute, hour, day, month, weekday, year] => read(
                [
                    Some(second),
                    Some(minute),
                    Some(hour),
                    Some(month),
                    Some(year),
                ],
                day,
                weekday,
            ),
            ref other => {
                let message = format!(
                    "must have 5 to 7 fields (minute, hour, day of month, month, day of week; then a year; then a \
                     second before all), has {}",
                    other.len()
                );
                Err(whole.mistake(message))
            }
        }
    }

    fn fits_year(&self, year: i64) -> bool {
        let bit = usize::try_from(year - FIRST_YEAR).unwrap_or(usize::MAX);
        let word = self.years.get(bit / 64).copied().unwrap_or(0);
        word >> (bit % 64) & 1 == 1
    }
}

/// Reads second, minute, hour, month and year, and the two kinds of days.
fn read(
    [second, minute, hour, month, year]: [Option<Part<'_>>; 5],
    day: Part<'_>,
    weekday: Part<'_>,
) -> Result<Expression, Mistake> {
    let bits = |part: Option<Part<'_>>, field| match part {
        Some(part) => field::bits(part, field),
        None => Ok(1),
    };
    let days = Days::parse(day, weekday)?;
    Ok(Expression {
        seconds: bits(second, &SECOND)?,
        minutes: bits(minute, &MINUTE)?,
        hours: bits(hour, &HOUR)?,
        days,
        months: bits(month, &MONTH)?,
        years: match year {
            Some(year) => field::years(year, &YEAR)?,
            None => [u64::MAX; 3],
        },
    })
}

fn predefined(name: &str) -> Result<Expression, Mistake> {
    let stands_for = match name {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            return Err(Mistake {
                at: 0,
                message: format!(
                    "{} is not known: there are @hourly, @daily, @weekly, @monthly, @yearly and @annually",
                    crate::text::quote(name)
                ),
            });
        }
    };
    Expression::parse(stands_for)
}

fn split(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut begin = None;
    for (at, letter) in text.char_indices() {
        match (begin, letter.is_whitespace()) {
            (None, false) => begin = Some(at),
            (Some(from), true) => {
                parts.extend(text.get(from..at).map(|text| Part { at: from, text }));
                begin = None;
            }
            (None, true) | (Some(_), false) => {}
        }
    }
    if let Some(from) = begin {
        parts.extend(text.get(from..).map(|text| Part { at: from, text }));
    }
    parts
}
