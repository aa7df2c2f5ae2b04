//! JSON written so that it is an expression of HCL, too.

/// Words that begin something else where a key is expected.
const KEYWORDS: [&str; 4] = ["for", "null", "true", "false"];

/// Rewrites JSON, which must be an object. Lines stay what they are, and nearly all columns.
///
/// - Texts are written with the escapes of HCL, and the expressions within them without any.
/// - Keys lose their quotes where they can, because the parser remembers the places of bare keys.
pub(super) fn as_hcl(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    // An expression cannot begin or end with a line break, but the lines must stay what they are.
    let inner = json.trim();
    let blank = json.len() - json.trim_start().len();
    out.push('{');
    out.push_str(json.get(..blank).unwrap_or(""));
    let mut rest = inner.strip_prefix('{').unwrap_or(inner);
    while let Some(at) = rest.find('"') {
        let (before, text) = rest.split_at(at);
        out.push_str(before);
        let end = end_of_text(text);
        let (text, after) = text.split_at(end);
        let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
        if after.trim_start().starts_with(':') && is_name(inner) {
            out.push(' ');
            out.push_str(inner);
            out.push(' ');
        } else {
            rewrite(text, &mut out);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The length of the text in quotes at the start.
fn end_of_text(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn is_name(text: &str) -> bool {
    let first = text.chars().next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && !KEYWORDS.contains(&text)
}

/// Writes a text of JSON, in its quotes, as a template of HCL.
fn rewrite(text: &str, out: &mut String) {
    let Ok(content) = serde_json::from_str::<String>(text) else {
        out.push_str(text);
        return;
    };
    out.push('"');
    let mut inside: Vec<Inside> = Vec::new();
    let mut rest = content.as_str();
    while let Some(c) = rest.chars().next() {
        let len = piece(rest, c, &mut inside, out);
        rest = rest.get(len..).unwrap_or("");
    }
    out.push('"');
}

/// What is open within a template, from the outside to the inside.
enum Inside {
    /// An expression, with so many braces open.
    Expression(usize),
    /// A text within an expression.
    Text,
}

/// Writes the next piece of a template, and returns its length.
fn piece(rest: &str, c: char, inside: &mut Vec<Inside>, out: &mut String) -> usize {
    let two = rest.get(..2).unwrap_or("");
    let three = rest.get(..3).unwrap_or("");
    match inside.last_mut() {
        None | Some(Inside::Text) if matches!(three, "$${" | "%%{") => {
            out.push_str(three);
            3
        }
        None | Some(Inside::Text) if matches!(two, "${" | "%{") => {
            out.push_str(two);
            inside.push(Inside::Expression(1));
            2
        }
        None => {
            escaped(c, out);
            c.len_utf8()
        }
        Some(Inside::Text) => {
            let len: usize = match c {
                '\\' => rest.chars().take(2).map(char::len_utf8).sum(),
                _ => c.len_utf8(),
            };
            if c == '"' {
                inside.pop();
            }
            out.push_str(rest.get(..len).unwrap_or(""));
            len
        }
        Some(Inside::Expression(braces)) => {
            match c {
                '{' => *braces += 1,
                '}' => *braces -= 1,
                _ => {}
            }
            if *braces == 0 {
                inside.pop();
            } else if c == '"' {
                inside.push(Inside::Text);
            }
            // A line break would count as one of the file.
            out.push(if c == '\n' { ' ' } else { c });
            c.len_utf8()
        }
    }
}

fn escaped(c: char, out: &mut String) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        c => out.push(c),
    }
}
