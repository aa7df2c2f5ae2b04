//! Functions of dates and times, which are texts such as `2026-01-31T12:30:00Z`.

use drover_core::text::{parse_duration, quote};
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ZonedDateTime};

use super::super::eval::value::Val;
use super::args::text;
use super::{Context, Function, Outcome};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("formatdate", (2, 2), |_, args| {
        let time = parse(&text(args, 1)?)?;
        Ok(Val::text(format(&time, &text(args, 0)?)?))
    }),
    Function::new("timeadd", (2, 2), timeadd),
];

/// A date and a time of day without its zone.
const LOCAL: &str = "%Y-%m-%dT%H:%M:%S";

/// Runs of a letter in formats, and what they are called in other formats.
const PARTS: &[(&str, &str)] = &[
    ("YYYY", "%Y"),
    ("YY", "%y"),
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("M", "%-m"),
    ("DD", "%d"),
    ("D", "%-d"),
    ("EEEE", "%A"),
    ("EEE", "%a"),
    ("hh", "%H"),
    ("h", "%-H"),
    ("HH", "%I"),
    ("H", "%-I"),
    ("AA", "%p"),
    ("aa", "%P"),
    ("mm", "%M"),
    ("m", "%-M"),
    ("ss", "%S"),
    ("s", "%-S"),
    ("ZZZZZ", "%:z"),
    ("ZZZZ", "%z"),
    ("ZZZ", "%z"),
    ("Z", "%:z"),
];

fn timeadd(_: &Context<'_>, args: &[Val]) -> Outcome {
    let time = parse(&text(args, 0)?)?;
    let span = text(args, 1)?;
    let bad = |why| format!("{} is no duration: {why}", quote(&span));
    let span = SignedDuration::from_nanos(parse_duration(&span).map_err(bad)?.0);
    let moved = time.checked_add(span);
    let moved = moved.map_err(|_| "the time would be in no year of four digits".to_owned())?;
    let zone = zone("Z", "%:z", &moved);
    Ok(Val::text(shown(&moved, &format!("{LOCAL}{zone}"))))
}

fn parse(text: &str) -> Result<ZonedDateTime, String> {
    let bad = || format!("\"{text}\" is no time such as \"2026-01-31T12:30:00Z\"");
    read(text).ok_or_else(bad)
}

fn read(text: &str) -> Option<ZonedDateTime> {
    let pieces = Pieces::parse(text).ok()?;
    let local = pieces.date().to_datetime(pieces.time()?);
    let zone = TimeZone::fixed(pieces.to_numeric_offset()?);
    let time = zone.to_zoned_datetime(local).ok()?;
    // There are other ways to write it, which are none here.
    let usual = pieces.time_zone_annotation().is_none() && text.starts_with(&shown(&time, LOCAL));
    usual.then_some(time)
}

fn shown(time: &ZonedDateTime, format: &str) -> String {
    jiff::fmt::strtime::format(format, time).unwrap_or_default()
}

/// How the zone is shown: UTC has a name of its own.
fn zone<'a>(name: &'a str, other: &'a str, time: &ZonedDateTime) -> &'a str {
    if time.offset().is_zero() { name } else { other }
}

fn format(time: &ZonedDateTime, format: &str) -> Result<String, String> {
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
            out.push_str(&part(time, run)?);
        } else {
            out.push_str(run);
        }
    }
    Ok(out)
}

/// What a run of one letter stands for.
fn part(time: &ZonedDateTime, run: &str) -> Result<String, String> {
    let known = PARTS.iter().find(|(name, _)| *name == run);
    let unknown = || format!("unknown part \"{run}\" of a date; quote text with '");
    let (_, usual) = known.ok_or_else(unknown)?;
    Ok(shown(
        time,
        match run {
            "Z" => zone("Z", usual, time),
            "ZZZ" => zone("UTC", usual, time),
            _ => usual,
        },
    ))
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
