//! Texts as YAML: plain if they cannot be taken for anything else, in quotes or as lines otherwise.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::error::Fault;
use crate::format::Sink;

/// After this column, the next single space becomes a new line.
const WIDTH: usize = 80;

/// A text, whose further lines stand at an indentation.
pub(super) fn write(out: &mut Sink, text: &[u8], indent: usize) -> Result<(), Fault> {
    let Ok(text) = std::str::from_utf8(text) else {
        out.push("!!binary ")?;
        return out.push(STANDARD.encode(text));
    };
    let special = text.chars().any(is_special);
    // Spaces at the ends of lines would be lost to the eye.
    let hidden = text.contains(" \n") || text.ends_with(' ');
    if text.contains('\n') && hidden {
        return double(out, text, Some(indent));
    }
    if text.contains('\n') && !special {
        return lines(out, text, indent);
    }
    if special || is_ambiguous(text) {
        return double(out, text, Some(indent));
    }
    match is_plain(text) {
        true => folded(out, text, indent, ""),
        false => folded(out, &text.replace('\'', "''"), indent, "'"),
    }
}

/// A key, which is always on one line.
pub(super) fn key(out: &mut Sink, text: &[u8]) -> Result<(), Fault> {
    let text = String::from_utf8_lossy(text);
    if text.contains('\n') || text.chars().any(is_special) || is_ambiguous(&text) {
        return double(out, &text, None);
    }
    match is_plain(&text) {
        true => out.push(text.as_bytes()),
        false => out.push(format!("'{}'", text.replace('\'', "''"))),
    }
}

fn is_special(char: char) -> bool {
    char != '\n'
        && (char.is_control()
            || matches!(char, '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{10000}'..))
}

fn column(out: &Sink) -> usize {
    out.column()
}

/// One line, or several where it is too wide.
fn folded(out: &mut Sink, text: &str, indent: usize, quote: &str) -> Result<(), Fault> {
    out.push(quote)?;
    let chars: Vec<char> = text.chars().collect();
    let is_space = |at: Option<usize>| at.and_then(|at| chars.get(at)) == Some(&' ');
    for (at, char) in chars.iter().enumerate() {
        let inside = at > 0 && at + 1 < chars.len();
        let single = *char == ' ' && !is_space(at.checked_sub(1)) && !is_space(Some(at + 1));
        if single && inside && column(out) > WIDTH {
            out.push("\n")?;
            out.repeat(' ', indent)?;
        } else {
            out.push_char(*char)?;
        }
    }
    out.push(quote)
}

/// With what cannot be seen as numbers; too wide lines go on at an indentation, if there is one.
fn double(out: &mut Sink, text: &str, indent: Option<usize>) -> Result<(), Fault> {
    out.push("\"")?;
    let chars: Vec<char> = text.chars().collect();
    for (at, char) in chars.iter().enumerate() {
        let inside = at > 0 && at + 1 < chars.len();
        match char {
            ' ' if inside && indent.is_some() && column(out) > WIDTH => {
                out.push("\n")?;
                out.repeat(' ', indent.unwrap_or_default())?;
                if chars.get(at + 1) == Some(&' ') {
                    out.push("\\")?;
                }
            }
            '"' => out.push("\\\"")?,
            '\\' => out.push("\\\\")?,
            '\0' => out.push("\\0")?,
            '\u{7}' => out.push("\\a")?,
            '\u{8}' => out.push("\\b")?,
            '\t' => out.push("\\t")?,
            '\n' => out.push("\\n")?,
            '\u{b}' => out.push("\\v")?,
            '\u{c}' => out.push("\\f")?,
            '\r' => out.push("\\r")?,
            '\u{1b}' => out.push("\\e")?,
            '\u{85}' => out.push("\\N")?,
            '\u{2028}' => out.push("\\L")?,
            '\u{2029}' => out.push("\\P")?,
            '\u{feff}' => out.push("\\uFEFF")?,
            '\u{10000}'.. => out.push(format!("\\U{:08X}", u32::from(*char)))?,
            _ if char.is_control() => out.push(format!("\\x{:02X}", u32::from(*char)))?,
            _ => out.push_char(*char)?,
        }
    }
    out.push("\"")
}

/// A block of lines.
fn lines(out: &mut Sink, text: &str, indent: usize) -> Result<(), Fault> {
    let indent = indent.max(2);
    out.push("|")?;
    if text.starts_with([' ', '\n']) {
        out.push("2")?;
    }
    let body = text.strip_suffix('\n');
    match body {
        None => out.push("-")?,
        Some(body) if body.is_empty() || body.ends_with('\n') => out.push("+")?,
        Some(_) => {}
    }
    for line in body.unwrap_or(text).split('\n') {
        out.push("\n")?;
        if !line.is_empty() {
            out.repeat(' ', indent)?;
            out.push(line)?;
        }
    }
    Ok(())
}

/// Whether it may stand without quotes.
fn is_plain(text: &str) -> bool {
    let mut chars = text.chars();
    let Some(first) = chars.next() else {
        return false;
    };
    let second = chars.next();
    let starts = match first {
        '-' | '?' | ':' => second.is_some_and(|next| next != ' '),
        _ => !"#,[]{}&*!|>'\"%@`".contains(first),
    };
    let document = text.starts_with("---") || text.starts_with("...");
    let spaces = text.starts_with(' ') || text.ends_with(' ');
    starts
        && !document
        && !spaces
        && !text.contains(": ")
        && !text.ends_with(':')
        && !text.contains(" #")
}

/// Whether it would be read as something that is no text.
fn is_ambiguous(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "", "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N",
        "no", "No", "NO", "off", "Off", "OFF", "true", "True", "TRUE", "false", "False", "FALSE",
        ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf",
        "-.Inf", "-.INF",
    ];
    WORDS.contains(&text) || is_number(text) || is_clock(text) || is_date(text)
}

fn is_number(text: &str) -> bool {
    let plain = text.replace('_', "");
    let number = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    if !number.starts_with(|char: char| char.is_ascii_digit() || char == '.') {
        return false;
    }
    let based = |prefix: &str, base: u32| {
        let digits = number.strip_prefix(prefix);
        digits.is_some_and(|digits| {
            !digits.is_empty() && digits.chars().all(|char| char.is_digit(base))
        })
    };
    let allowed = |char: char| char.is_ascii_digit() || matches!(char, '.' | 'e' | 'E' | '+' | '-');
    let decimal = number.chars().all(allowed) && number.parse::<f64>().is_ok();
    decimal || based("0x", 16) || based("0b", 2) || based("0o", 8)
}

/// `1:30`, which old readers take for a number of base 60.
fn is_clock(text: &str) -> bool {
    let mut parts = text.strip_prefix(['+', '-']).unwrap_or(text).split(':');
    let digits = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|char| char.is_ascii_digit() || char == '_')
    };
    let first = parts
        .next()
        .is_some_and(|first| digits(first) && !first.starts_with('_'));
    let rest: Vec<&str> = parts.collect();
    let minute = |part: &&str| {
        let part = part.split('.').next().unwrap_or_default();
        digits(part) && part.parse::<u8>().is_ok_and(|number| number < 60)
    };
    first && !rest.is_empty() && rest.iter().all(minute)
}

/// A date, or a date and a time.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    if !(0..4).all(digit) || bytes.get(4) != Some(&b'-') {
        return false;
    }
    let rest = text.get(5..).unwrap_or_default();
    let date = rest.split(['T', 't', ' ']).next().unwrap_or_default();
    let parts: Vec<&str> = date.split('-').collect();
    let number = |part: &&str| {
        (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let time = rest.get(date.len()..).unwrap_or_default();
    parts.len() == 2
        && parts.iter().all(number)
        && (time.is_empty()
            || time
                .get(1..)
                .is_some_and(|time| time.starts_with(|char: char| char.is_ascii_digit())))
}
