//! The next and the latest local second that fits an expression.

use super::calendar::{self, DAY, Date};
use super::{Expression, FIRST_YEAR, LAST_YEAR};

impl Expression {
    /// The first local second from `from` on that fits, if there is one up to the year 2099.
    pub(super) fn first(&self, from: i64) -> Option<i64> {
        let (mut day, mut second) = split(from);
        let mut date = calendar::date(day);
        if date.year < FIRST_YEAR {
            date = first_of(FIRST_YEAR, 1);
            second = 0;
        }
        while date.year <= LAST_YEAR {
            let days = self.days_of(date) >> date.day << date.day;
            for found in ones(days) {
                let from = if found == date.day { second } else { 0 };
                if let Some(time) = self.first_time(from) {
                    day = calendar::day(Date { day: found, ..date });
                    return Some(day * DAY + i64::from(time));
                }
            }
            second = 0;
            date = match self.fits_year(date.year) {
                true if date.month < 12 => first_of(date.year, date.month + 1),
                true | false => first_of(date.year + 1, 1),
            };
        }
        None
    }

    /// The last local second up to `to` that fits, if there is one since 1970.
    pub(super) fn last(&self, to: i64) -> Option<i64> {
        let (day, mut second) = split(to);
        let mut date = calendar::date(day);
        if date.year > LAST_YEAR {
            date = last_of(LAST_YEAR, 12);
            second = LAST_SECOND;
        }
        while date.year >= FIRST_YEAR {
            let days = self.days_of(date) & (u64::MAX >> (63 - date.day.min(63)));
            for found in ones(days).rev() {
                let to = if found == date.day {
                    second
                } else {
                    LAST_SECOND
                };
                if let Some(time) = self.last_time(to) {
                    let day = calendar::day(Date { day: found, ..date });
                    return Some(day * DAY + i64::from(time));
                }
            }
            second = LAST_SECOND;
            date = match self.fits_year(date.year) {
                true if date.month > 1 => last_of(date.year, date.month - 1),
                true | false => last_of(date.year - 1, 12),
            };
        }
        None
    }

    /// The days of a month that fit, none if it does not itself.
    fn days_of(&self, date: Date) -> u64 {
        let fits = self.fits_year(date.year) && self.months & super::field::bit(date.month) != 0;
        if fits {
            self.days.of(date.year, date.month)
        } else {
            0
        }
    }

    fn first_time(&self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        let (hours, minutes, seconds) = (self.hours, self.minutes, self.seconds);
        let earliest = || Some((next(minutes, 0)?, next(seconds, 0)?));
        if next(hours, hour) == Some(hour) {
            if next(minutes, minute) == Some(minute)
                && let Some(second) = next(seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = next(minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + next(seconds, 0)?);
            }
        }
        let hour = next(hours, hour + 1)?;
        let (minute, second) = earliest()?;
        Some(hour * 3600 + minute * 60 + second)
    }

    fn last_time(&self, to: u32) -> Option<u32> {
        let (hour, minute, second) = (to / 3600, to / 60 % 60, to % 60);
        let (hours, minutes, seconds) = (self.hours, self.minutes, self.seconds);
        if previous(hours, hour) == Some(hour) {
            if previous(minutes, minute) == Some(minute)
                && let Some(second) = previous(seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = minute.checked_sub(1).and_then(|to| previous(minutes, to)) {
                return Some(hour * 3600 + minute * 60 + previous(seconds, 59)?);
            }
        }
        let hour = hour.checked_sub(1).and_then(|to| previous(hours, to))?;
        Some(hour * 3600 + previous(minutes, 59)? * 60 + previous(seconds, 59)?)
    }
}

/// The last second of a day.
const LAST_SECOND: u32 = 86_399;

fn split(local: i64) -> (i64, u32) {
    let second = u32::try_from(local.rem_euclid(DAY)).unwrap_or(0);
    (local.div_euclid(DAY), second)
}

fn first_of(year: i64, month: u32) -> Date {
    let day = 1;
    Date { year, month, day }
}

fn last_of(year: i64, month: u32) -> Date {
    let day = calendar::length(year, month);
    Date { year, month, day }
}

/// The places of the bits that are set, from the lowest.
fn ones(bits: u64) -> impl DoubleEndedIterator<Item = u32> {
    (0..u64::BITS).filter(move |at| bits >> at & 1 == 1)
}

/// The lowest bit from `from` on.
fn next(bits: u64, from: u32) -> Option<u32> {
    let left = bits.checked_shr(from).filter(|left| *left != 0)?;
    Some(from + left.trailing_zeros())
}

/// The highest bit up to `to`.
fn previous(bits: u64, to: u32) -> Option<u32> {
    let left = bits & (u64::MAX >> (63 - to.min(63)));
    left.checked_ilog2()
}
