//! Small things about text: lengths of time as people write them, name patterns, near names.

use core::fmt;

use crate::time::Span;

/// Why a text is no length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotADuration {
    /// A number is followed by nothing, as in `5`.
    MissingUnit,
    /// A number is followed by something that is no unit, as in `5d`.
    UnknownUnit,
    /// There is not a number where one must be.
    MissingNumber,
    /// It does not fit: more than about 292 years.
    TooLong,
}

impl fmt::Display for NotADuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotADuration::MissingUnit => "a unit is missing (ns, us, ms, s, m or h)",
            NotADuration::UnknownUnit => "unknown unit (known are ns, us, ms, s, m and h)",
            NotADuration::MissingNumber => "a number is missing",
            NotADuration::TooLong => "too long",
        })
    }
}

impl core::error::Error for NotADuration {}

/// Reads a length of time as job files write it: `30s`, `1h30m`, `1.5ms`, `-2s`, and `0` alone
/// without a unit. Units are `ns`, `us` (also `µs`), `ms`, `s`, `m` and `h`; what is finer than a
/// nanosecond is cut off.
///
/// # Errors
/// What is wrong with the text; no part of it is used then.
pub fn parse_duration(text: &str) -> Result<Span, NotADuration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(Span::ZERO);
    }
    if rest.is_empty() {
        return Err(NotADuration::MissingNumber);
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let (part, after) = parse_part(rest)?;
        total = total.checked_add(part).ok_or(NotADuration::TooLong)?;
        rest = after;
    }
    Ok(Span(if negative { -total } else { total }))
}

/// One number with its unit, in nanoseconds, and what follows it.
fn parse_part(text: &str) -> Result<(i64, &str), NotADuration> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(NotADuration::MissingNumber);
    }
    let end = rest
        .find(|c: char| c.is_ascii_digit() || c == '.')
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let unit: i64 = match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(NotADuration::MissingUnit),
        _ => return Err(NotADuration::UnknownUnit),
    };
    let nanos = decimal(whole)
        .and_then(|n| n.checked_mul(unit))
        .and_then(|n| n.checked_add(fraction_of(unit, fraction)))
        .ok_or(NotADuration::TooLong)?;
    Ok((nanos, rest))
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// `0.<digits>` of a unit. Digits beyond the eighteenth cannot matter.
fn fraction_of(unit: i64, digits: &str) -> i64 {
    let (mut number, mut scale) = (0_i128, 1_i128);
    for digit in digits.chars().take(18).filter_map(|c| c.to_digit(10)) {
        number = number * 10 + i128::from(digit);
        scale *= 10;
    }
    i64::try_from(i128::from(unit) * number / scale).unwrap_or(0)
}

fn decimal(digits: &str) -> Option<i64> {
    if digits.is_empty() {
        return Some(0);
    }
    digits.parse().ok()
}

/// Whether `text` is what `pattern` says, in which each `*` stands for any text, also none.
/// Takes time in proportion to the product of the lengths at worst.
pub fn glob_match(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where the last star was, and how much of the text it stands for so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        let wanted = pattern.get(p);
        if wanted == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if wanted.is_some() && wanted == text.get(t) {
            p += 1;
            t += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            p = at + 1;
            t = taken + 1;
        } else {
            return false;
        }
    }
    pattern.iter().skip(p).all(|byte| *byte == b'*')
}

/// Names longer than this are not compared: nobody mistypes one, and comparing costs the product
/// of the lengths.
const LONGEST_NAME: usize = 64;

/// How many letters must be added, removed, replaced or swapped with their neighbour to make one
/// text of the other.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut last_a = None;
    for (row, letter_a) in a.chars().enumerate() {
        let mut line = vec![row + 1];
        let mut left = row + 1;
        let mut last_b = None;
        for (column, letter_b) in b.iter().enumerate() {
            let at = |line: &[usize], i: usize| line.get(i).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&above, column) + usize::from(letter_a != *letter_b);
            let mut best = replaced.min(at(&above, column + 1) + 1).min(left + 1);
            if last_a == Some(*letter_b) && last_b == Some(letter_a) && column > 0 {
                best = best.min(at(&before, column - 1) + 1);
            }
            line.push(best);
            left = best;
            last_b = Some(*letter_b);
        }
        before = above;
        above = line;
        last_a = Some(letter_a);
    }
    above.last().copied().unwrap_or(0)
}

/// The name among `known` that `name` was probably meant to be: at most one letter off for names
/// of up to three letters, two for those of up to seven, three for longer ones. The first of the
/// nearest where several are equally near.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > LONGEST_NAME {
        return None;
    }
    let limit = match length {
        0..=3 => 1,
        4..=7 => 2,
        _ => 3,
    };
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let distance = edit_distance(name, candidate);
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Names one after the other; "none" if there are none.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    match names.into_iter().collect::<Vec<_>>().as_slice() {
        [] => "none".to_owned(),
        some => some.join(", "),
    }
}

/// A text of somebody else's in quotes for a message: no control characters, and cut where it is
/// too long to read.
pub fn quote(text: &str) -> String {
    match text.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        let read = |text: &str| parse_duration(text).map(|span| span.0);
        assert_eq!(read("30s"), Ok(30_000_000_000));
        assert_eq!(read("1h30m"), Ok(5_400_000_000_000));
        assert_eq!(read("1.5ms"), Ok(1_500_000));
        assert_eq!(read(".5s"), Ok(500_000_000));
        assert_eq!(read("1.s"), Ok(1_000_000_000));
        assert_eq!(read("0.25h"), Ok(900_000_000_000));
        assert_eq!(read("0.0000000019s"), Ok(1));
        assert_eq!(read("7us"), Ok(7_000));
        assert_eq!(read("7\u{b5}s3ns"), Ok(7_003));
        assert_eq!(read("-2s"), Ok(-2_000_000_000));
        assert_eq!(read("+2s"), Ok(2_000_000_000));
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read("-0"), Ok(0));
    }

    #[test]
    fn invalid_duration_is_refused_with_reason() {
        assert_eq!(parse_duration("5"), Err(NotADuration::MissingUnit));
        assert_eq!(parse_duration("00"), Err(NotADuration::MissingUnit));
        assert_eq!(parse_duration("5d"), Err(NotADuration::UnknownUnit));
        assert_eq!(parse_duration("5 s"), Err(NotADuration::UnknownUnit));
        assert_eq!(parse_duration(""), Err(NotADuration::MissingNumber));
        assert_eq!(parse_duration("s"), Err(NotADuration::MissingNumber));
        assert_eq!(parse_duration(".s"), Err(NotADuration::MissingNumber));
        assert_eq!(parse_duration("--1s"), Err(NotADuration::MissingNumber));
        assert_eq!(parse_duration("2562048h"), Err(NotADuration::TooLong));
        assert_eq!(
            parse_duration("99999999999999999999ns"),
            Err(NotADuration::TooLong)
        );
    }

    #[test]
    fn duration_round_trips() {
        for nanos in [0, 1, 1_500, 250_000_000, 5_400_000_000_001, i64::MAX] {
            assert_eq!(parse_duration(&Span(nanos).to_string()), Ok(Span(nanos)));
        }
    }

    #[test]
    fn star_matches_any_text() {
        assert!(glob_match("*", ""));
        assert!(glob_match("*_LICENSE", "NOMAD_LICENSE"));
        assert!(glob_match("a*b*c", "a-b-b-c"));
        assert!(!glob_match("a*b*c", "a-b-b-d"));
        assert!(!glob_match("*_LICENSE", "NOMAD_LICENSE_PATH"));
        assert!(!glob_match("", "x"));
        assert!(glob_match("", ""));
        assert!(!glob_match("dc", "dc1"));
    }

    #[test]
    fn edit_distance_counts_letters() {
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", ""), 3);
        assert_eq!(edit_distance("command", "comand"), 1);
        assert_eq!(edit_distance("command", "cmomand"), 1);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }

    #[test]
    fn quotes_are_short_and_clean() {
        assert_eq!(quote("a\nb"), "\"a\\nb\"");
        assert_eq!(quote(&"é".repeat(64)), format!("\"{}\"", "é".repeat(64)));
        assert_eq!(quote(&"é".repeat(65)), format!("\"{}\"...", "é".repeat(64)));
    }

    #[test]
    fn nearest_name_is_suggested_within_distance() {
        let known = ["command", "args", "work_dir"];
        assert_eq!(nearest("comand", known), Some("command"));
        assert_eq!(nearest("arg", known), Some("args"));
        assert_eq!(nearest("workdir", known), Some("work_dir"));
        assert_eq!(nearest("image", known), None);
        assert_eq!(nearest(&"x".repeat(1000), known), None);
    }

    #[test]
    fn transposition_counts_as_one_edit() {
        assert_eq!(edit_distance("ab", "ba"), 1);
        assert_eq!(edit_distance("xab", "xba"), 1);
        assert_eq!(edit_distance("abcd", "badc"), 2);
        assert_eq!(edit_distance("ab", "cb"), 1);
        assert_eq!(edit_distance("abc", "cab"), 2);
        assert_eq!(edit_distance("aab", "aba"), 1);
        assert_eq!(edit_distance("abc", "bxa"), 3);
    }

    #[test]
    fn suggestion_distance_depends_on_length() {
        assert_eq!(nearest("cpx", ["cpu"]), Some("cpu"));
        assert_eq!(nearest("cxx", ["cpu"]), None);
        assert_eq!(nearest("imxxe", ["image"]), Some("image"));
        assert_eq!(nearest("ixxxe", ["image"]), None);
        assert_eq!(nearest("commxxx", ["command"]), None);
        assert_eq!(nearest("work_xxx", ["work_dir"]), Some("work_dir"));
        assert_eq!(nearest("worxxxxr", ["work_dir"]), None);
        let longest = "x".repeat(LONGEST_NAME);
        let longer = format!("{longest}x");
        assert_eq!(nearest(&longest, [longer.as_str()]), Some(longer.as_str()));
        assert_eq!(nearest(&longer, [longest.as_str()]), None);
    }
}
