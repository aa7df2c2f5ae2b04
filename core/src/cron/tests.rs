//! Expressions against a calendar that counts day by day.

use super::calendar::{self, DAY};
use super::schedule::{Next, Schedule};
use super::zone::ZoneOffsets;
use super::{Expression, LAST_YEAR};
use crate::model::policy::PeriodicConfig;

fn schedule(spec: &str) -> Schedule {
    let periodic = PeriodicConfig {
        spec: spec.to_owned(),
        ..PeriodicConfig::default()
    };
    Schedule::of(&periodic).unwrap_or_else(|bad| panic!("{spec}: {bad:?}"))
}

/// `2013-08-29 09:28:00`, in UTC.
fn utc(text: &str) -> i64 {
    let numbers: Vec<i64> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|part| part.parse().ok())
        .collect();
    let [year, month, day, hour, minute, second] = numbers[..] else {
        panic!("{text}");
    };
    let date = calendar::Date {
        year,
        month: u32::try_from(month).unwrap_or(0),
        day: u32::try_from(day).unwrap_or(0),
    };
    calendar::day(date) * DAY + hour * 3600 + minute * 60 + second
}

fn shown(at: i64) -> String {
    let (date, second) = (calendar::date(at.div_euclid(DAY)), at.rem_euclid(DAY));
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        date.year,
        date.month,
        date.day,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn next(spec: &str, after: &str) -> String {
    match schedule(spec).next(&ZoneOffsets::utc(), utc(after)) {
        Next::At(at) => shown(at),
        other @ (Next::NotBefore(_) | Next::Never) => format!("{other:?}"),
    }
}

#[test]
fn calendar_counts_every_day() {
    let (mut year, mut month, mut day) = (1970, 1, 1);
    for days in 0..48_000 {
        let date = calendar::date(days);
        assert_eq!((date.year, date.month, date.day), (year, month, day));
        assert_eq!(calendar::day(date), days);
        day += 1;
        if day > calendar::length(year, month) {
            (month, day) = (month + 1, 1);
        }
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
    // 2026-11-25 is a Wednesday.
    assert_eq!(calendar::weekday(utc("2026-11-25 0:0:0") / DAY), 3);
}

#[test]
fn fields_mean_what_they_mean_in_nomad() {
    let cases = [
        // Minutes, hours, days, months, names.
        ("0 0 29 2 *", "2013-08-29 09:28:00", "2016-02-29 00:00:00"),
        ("*/15 * * * *", "2026-11-25 18:40:10", "2026-11-25 18:45:00"),
        ("5/20 * * * *", "2026-11-25 18:46:00", "2026-11-25 19:05:00"),
        (
            "0 9-17/4 * * MON-FRI",
            "2026-11-27 17:00:00",
            "2026-11-30 09:00:00",
        ),
        (
            "30 4 1 jan,July ?",
            "2026-11-25 00:00:00",
            "2027-01-01 04:30:00",
        ),
        // Six fields end with a year, seven begin with a second.
        (
            "* * * * * 2030",
            "2026-11-25 00:00:00",
            "2030-01-01 00:00:00",
        ),
        (
            "*/5 * * * * * *",
            "2026-11-25 00:00:03",
            "2026-11-25 00:00:05",
        ),
        (
            "59 59 23 31 12 * 2099",
            "2026-11-25 00:00:00",
            "2099-12-31 23:59:59",
        ),
        ("* * * * * 1980", "2026-11-25 00:00:00", "Never"),
        // If both kinds of days are restricted, either fits.
        ("0 0 13 * FRI", "2026-11-25 00:00:00", "2026-11-27 00:00:00"),
        ("0 0 13 * FRI", "2026-12-12 00:00:00", "2026-12-13 00:00:00"),
        (
            "0 0 */2 * MON",
            "2026-11-29 00:00:00",
            "2026-11-30 00:00:00",
        ),
        // Sunday is 0 and 7.
        ("0 0 * * 7", "2026-11-25 00:00:00", "2026-11-29 00:00:00"),
        // The last day, the nearest workday, the last workday.
        ("0 0 L * *", "2028-02-01 00:00:00", "2028-02-29 00:00:00"),
        ("0 0 15W * *", "2026-08-01 00:00:00", "2026-08-14 00:00:00"),
        ("0 0 1W * *", "2026-07-31 12:00:00", "2026-08-03 00:00:00"),
        ("0 0 31W * *", "2026-05-01 00:00:00", "2026-05-29 00:00:00"),
        ("0 0 LW * *", "2026-10-31 00:00:00", "2026-11-30 00:00:00"),
        ("0 0 LW * *", "2026-10-01 00:00:00", "2026-10-30 00:00:00"),
        // The last Friday, the second Tuesday, a fifth Monday.
        ("0 0 * * 5L", "2026-11-01 00:00:00", "2026-11-27 00:00:00"),
        (
            "0 0 * * tue#2",
            "2026-11-11 00:00:00",
            "2026-12-08 00:00:00",
        ),
        ("0 0 * * 1#5", "2026-12-01 00:00:00", "2027-03-29 00:00:00"),
        // Names for expressions.
        ("@hourly", "2026-11-25 18:40:10", "2026-11-25 19:00:00"),
        ("@daily", "2026-11-25 18:40:10", "2026-11-26 00:00:00"),
        ("@weekly", "2026-11-25 18:40:10", "2026-11-29 00:00:00"),
        ("@Monthly", "2026-11-25 18:40:10", "2026-12-01 00:00:00"),
        ("@annually", "2026-11-25 18:40:10", "2027-01-01 00:00:00"),
    ];
    for (spec, after, expected) in cases {
        assert_eq!(next(spec, after), expected, "{spec} after {after}");
    }
}

#[test]
fn mistakes_have_their_place() {
    let cases = [
        ("* * * *", 0, "has 4"),
        ("* * * * * * * *", 0, "has 8"),
        ("", 0, "has 0"),
        ("60 * * * *", 0, "minute \"60\": a number from 0 to 59"),
        ("0 1,24 * * *", 4, "hour \"24\""),
        ("0 0 32 * *", 4, "day of month \"32\""),
        ("0 0 0W * *", 4, "15W"),
        ("0 0 * foo *", 6, "or a name"),
        ("0 0 * * 5#6", 8, "5#2"),
        ("0 0 * * L", 8, "5L"),
        ("0 0 * * 5-7", 8, "Sunday is the first day"),
        ("0 0 * * 0-7", 8, "cannot end a range"),
        ("0 17-9 * * *", 2, "backwards"),
        ("*/0 * * * *", 0, "a step"),
        ("*/60 * * * *", 0, "a step"),
        ("1//2 * * * *", 0, "a step"),
        ("0 0 * * * 1969", 10, "from 1970 to 2099"),
        ("@reboot", 0, "not known"),
        (", * * * *", 0, "minute"),
        ("+5 * * * *", 0, "minute"),
    ];
    for (spec, at, words) in cases {
        let Err(mistake) = Expression::parse(spec) else {
            panic!("{spec} is read");
        };
        assert_eq!(mistake.at, at, "{spec}: {mistake}");
        assert!(mistake.message.contains(words), "{spec}: {mistake}");
    }
}

/// A zone that is an hour ahead in summer.
fn berlin() -> ZoneOffsets {
    ZoneOffsets {
        from: utc("2026-01-01 00:00:00"),
        until: utc("2028-01-01 00:00:00"),
        first: 3600,
        changes: vec![
            (utc("2026-03-29 01:00:00"), 7200),
            (utc("2026-10-25 01:00:00"), 3600),
            (utc("2027-03-28 01:00:00"), 7200),
            (utc("2027-10-31 01:00:00"), 3600),
        ],
    }
}

/// The skipped hour has no times, the repeated one has them twice.
#[test]
fn summer_time_skips_and_repeats() {
    assert_eq!(berlin().check(), Ok(()));
    let zone = berlin();
    let daily = schedule("30 2 * * *");
    let between = |from: &str, to: &str| {
        let times = daily.between(&zone, utc(from), utc(to));
        times.into_iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(
        between("2026-03-27 12:00:00", "2026-03-30 12:00:00"),
        ["2026-03-28 01:30:00", "2026-03-30 00:30:00"]
    );
    assert_eq!(
        between("2026-10-24 12:00:00", "2026-10-26 12:00:00"),
        [
            "2026-10-25 00:30:00",
            "2026-10-25 01:30:00",
            "2026-10-26 01:30:00"
        ]
    );
    assert_eq!(
        daily.next(&zone, utc("2027-12-31 12:00:00")),
        Next::NotBefore(zone.until)
    );
}

/// Looking back from the beginning of a month finds the last time of the month before, however early it is asked.
#[test]
fn last_time_of_month_before_is_found_early_in_the_day() {
    let [nightly, monthly] = ["0 23 * * *", "30 22 L * *"]
        .map(|spec| Expression::parse(spec).unwrap_or_else(|why| panic!("{why}")));
    let asked = utc("2026-05-01 10:00:00");
    assert_eq!(nightly.last(asked), Some(utc("2026-04-30 23:00:00")));
    assert_eq!(monthly.last(asked), Some(utc("2026-04-30 22:30:00")));
    let march = utc("2026-03-01 00:10:00");
    assert_eq!(monthly.last(march), Some(utc("2026-02-28 22:30:00")));
}

/// Searching forwards and backwards finds the same times as looking at every second does.
#[test]
fn searches_agree_with_looking_at_every_second() {
    let specs = [
        "*/7 * * * *",
        "30 1-3 * * *",
        "0 0 1 4 *",
        "*/20 59 23 * * 5L *",
        "15 2 29 3 sun",
    ];
    let zone = berlin();
    let (from, to) = (utc("2026-03-28 20:00:00"), utc("2026-04-01 02:00:00"));
    for spec in specs {
        let one = schedule(spec);
        let expression = Expression::parse(spec).unwrap_or_else(|why| panic!("{why}"));
        let fits = |at: &i64| {
            let local = at + zone.offset(*at).unwrap_or(0);
            expression.first(local) == Some(local) && expression.last(local) == Some(local)
        };
        let expected: Vec<i64> = (from + 1..=to).filter(fits).collect();
        assert_eq!(one.between(&zone, from, to), expected, "{spec}");
        let mut backwards = Vec::new();
        let mut last = to;
        while let Some(at) = one.latest(&zone, from, last) {
            backwards.push(at);
            last = at - 1;
        }
        backwards.reverse();
        assert_eq!(backwards, expected, "{spec}");
    }
}

/// What is the last local time for ever comes once more where clocks are set back after it.
#[test]
fn last_time_comes_again_in_repeated_hour() {
    let zone = berlin();
    let last = schedule("0 30 2 25 10 * 2026");
    let times = last.between(
        &zone,
        utc("2026-01-01 00:00:00"),
        utc("2027-12-31 00:00:00"),
    );
    let times: Vec<String> = times.into_iter().map(shown).collect();
    assert_eq!(times, ["2026-10-25 00:30:00", "2026-10-25 01:30:00"]);
    assert_eq!(last.next(&zone, utc("2026-10-25 01:30:00")), Next::Never);
}

#[test]
fn extreme_times_do_no_harm() {
    for spec in ["* * * * *", "0 0 31 2 *", "0 0 29 2 0 2099"] {
        let one = schedule(spec);
        for at in [i64::MIN, i64::MIN / 2, -1, 0, i64::MAX / 2, i64::MAX] {
            let utc = ZoneOffsets::utc();
            if let Next::At(found) = one.next(&utc, at) {
                assert!(found > at && calendar::date(found / DAY).year <= LAST_YEAR);
            }
            if let Some(found) = one.latest(&utc, i64::MIN, at) {
                assert!(found <= at && found >= 0);
            }
        }
    }
    assert!(schedule("0 0 31 2 *").never_comes());
    assert!(!schedule("0 0 29 2 *").never_comes());
}

#[test]
fn impossible_zones_are_refused() {
    let changed = |change: fn(&mut ZoneOffsets)| {
        let mut zone = berlin();
        change(&mut zone);
        zone.check().is_err()
    };
    assert!(changed(|zone| zone.changes.reverse()));
    assert!(changed(|zone| zone.until = zone.from));
    assert!(changed(|zone| zone.first = i32::MIN));
    assert!(changed(|zone| zone.changes = vec![(zone.from, 0); 1000]));
}
