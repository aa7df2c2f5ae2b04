//! Regular expressions of Go's dialect, said in the one of the crate that runs them.
//!
//! The two agree but for this: in Go `\d`, `\s`, `\w` and `\b` know ASCII only, brackets and `&&`
//! inside of a class are plain characters, and so are `\<` and `\>`.

use std::iter::Peekable;
use std::str::Chars;

/// The same expression in the other dialect. Where it is wrong, it stays wrong.
pub(crate) fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' => outside(&mut out, chars.next()),
            '[' => class(&mut out, &mut chars),
            _ => out.push(char),
        }
    }
    out
}

/// What stands for the characters of `\d`, `\s` and `\w`, without brackets.
fn perl(kind: char) -> Option<&'static str> {
    match kind.to_ascii_lowercase() {
        'd' => Some("0-9"),
        's' => Some(r"\t\n\x0C\r "),
        'w' => Some("0-9A-Za-z_"),
        _ => None,
    }
}

fn outside(out: &mut String, escaped: Option<char>) {
    match escaped {
        None => out.push('\\'),
        Some('b') => out.push_str(r"(?-u:\b)"),
        Some('B') => out.push_str(r"(?-u:\B)"),
        Some(plain @ ('<' | '>')) => out.push(plain),
        Some(kind) => match perl(kind) {
            Some(set) if kind.is_ascii_lowercase() => out.push_str(&format!("[{set}]")),
            Some(set) => out.push_str(&format!("[^{set}]")),
            None => {
                out.push('\\');
                out.push(kind);
            }
        },
    }
}

/// A class, after the bracket that opens it.
fn class(out: &mut String, chars: &mut Peekable<Chars<'_>>) {
    out.push('[');
    if let Some(not) = chars.next_if_eq(&'^') {
        out.push(not);
    }
    // A bracket that closes is plain where it is the first.
    if chars.next_if_eq(&']').is_some() {
        out.push_str(r"\]");
    }
    while let Some(char) = chars.next() {
        match char {
            ']' => {
                out.push(']');
                return;
            }
            '[' if chars.peek() == Some(&':') => named(out, chars),
            '[' | '&' | '~' => {
                out.push('\\');
                out.push(char);
            }
            '\\' => match chars.next() {
                None => out.push('\\'),
                Some(kind) => match perl(kind) {
                    Some(set) if kind.is_ascii_lowercase() => out.push_str(set),
                    Some(set) => out.push_str(&format!("[^{set}]")),
                    None => {
                        out.push('\\');
                        out.push(kind);
                    }
                },
            },
            _ => out.push(char),
        }
    }
}

/// `[:alpha:]` inside of a class.
fn named(out: &mut String, chars: &mut Peekable<Chars<'_>>) {
    out.push('[');
    for char in chars.by_ref() {
        out.push(char);
        if char == ']' {
            return;
        }
    }
}
