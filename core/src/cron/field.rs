//! One field of a cron expression: lists of values, ranges and steps.

use super::{FIRST_YEAR, Mistake, Part};
use crate::text::quote;

/// What may stand in a field.
pub(super) struct Field {
    /// What it is called.
    pub(super) name: &'static str,
    min: u32,
    max: u32,
    /// Long names in order, from the lowest value on; their first three letters are names too.
    names: &'static [&'static str],
}

pub(super) const SECOND: Field = Field::numbers("second", 0, 59);
pub(super) const MINUTE: Field = Field::numbers("minute", 0, 59);
pub(super) const HOUR: Field = Field::numbers("hour", 0, 23);
pub(super) const DAY_OF_MONTH: Field = Field::numbers("day of month", 1, 31);
pub(super) const YEAR: Field = Field::numbers("year", 1970, 2099);
pub(super) const MONTH: Field = Field {
    name: "month",
    min: 1,
    max: 12,
    names: &[
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ],
};
pub(super) const DAY_OF_WEEK: Field = Field {
    name: "day of week",
    min: 0,
    max: 6,
    names: &[
        "sunday",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
    ],
};

/// One item of a field's list.
pub(super) enum Item<'a> {
    /// Everything: the field does not restrict.
    All,
    /// Some values, from the first to the last in steps.
    Some { first: u32, last: u32, step: u32 },
    /// Something that only this field knows.
    Other(Part<'a>),
}

impl Field {
    const fn numbers(name: &'static str, min: u32, max: u32) -> Field {
        Field {
            name,
            min,
            max,
            names: &[],
        }
    }

    /// The value of a text, if it is one.
    pub(super) fn value(&self, text: &str) -> Option<u32> {
        let named = |(at, name): (usize, &&str)| {
            let short = name.get(..3).unwrap_or(name);
            (text == *name || text == short).then(|| u32::try_from(at).unwrap_or(0) + self.min)
        };
        if let Some(value) = self.names.iter().enumerate().find_map(named) {
            return Some(value);
        }
        if text.is_empty() || text.len() > 4 || !text.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let value: u32 = text.parse().ok()?;
        // Sunday is the seventh day as well.
        let value = if value == 7 && self.max == 6 {
            0
        } else {
            value
        };
        (self.min..=self.max).contains(&value).then_some(value)
    }

    /// What is wrong with something that stands in this field.
    pub(super) fn mistake(&self, part: Part<'_>, why: &str) -> Mistake {
        part.mistake(format!("{} {}: {why}", self.name, quote(part.text)))
    }

    fn item<'a>(&self, part: Part<'a>) -> Result<Item<'a>, Mistake> {
        if matches!(part.text, "*" | "?") {
            return Ok(Item::All);
        }
        let (range, step) = match part.text.split_once('/') {
            Some((range, step)) => (range, Some(self.step(part, step)?)),
            None => (part.text, None),
        };
        let (first, last) = match (range, range.split_once('-')) {
            ("*" | "?", _) => (self.min, self.max),
            (_, Some((first, last))) => self.range(part, first, last)?,
            (value, None) => match (self.value(value), step) {
                (Some(value), None) => (value, value),
                (Some(value), Some(_)) => (value, self.max),
                (None, _) => return Ok(Item::Other(part)),
            },
        };
        let step = step.unwrap_or(1);
        Ok(Item::Some { first, last, step })
    }

    fn step(&self, part: Part<'_>, step: &str) -> Result<u32, Mistake> {
        let digits =
            !step.is_empty() && step.len() <= 4 && step.bytes().all(|b| b.is_ascii_digit());
        let step = step
            .parse()
            .ok()
            .filter(|step| digits && (1..=self.max).contains(step));
        step.ok_or_else(|| {
            let why = format!("a step must be a number from 1 to {}", self.max);
            self.mistake(part, &why)
        })
    }

    fn range(&self, part: Part<'_>, first: &str, last: &str) -> Result<(u32, u32), Mistake> {
        let (Some(from), Some(to)) = (self.value(first), self.value(last)) else {
            return Err(self.mistake(part, &self.expected()));
        };
        if from > to {
            let sunday = match self.max == 6 && to == 0 {
                true => " (Sunday is the first day of the week)",
                false => "",
            };
            let why =
                format!("a range must not run backwards{sunday}; write two items with a comma");
            return Err(self.mistake(part, &why));
        }
        if last == "7" && self.max == 6 {
            let why = "7 is Sunday, the first day of the week, and cannot end a range";
            return Err(self.mistake(part, why));
        }
        Ok((from, to))
    }

    /// What may stand here, in words.
    pub(super) fn expected(&self) -> String {
        let names = if self.names.is_empty() {
            ""
        } else {
            " or a name"
        };
        format!(
            "a number from {} to {}{names} is expected",
            self.min, self.max
        )
    }
}

/// The items of a field, one after the other.
pub(super) fn items<'a>(
    part: Part<'a>,
    field: &Field,
) -> impl Iterator<Item = Result<Item<'a>, Mistake>> {
    let mut at = part.at;
    part.text.split(',').map(move |text| {
        let item = Part { at, text };
        at += text.len() + 1;
        field.item(item)
    })
}

/// The values of a field, one bit each.
pub(super) fn bits(part: Part<'_>, field: &Field) -> Result<u64, Mistake> {
    let mut bits = 0;
    each_value(part, field, |value| bits |= bit(value))?;
    Ok(bits)
}

/// The years, one bit each.
pub(super) fn years(part: Part<'_>, field: &Field) -> Result<[u64; 3], Mistake> {
    let mut years = [0; 3];
    each_value(part, field, |value| {
        let at = u64::from(value).saturating_sub(FIRST_YEAR.unsigned_abs());
        let word = usize::try_from(at / 64).unwrap_or(usize::MAX);
        if let Some(word) = years.get_mut(word) {
            *word |= 1 << (at % 64);
        }
    })?;
    Ok(years)
}

fn each_value(part: Part<'_>, field: &Field, mut take: impl FnMut(u32)) -> Result<(), Mistake> {
    for item in items(part, field) {
        match item? {
            Item::All => (field.min..=field.max).for_each(&mut take),
            Item::Some { first, last, step } => {
                let step = usize::try_from(step).unwrap_or(1);
                (first..=last).step_by(step).for_each(&mut take);
            }
            Item::Other(other) => return Err(field.mistake(other, &field.expected())),
        }
    }
    Ok(())
}

/// The bit of a value below 64.
pub(super) fn bit(value: u32) -> u64 {
    1u64.checked_shl(value).unwrap_or(0)
}
