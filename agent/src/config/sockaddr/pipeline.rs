//! A pipeline: what finds interfaces, what picks of them, and what names them.

use drover_core::text::{nearest, quote};
use drover_io_real::fingerprint::Interface;

use super::pick;

/// What there is to begin with.
const SOURCES: [&str; 10] = [
    "GetAllInterfaces",
    "GetDefaultInterfaces",
    "GetInterfaceIP",
    "GetInterfaceIPs",
    "GetPrivateInterfaces",
    "GetPrivateIP",
    "GetPrivateIPs",
    "GetPublicInterfaces",
    "GetPublicIP",
    "GetPublicIPs",
];

/// What there is to go on with.
const STEPS: [&str; 8] = [
    "attr", "exclude", "include", "join", "limit", "offset", "sort", "unique",
];

/// The most steps of a pipeline.
const MOST_STEPS: usize = 32;

/// What a step hands on.
enum Found {
    /// Addresses.
    Addresses(Vec<Interface>),
    /// A text, which is the end.
    Text(String),
}

/// What a pipeline stands for.
///
/// # Errors
/// It has a step that is not known, or one that does not fit.
pub(super) fn evaluate(text: &str, all: &[Interface]) -> Result<String, String> {
    let steps = steps(text)?;
    let Some((source, others)) = steps.split_first() else {
        return Err("between {{ and }} there is nothing".to_owned());
    };
    let mut found = begin(source, all)?;
    for step in others {
        found = match found {
            Found::Addresses(addresses) => go_on(step, addresses)?,
            Found::Text(_) => {
                let name = step.first().map_or("", String::as_str);
                return Err(format!(
                    "{}: what comes before it is a text, of which nothing can be picked",
                    quote(name)
                ));
            }
        };
    }
    match found {
        Found::Text(text) => Ok(text),
        Found::Addresses(_) => Err(format!(
            "{}: it ends in interfaces, not in one of their attributes: add | attr \"address\", or \"name\"",
            quote(text.trim())
        )),
    }
}

fn begin(step: &[String], all: &[Interface]) -> Result<Found, String> {
    let words: Vec<&str> = step.iter().map(String::as_str).collect();
    let text = |found: Option<String>| Found::Text(found.unwrap_or_default());
    let ips = |all: &[Interface]| Found::Text(pick::joined(all, "address", " "));
    Ok(match words.as_slice() {
        ["GetAllInterfaces"] => Found::Addresses(all.to_vec()),
        ["GetDefaultInterfaces"] => {
            let of_default = all.iter().filter(|one| one.is_default);
            Found::Addresses(of_default.cloned().collect())
        }
        ["GetPrivateInterfaces"] => Found::Addresses(pick::private(all)),
        ["GetPublicInterfaces"] => Found::Addresses(pick::public(all)),
        ["GetPrivateIP"] => text(pick::first_ip(&pick::private(all))),
        ["GetPrivateIPs"] => ips(&pick::all_private(all)),
        ["GetPublicIP"] => text(pick::first_ip(&pick::public(all))),
        ["GetPublicIPs"] => ips(&pick::all_public(all)),
        ["GetInterfaceIP", name] => text(pick::first_ip(&pick::of_interface(all, name)?)),
        ["GetInterfaceIPs", name] => ips(&pick::of_interface(all, name)?),
        [name, ..] => return Err(not_so(name, &SOURCES)),
        [] => return Err("a step of it is empty".to_owned()),
    })
}

fn go_on(step: &[String], mut all: Vec<Interface>) -> Result<Found, String> {
    let words: Vec<&str> = step.iter().map(String::as_str).collect();
    Ok(Found::Addresses(match words.as_slice() {
        ["attr", attribute] => {
            let attribute = pick::known_attribute(attribute)?;
            let first = all.first().map(|one| pick::attribute(one, attribute));
            return Ok(Found::Text(first.unwrap_or_default()));
        }
        ["join", attribute, between] => {
            let attribute = pick::known_attribute(attribute)?;
            return Ok(Found::Text(pick::joined(&all, attribute, between)));
        }
        ["include", by, what] => pick::filter(all, by, what, true)?,
        ["exclude", by, what] => pick::filter(all, by, what, false)?,
        ["sort", keys] => pick::sort(all, keys)?,
        ["unique", by] => pick::unique(all, by)?,
        ["limit", count] => {
            all.truncate(number(count)?);
            all
        }
        ["offset", count] => {
            let count = number(count)?.min(all.len());
            all.split_off(count)
        }
        [name, ..] => return Err(not_so(name, &STEPS)),
        [] => return Err("a step of it is empty".to_owned()),
    }))
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse();
    number.map_err(|_| format!("{}: a number is needed", quote(text)))
}

/// Why a step is none.
fn not_so(name: &str, known: &[&'static str]) -> String {
    if known.contains(&name) {
        return format!("{}: it does not have these arguments", quote(name));
    }
    let near = nearest(name, known.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    format!(
        "{} is not evaluated here, only {}{near}; or write what it stands for on this machine",
        quote(name),
        known.join(", ")
    )
}

/// The steps of a pipeline, each with its words.
fn steps(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut steps = vec![Vec::new()];
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '|' => {
                steps.push(Vec::new());
                rest = rest.get(1..).unwrap_or_default().trim_start();
                continue;
            }
            '"' | '`' => quoted(rest, first)?,
            _ => {
                let ends = |c: char| c.is_whitespace() || matches!(c, '|' | '"' | '`');
                let end = rest.find(ends).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                (word.to_owned(), after)
            }
        };
        if let Some(step) = steps.last_mut() {
            step.push(word);
        }
        rest = after.trim_start();
    }
    match steps.len() <= MOST_STEPS {
        true => Ok(steps),
        false => Err(format!("it has more than {MOST_STEPS} steps")),
    }
}

/// A text in quotes at the beginning, and what follows it.
fn quoted(text: &str, mark: char) -> Result<(String, &str), String> {
    let (mut word, mut escaped) = (String::new(), false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\\' if mark == '"' && !escaped => escaped = true,
            c if c == mark && !escaped => {
                let after = at + c.len_utf8();
                return Ok((word, text.get(after..).unwrap_or_default()));
            }
            c => {
                // Before anything but a quote or itself it is a part of a regular expression.
                if escaped && !matches!(c, '"' | '\\') {
                    word.push('\\');
                }
                word.push(c);
                escaped = false;
            }
        }
    }
    Err(format!("{} has no end: {mark} is missing", quote(text)))
}
