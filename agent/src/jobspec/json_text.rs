//! JSON written so that it is an expression of HCL, too.

/// Words that begin something else where a key is expected.
const KEYWORDS: [&str; 4] = ["for", "null", "true", "false"];

/// Rewrites JSON, which must be valid. Lines stay what they are, and nearly all columns.
///
/// - Escapes of texts that HCL does not know, `\/`, `\b`, `\f` and characters beyond 16 bits,
///   which JSON writes as two escapes, become others.
/// - Keys lose their quotes where they can, because the parser remembers the places of bare keys.
pub(super) fn as_hcl(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
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

fn rewrite(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(rest.get(..at).unwrap_or(""));
        rest = rest.get(at..).unwrap_or("");
        let (text, taken) = escape(rest);
        out.push_str(&text);
        rest = rest.get(taken..).unwrap_or("");
    }
    out.push_str(rest);
}

/// One escape rewritten, and its length in the original.
fn escape(text: &str) -> (String, usize) {
    match text.as_bytes().get(1) {
        Some(b'/') => ("/".to_owned(), 2),
        Some(b'b') => ("\\u0008".to_owned(), 2),
        Some(b'f') => ("\\u000c".to_owned(), 2),
        Some(b'u') => {
            let high = unit(text);
            let low = text.get(6..).and_then(unit);
            let pair = high.zip(low);
            let pair = pair.filter(|(high, _)| (0xd800..0xdc00).contains(high));
            match pair.and_then(|(high, low)| char::decode_utf16([high, low]).next()) {
                Some(Ok(character)) => (character.to_string(), 12),
                _ => (text.get(..6).unwrap_or(text).to_owned(), 6.min(text.len())),
            }
        }
        // A backslash stands in texts only, and never last.
        _ => {
            let len = text.chars().take(2).map(char::len_utf8).sum();
            (text.get(..len).unwrap_or(text).to_owned(), len)
        }
    }
}

/// The number of `\uXXXX`.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}
