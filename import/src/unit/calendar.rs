//! Times of a calendar (`OnCalendar=`) as expressions for cron, where both mean exactly the same.

/// Times as cron has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cron {
    pub expression: String,
    /// The time zone, if one was named.
    pub zone: Option<String>,
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A field of an expression.
#[derive(Clone, Copy)]
struct Field {
    first: u32,
    last: u32,
}

const SECOND: Field = Field { first: 0, last: 59 };
const MINUTE: Field = SECOND;
const HOUR: Field = Field { first: 0, last: 23 };
const DAY: Field = Field { first: 1, last: 31 };
const MONTH: Field = Field { first: 1, last: 12 };
const YEAR: Field = Field {
    first: 1970,
    last: 2099,
};

/// The expression for a value of `OnCalendar`.
///
/// # Errors
/// Why cron cannot say it.
pub(super) fn cron(text: &str) -> Result<Cron, String> {
    let lower = text.trim().to_ascii_lowercase();
    let plain = |expression: &str| {
        Ok(Cron {
            expression: expression.to_owned(),
            zone: None,
        })
    };
    match lower.as_str() {
        "minutely" => return plain("* * * * *"),
        "hourly" => return plain("0 * * * *"),
        "daily" => return plain("0 0 * * *"),
        "weekly" => return plain("0 0 * * mon"),
        "monthly" => return plain("0 0 1 * *"),
        "yearly" | "annually" => return plain("0 0 1 1 *"),
        "quarterly" => return plain("0 0 1 1,4,7,10 *"),
        "semiannually" => return plain("0 0 1 1,7 *"),
        _ => {}
    }
    let mut parts: Vec<&str> = text.split_whitespace().collect();
    let zone = zone(&mut parts);
    let (mut days, mut date, mut time) = (None, None, None);
    for part in parts {
        let starts_with_letter = part.starts_with(|c: char| c.is_ascii_alphabetic());
        let place = match part {
            _ if starts_with_letter && date.is_none() && time.is_none() => &mut days,
            _ if part.contains(':') => &mut time,
            _ if part.contains('-') && time.is_none() => &mut date,
            _ => return Err(format!("{part} is not understood")),
        };
        if place.replace(part).is_some() {
            return Err(format!("{part} is one too many"));
        }
    }
    if days.is_none() && date.is_none() && time.is_none() {
        return Err("no time is given".to_owned());
    }
    let weekday = days.map_or(Ok("*".to_owned()), weekdays)?;
    let (year, month, day) = date_fields(date.unwrap_or("*-*-*"))?;
    let (hour, minute, second) = time_fields(time.unwrap_or("00:00:00"))?;
    if weekday != "*" && day != "*" {
        return Err(
            "both the day of the week and that of the month are given: cron takes either of them"
                .to_owned(),
        );
    }
    let mut expression = format!("{minute} {hour} {day} {month} {weekday}");
    if second != "0" {
        expression = format!("{second} {expression} {year}");
    } else if year != "*" {
        expression = format!("{expression} {year}");
    }
    Ok(Cron { expression, zone })
}

/// Takes the time zone from the end.
fn zone(parts: &mut Vec<&str>) -> Option<String> {
    if parts.len() < 2 {
        return None;
    }
    let last = parts.last()?;
    let is_zone = *last == "UTC"
        || (last.contains('/') && last.starts_with(|c: char| c.is_ascii_uppercase()));
    let zone = is_zone.then(|| (*last).to_owned())?;
    parts.pop();
    Some(zone)
}

fn weekdays(text: &str) -> Result<String, String> {
    let day = |name: &str| {
        let name = name.to_ascii_lowercase();
        let full = [
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
        ];
        let at = DAYS
            .iter()
            .position(|it| *it == name)
            .or_else(|| full.iter().position(|it| *it == name));
        at.ok_or_else(|| format!("{name} is no day of the week"))
    };
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let part = part.trim_end_matches('-');
        let (first, last) = match part.split_once("..").or_else(|| part.split_once('-')) {
            Some((first, last)) => (day(first)?, day(last)?),
            None => (day(part)?, day(part)?),
        };
        if first > last {
            return Err(format!("{part} goes over the end of the week"));
        }
        all.extend(DAYS.iter().skip(first).take(last - first + 1).copied());
    }
    all.dedup();
    match all.len() {
        0 => Err("no day of the week is given".to_owned()),
        7 => Ok("*".to_owned()),
        _ => Ok(all.join(",")),
    }
}

fn date_fields(text: &str) -> Result<(String, String, String), String> {
    if let Some((before, "1" | "01")) = text.split_once('~') {
        let (year, month) = before.split_once('-').unwrap_or(("*", before));
        return Ok((field(year, YEAR)?, field(month, MONTH)?, "L".to_owned()));
    }
    if text.contains('~') {
        return Err("cron counts no days from the end of the month, but the last one".to_owned());
    }
    let parts: Vec<&str> = text.split('-').collect();
    let (year, month, day) = match parts.as_slice() {
        [year, month, day] => (*year, *month, *day),
        [month, day] => ("*", *month, *day),
        _ => return Err(format!("{text} is no date")),
    };
    Ok((field(year, YEAR)?, field(month, MONTH)?, field(day, DAY)?))
}

fn time_fields(text: &str) -> Result<(String, String, String), String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hour, minute, second) = match parts.as_slice() {
        [hour, minute, second] => (*hour, *minute, *second),
        [hour, minute] => (*hour, *minute, "0"),
        _ => return Err(format!("{text} is no time")),
    };
    Ok((
        field(hour, HOUR)?,
        field(minute, MINUTE)?,
        field(second, SECOND)?,
    ))
}

/// A list of numbers, ranges and steps.
fn field(text: &str, of: Field) -> Result<String, String> {
    if text == "*" {
        return Ok("*".to_owned());
    }
    let number = |text: &str| {
        let number = text
            .parse::<u32>()
            .ok()
            .filter(|it| (of.first..=of.last).contains(it));
        number.ok_or_else(|| format!("{text} is no number from {} to {}", of.first, of.last))
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                let step = step.parse::<u32>().ok().filter(|step| *step > 0);
                (
                    range,
                    Some(step.ok_or_else(|| format!("{part} has no step"))?),
                )
            }
            None => (part, None),
        };
        let range = match range.split_once("..") {
            _ if range == "*" => "*".to_owned(),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return Err(format!("{part} ends before it begins"));
                }
                format!("{first}-{last}")
            }
            None => number(range)?.to_string(),
        };
        all.push(match step {
            Some(step) => format!("{range}/{step}"),
            None => range,
        });
    }
    Ok(all.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_cron_can_say() {
        for (given, wanted) in [
            ("daily", "0 0 * * *"),
            ("weekly", "0 0 * * mon"),
            ("*-*-* 06:30:00", "30 6 * * *"),
            ("Mon..Fri 06:30", "30 6 * * mon,tue,wed,thu,fri"),
            ("Sat,Sun *-*-* 10:00", "0 10 * * sat,sun"),
            ("*-*-01 00:00", "0 0 1 * *"),
            ("*-01,07-01", "0 0 1 1,7 *"),
            ("*:0/15", "0/15 * * * *"),
            ("*:*:0/10", "0/10 * * * * * *"),
            ("2030-01-01 12:00", "0 12 1 1 * 2030"),
            ("*-*~01 03:00", "0 3 L * *"),
            ("08..18:00", "0 8-18 * * *"),
        ] {
            let cron = cron(given).map(|it| it.expression);
            assert_eq!(cron.as_deref(), Ok(wanted), "{given}");
        }
    }

    #[test]
    fn times_that_cron_cannot_say() {
        for given in [
            "Mon *-*-01 00:00",
            "Sat..Mon 10:00",
            "*-*~07/1",
            "*:*:0.5",
            "25:00",
            "",
            "tomorrow",
            "*-*-* *-*-*",
        ] {
            assert!(cron(given).is_err(), "{given}");
        }
    }

    #[test]
    fn time_zones() {
        let found = cron("*-*-* 06:30:00 Europe/Berlin");
        assert_eq!(
            found.ok().and_then(|it| it.zone).as_deref(),
            Some("Europe/Berlin")
        );
    }
}
