//! The Gregorian calendar in integers: days are counted from 1970-01-01, a Thursday.

/// A date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Date {
    pub(super) year: i64,
    /// From 1.
    pub(super) month: u32,
    /// From 1.
    pub(super) day: u32,
}

/// Seconds of a day.
pub(super) const DAY: i64 = 86_400;

/// Days of 400 years, after which everything repeats.
const ERA: i64 = 146_097;
/// Days from 0000-03-01, the begin of an era, to 1970-01-01.
const TO_1970: i64 = 719_468;

/// The date of a day. Years are counted from March in between, so that leap days are at their ends.
pub(super) fn date(days: i64) -> Date {
    let days = days.saturating_add(TO_1970);
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    Date {
        year: year + era * 400 + i64::from(month <= 2),
        month: u32::try_from(month).unwrap_or(1),
        day: u32::try_from(day - (153 * from_march + 2) / 5 + 1).unwrap_or(1),
    }
}

/// The day of a date.
pub(super) fn day(date: Date) -> i64 {
    let month = i64::from(date.month);
    let year = date.year - i64::from(month <= 2);
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + i64::from(date.day) - 1;
    era * ERA + year * 365 + year / 4 - year / 100 + of_year - TO_1970
}

/// How many days a month has.
pub(super) fn length(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of the week of a day, 0 for Sunday.
pub(super) fn weekday(days: i64) -> u32 {
    u32::try_from((days + 4).rem_euclid(7)).unwrap_or(0)
}
