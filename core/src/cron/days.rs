//! Which days of a month fit: by the day of the month, by the day of the week, or by either.

use super::calendar::{self, Date};
use super::field::{DAY_OF_MONTH, DAY_OF_WEEK, Field, Item, bit, items};
use super::{Mistake, Part};

/// The days of an expression. Each kind is there if it restricts; if both are, one of them has to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Days {
    of_month: Option<OfMonth>,
    of_week: Option<OfWeek>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OfMonth {
    /// A bit for each day.
    days: u64,
    /// Days of which the nearest workday is meant.
    workdays: u64,
    last: bool,
    last_workday: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OfWeek {
    /// A bit for each day of the week, in every week.
    every: u64,
    /// The same, of the first to the fifth of a month.
    nth: [u64; 5],
    /// The same, of the last of a month.
    last: u64,
}

impl Days {
    pub(super) fn parse(day: Part<'_>, weekday: Part<'_>) -> Result<Days, Mistake> {
        Ok(Days {
            of_month: OfMonth::parse(day)?,
            of_week: OfWeek::parse(weekday)?,
        })
    }

    /// The days of a month that fit, one bit each.
    pub(super) fn of(self, year: i64, month: u32) -> u64 {
        let length = calendar::length(year, month);
        let all = (1..=length).map(bit).fold(0, |all, day| all | day);
        let first = calendar::day(Date {
            year,
            month,
            day: 1,
        });
        let month = Month { first, length };
        let of_month = self.of_month.map(|days| days.of(month));
        let of_week = self.of_week.map(|days| days.of(month));
        let days = match (of_month, of_week) {
            (None, None) => all,
            (Some(days), None) | (None, Some(days)) => days,
            (Some(of_month), Some(of_week)) => of_month | of_week,
        };
        days & all
    }
}

/// A month: the number of its first day, and how many it has.
#[derive(Clone, Copy)]
struct Month {
    first: i64,
    length: u32,
}

impl Month {
    fn weekday(self, day: u32) -> u32 {
        calendar::weekday(self.first + i64::from(day) - 1)
    }

    /// The workday nearest to a day, within the month.
    fn nearest_workday(self, day: u32) -> u32 {
        match self.weekday(day) {
            6 if day > 1 => day - 1,
            6 => day + 2,
            0 if day < self.length => day + 1,
            0 => day - 2,
            _ => day,
        }
    }
}

impl OfMonth {
    fn parse(part: Part<'_>) -> Result<Option<OfMonth>, Mistake> {
        let mut days = OfMonth::default();
        let mut restricts = true;
        for item in items(part, &DAY_OF_MONTH) {
            match item? {
                Item::All => restricts = false,
                Item::Some { first, last, step } => days.days |= values(first, last, step),
                Item::Other(other) => match other.text {
                    "l" => days.last = true,
                    "lw" => days.last_workday = true,
                    text => {
                        let day = text.strip_suffix('w').and_then(|it| DAY_OF_MONTH.value(it));
                        let day = day.ok_or_else(|| unknown(&DAY_OF_MONTH, other, "L, LW, 15W"))?;
                        days.workdays |= bit(day);
                    }
                },
            }
        }
        Ok(restricts.then_some(days))
    }

    fn of(self, month: Month) -> u64 {
        let mut days = self.days;
        for day in (1..=month.length).filter(|day| self.workdays & bit(*day) != 0) {
            days |= bit(month.nearest_workday(day));
        }
        if self.last {
            days |= bit(month.length);
        }
        if self.last_workday {
            days |= bit(month.nearest_workday(month.length));
        }
        days
    }
}

impl OfWeek {
    fn parse(part: Part<'_>) -> Result<Option<OfWeek>, Mistake> {
        let mut days = OfWeek::default();
        let mut restricts = true;
        for item in items(part, &DAY_OF_WEEK) {
            match item? {
                Item::All => restricts = false,
                Item::Some { first, last, step } => days.every |= values(first, last, step),
                Item::Other(other) => days.add(other)?,
            }
        }
        Ok(restricts.then_some(days))
    }

    /// `5L` and `5#2`.
    fn add(&mut self, part: Part<'_>) -> Result<(), Mistake> {
        let mistake = || unknown(&DAY_OF_WEEK, part, "5L, 5#2");
        let (day, nth) = match part.text.split_once('#') {
            Some((day, nth)) => (Some(day), Some(nth)),
            None => (part.text.strip_suffix('l'), None),
        };
        let day = day
            .and_then(|day| DAY_OF_WEEK.value(day))
            .ok_or_else(mistake)?;
        let days = match nth {
            None => &mut self.last,
            Some(nth) => {
                let nth = nth.parse::<usize>().ok().and_then(|nth| nth.checked_sub(1));
                let of_nth = nth.and_then(|nth| self.nth.get_mut(nth));
                of_nth.ok_or_else(mistake)?
            }
        };
        *days |= bit(day);
        Ok(())
    }

    fn of(self, month: Month) -> u64 {
        let fits = |day: &u32| {
            let weekday = bit(month.weekday(*day));
            let week = usize::try_from((day - 1) / 7).unwrap_or(0);
            let nth = self.nth.get(week).copied().unwrap_or(0);
            let last = if day + 7 > month.length { self.last } else { 0 };
            (self.every | nth | last) & weekday != 0
        };
        let days = (1..=month.length).filter(fits);
        days.map(bit).fold(0, |days, day| days | day)
    }
}

fn values(first: u32, last: u32, step: u32) -> u64 {
    let step = usize::try_from(step).unwrap_or(1);
    (first..=last)
        .step_by(step)
        .map(bit)
        .fold(0, |all, one| all | one)
}

fn unknown(field: &Field, part: Part<'_>, more: &str) -> Mistake {
    let why = format!("{}, or one of the forms {more}", field.expected());
    field.mistake(part, &why)
}
