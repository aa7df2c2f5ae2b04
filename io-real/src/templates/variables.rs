//! Variables in a rendered file: a line each, `NAME=value`.
//!
//! As in Nomad: `export ` may come before a name, a value may be of pieces that stand plain, in
//! `'`, as they are, or in `"`, with the escapes of JSON; `#` begins a comment outside of quotes.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// The variables of a text. Later ones replace earlier ones of the same name.
///
/// # Errors
/// The first line that is none, with its number.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut variables = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = variable(line).map_err(|why| format!("line {}: {why}", at + 1))?;
        variables.insert(name, value);
    }
    Ok(variables)
}

fn variable(line: &str) -> Result<(String, String), String> {
    let (name, value) = line.split_once('=').ok_or("there is no =")?;
    let name = name.strip_prefix("export ").unwrap_or(name).trim_end();
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    let goes_on = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.');
    if !name.starts_with(begins) || !name.chars().all(goes_on) {
        return Err(
            "a name is of letters, digits, _, / and ., and begins with no digit".to_owned(),
        );
    }
    Ok((name.to_owned(), pieces(value.trim_start())?))
}

fn pieces(text: &str) -> Result<String, String> {
    let mut value = String::new();
    // So much of it may not be trimmed: it stood in quotes.
    let mut firm = 0;
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '#' => break,
            '\'' => {
                plain_quoted(&mut rest, &mut value)?;
                firm = value.len();
            }
            '"' => {
                quoted(&mut rest, &mut value)?;
                firm = value.len();
            }
            c if c.is_control() => return Err("there is a control character".to_owned()),
            c => value.push(c),
        }
    }
    let end = value.trim_end().len().max(firm);
    value.truncate(end);
    Ok(value)
}

fn plain_quoted(rest: &mut Peekable<Chars<'_>>, value: &mut String) -> Result<(), String> {
    for c in rest {
        match c {
            '\'' => return Ok(()),
            c => value.push(c),
        }
    }
    Err("a ' has no end".to_owned())
}

fn quoted(rest: &mut Peekable<Chars<'_>>, value: &mut String) -> Result<(), String> {
    let mut json = "\"".to_owned();
    let mut escaped = false;
    for c in rest {
        json.push(c);
        if c == '"' && !escaped {
            let text: String = serde_json::from_str(&json)
                .map_err(|_| "an escape is none of JSON's".to_owned())?;
            value.push_str(&text);
            return Ok(());
        }
        escaped = c == '\\' && !escaped;
    }
    Err("a \" has no end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Nomad's reader makes of the same lines.
    #[test]
    fn env_lines_are_parsed_like_nomad() {
        let of = |text: &str| parse(text).map(|found| found.get("A").cloned());
        for (text, value) in [
            ("A=b", "b"),
            ("A = b", "b"),
            (" A=b ", "b"),
            ("export A=b", "b"),
            ("A=b # c", "b"),
            ("A=b#c", "b"),
            ("# c\nA=1\n\nB=2", "1"),
            ("A=\"x y\" # c", "x y"),
            ("A='x\\n'", "x\\n"),
            ("A=\"x\\ny\"", "x\ny"),
            ("A=\"a\\u0041\"", "aA"),
            ("A=", ""),
            ("A=\"\"", ""),
            ("A='a\"b'", "a\"b"),
            ("A=\"a'b\"", "a'b"),
            ("A=\"a\\\"b\\\\\"", "a\"b\\"),
            ("A=a b", "a b"),
            ("A=a=b", "a=b"),
            ("A=\"x\"y", "xy"),
            ("A=x\"y\"", "xy"),
            ("A=' x ' ", " x "),
            ("A=\\n", "\\n"),
            ("A=$B", "$B"),
            ("A=b\r\nC=d", "b"),
            ("A='b' c", "b c"),
            ("A=\u{fc}", "\u{fc}"),
            ("A=\tb", "b"),
            ("A=#c", ""),
            ("A=1\nA=2", "2"),
        ] {
            assert_eq!(of(text), Ok(Some(value.to_owned())), "{text:?}");
        }
        for bad in [
            "1A=b",
            "A-B=c",
            "A",
            "=b",
            "A=\"x",
            "A='x",
            "A=\"multi\nline\"",
            "A=\"a\\$b\"",
            "A=\"\\x\"",
            "\u{feff}A=b",
            "A=b\tc",
            "export  A=b",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        let why = parse("A=1\nB!=2").err();
        assert!(why.is_some_and(|why| why.starts_with("line 2: ")));
    }
}
