//! Texts and characters in quotes.

/// Whether a character is shown as it is.
pub(crate) fn is_printable(char: char) -> bool {
    if char == ' ' || char.is_ascii_graphic() {
        return true;
    }
    if char.is_ascii() || char.is_control() || char.is_whitespace() {
        return false;
    }
    let mut escaped = char.escape_debug();
    char.is_alphanumeric() || is_mark(char) || escaped.next() != Some('\\')
}

/// Marks that stand on the letter before them.
fn is_mark(char: char) -> bool {
    matches!(char, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}'
        | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{900}'..='\u{903}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}')
}

/// A text as Go writes it; bytes that are no UTF-8 by their numbers.
pub(crate) fn quoted(text: &[u8], ascii: bool) -> String {
    let mut out = String::from("\"");
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            one(&mut out, char, '"', ascii);
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out.push('"');
    out
}

/// A character as Go writes it.
pub(crate) fn quoted_char(char: char, ascii: bool) -> String {
    let mut out = String::from("'");
    one(&mut out, char, '\'', ascii);
    out.push('\'');
    out
}

fn one(out: &mut String, char: char, quote: char, ascii: bool) {
    match char {
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        '\\' => out.push_str("\\\\"),
        _ if char == quote => {
            out.push('\\');
            out.push(char);
        }
        _ if is_printable(char) && (char.is_ascii() || !ascii) => out.push(char),
        _ => {
            let number = u32::from(char);
            out.push_str(&match number {
                0..=0x7f => format!("\\x{number:02x}"),
                0x80..=0xffff => format!("\\u{number:04x}"),
                _ => format!("\\U{number:08x}"),
            });
        }
    }
}
