//! Texts.

use regex::bytes::Match;

use super::Param::{Any, Int, List, Text};
use super::{Args, Function, Result, function};
use crate::error::Fault;
use crate::eval::cx::Cx;
use crate::value::{Of, Value};

pub(super) const TABLE: &[Function] = &[
    function(
        "indent",
        &[Int, Text],
        "each line that is not empty after as many spaces",
        indent,
    ),
    function(
        "join",
        &[Text, List],
        "the texts of a list with a text between them",
        join,
    ),
    function(
        "split",
        &[Text, Text],
        "the parts between a text, in the second text",
        split,
    ),
    function(
        "splitToMap",
        &[Text, Text, Text],
        "a map of `key:value` parts: the text between parts, the text after the key, and the whole",
        split_to_map,
    ),
    function(
        "replaceAll",
        &[Text, Text, Text],
        "the last text, with the second in place of each first one",
        |cx, args| replace(cx, &args.str(2)?, &args.str(0)?, &args.str(1)?),
    ),
    function(
        "regexMatch",
        &[Text, Text],
        "whether a regular expression is found in a text",
        |cx, args| {
            Ok(Value::Bool(
                cx.regex(args.text(0)?, args.text(1)?.len())?
                    .is_match(args.text(1)?),
            ))
        },
    ),
    function(
        "regexReplaceAll",
        &[Text, Text, Text],
        "the last text, with the second, in which `$1` is a group, for each match of the first",
        |cx, args| regex_replace(cx, args, 1, 2),
    ),
    function("toLower", &[Text], "in small letters", |cx, args| {
        cx.text(lower(&args.str(0)?))
    }),
    function("toUpper", &[Text], "in capital letters", |cx, args| {
        cx.text(upper(&args.str(0)?))
    }),
    function(
        "toTitle",
        &[Text],
        "each word with a capital letter first",
        |cx, args| cx.text(title(&args.str(0)?)),
    ),
    function(
        "trim",
        &[Text, Text],
        "the second text without any of the characters of the first at its ends",
        trim_all,
    ),
    function(
        "trimPrefix",
        &[Text, Text],
        "the second text without the first one at its beginning",
        trim_prefix,
    ),
    function(
        "trimSuffix",
        &[Text, Text],
        "the second text without the first one at its end",
        trim_suffix,
    ),
    function(
        "trimSpace",
        &[Text],
        "without spaces and new lines at its ends",
        |cx, args| cx.text(args.str(0)?.trim()),
    ),
    function(
        "contains",
        &[Any, Any],
        "whether the first value is in the second: a list or a text",
        |cx, args| super::lists::contains(cx, args.get(1)?, args.get(0)?),
    ),
    function(
        "in",
        &[Any, Any],
        "whether the second value is in the first: a list or a text",
        |cx, args| super::lists::contains(cx, args.get(0)?, args.get(1)?),
    ),
];

/// Without any of the characters of the first text at its ends.
pub(super) fn trim_all(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let set = args.str(0)?;
    cx.text(args.str(1)?.trim_matches(|char| set.contains(char)))
}

/// Without the first text at its beginning.
pub(super) fn trim_prefix(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let (prefix, text) = (args.text(0)?, args.text(1)?);
    cx.text(text.strip_prefix(prefix.as_ref()).unwrap_or(text))
}

/// Without the first text at its end.
pub(super) fn trim_suffix(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let (suffix, text) = (args.text(0)?, args.text(1)?);
    cx.text(text.strip_suffix(suffix.as_ref()).unwrap_or(text))
}

/// Go turns each character into one: `ß` has no single capital letter.
pub(super) fn upper(text: &str) -> String {
    text.chars().map(capital).collect()
}

pub(super) fn capital(char: char) -> char {
    let mut upper = char.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        _ => char,
    }
}

/// Go turns each character into one here, too.
pub(super) fn lower(text: &str) -> String {
    text.chars().map(small).collect()
}

pub(super) fn small(char: char) -> char {
    char.to_lowercase().next().unwrap_or(char)
}

/// A capital for the first letter of each word.
fn title(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut found = false;
    let each = |(at, char): (usize, &char)| {
        let first = char.is_alphabetic() && !found;
        found = first || found && is_inside(&chars, at);
        if first { capital(*char) } else { *char }
    };
    chars.iter().enumerate().map(each).collect()
}

/// Whether a word goes on: letters, digits, underscores, and what may stand between two letters.
fn is_inside(chars: &[char], at: usize) -> bool {
    let is_letter = |at: Option<usize>| {
        at.and_then(|at| chars.get(at))
            .is_some_and(|char| char.is_alphabetic())
    };
    match chars.get(at) {
        Some('\'' | '.' | ':' | '\u{b7}' | '\u{2019}') => {
            is_letter(at.checked_sub(1)) && is_letter(Some(at + 1))
        }
        Some(char) => char.is_alphanumeric() || *char == '_',
        None => false,
    }
}

fn indent(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    if args.int(0)? < 0 {
        return Err(Fault::failed("the number of spaces is below zero"));
    }
    let mut out = cx.sink();
    for (at, line) in args.text(1)?.split(|byte| *byte == b'\n').enumerate() {
        if at > 0 {
            out.push("\n")?;
        }
        if !line.is_empty() {
            out.repeat(' ', args.count(0)?)?;
            out.push(line)?;
        }
    }
    cx.text(out.into_bytes())
}

fn join(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut out = cx.sink();
    let items = args.items(1)?;
    for at in 0..items.len() {
        if at > 0 {
            out.push(args.text(0)?)?;
        }
        out.push(Args(items).text(at)?)?;
    }
    cx.text(out.into_bytes())
}

/// The parts of a text without spaces at its ends; of nothing there are none.
fn split(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let text = args.str(1)?;
    match text.trim() {
        "" => cx.texts(Vec::<&str>::new()),
        text => parts(cx, &args.str(0)?, text),
    }
}

/// All parts; without a separator they are the characters.
pub(super) fn parts(cx: &mut Cx<'_>, separator: &str, text: &str) -> Result {
    if separator.is_empty() {
        return cx.texts(text.chars().map(String::from));
    }
    cx.texts(text.split(separator))
}

fn split_to_map(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let (between, after, text) = (args.str(0)?, args.str(1)?, args.str(2)?);
    let mut entries = std::collections::BTreeMap::new();
    if after.is_empty() {
        return Err(Fault::failed("what stands after keys must not be empty"));
    }
    let Value::List(parts) = parts(cx, &between, &text)? else {
        return Ok(Value::Nil);
    };
    for at in 0..parts.items.len() {
        let part = Args(&parts.items).str(at)?;
        cx.grow(part.len() + 128)?;
        if let Some((key, value)) = part.split_once(after.as_ref()) {
            entries.insert(key.as_bytes().into(), Value::text(value));
        }
    }
    cx.map(entries, Of::Texts)
}

pub(super) fn replace(cx: &mut Cx<'_>, text: &str, from: &str, to: &str) -> Result {
    let places = match from.is_empty() {
        true => text.len() + 1,
        false => text.matches(from).count(),
    };
    let size = places
        .checked_mul(to.len())
        .and_then(|size| size.checked_add(text.len()));
    cx.fits(size)?;
    cx.text(text.replace(from, to))
}

/// Whether something was found, and not just a place inside of a character.
pub(super) fn is_whole(text: &[u8], found: &Match<'_>) -> bool {
    let inside = |byte: &u8| byte & 0xc0 == 0x80;
    !found.is_empty() || !text.get(found.start()).is_some_and(inside)
}

/// Replaces what a regular expression finds; piece by piece, because each may be long.
pub(super) fn regex_replace(
    cx: &mut Cx<'_>,
    args: Args<'_>,
    replacement: usize,
    text: usize,
) -> Result {
    let (to, text) = (args.text(replacement)?, args.text(text)?);
    let regex = cx.regex(args.text(0)?, text.len())?;
    let mut out = cx.sink();
    let mut done = 0;
    for found in regex.captures_iter(text) {
        cx.spend(2 + u64::try_from(to.len() / 16).unwrap_or_default())?;
        let Some(whole) = found.get(0).filter(|whole| is_whole(text, whole)) else {
            continue;
        };
        out.push(text.get(done..whole.start()).unwrap_or_default())?;
        let mut expanded = Vec::new();
        let groups = to.iter().filter(|byte| **byte == b'$').count();
        cx.fits(
            groups
                .checked_mul(whole.len())
                .and_then(|size| size.checked_add(to.len())),
        )?;
        found.expand(to, &mut expanded);
        out.push(expanded)?;
        done = whole.end();
    }
    out.push(text.get(done..).unwrap_or_default())?;
    cx.text(out.into_bytes())
}
