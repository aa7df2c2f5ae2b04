//! Numbers and texts as Go writes them.

use std::sync::Arc;

use crate::ast::WordKind;

/// A number, with all of Go's bases and underscores; nothing if it is none, or too large.
pub(crate) fn number(text: &str) -> Option<WordKind> {
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if !underscores_fit(digits) {
        return None;
    }
    let plain = digits.replace('_', "").to_ascii_lowercase();
    if let Some(magnitude) = whole(&plain) {
        let magnitude = magnitude?;
        let signed = if negative {
            -i128::from(magnitude)
        } else {
            magnitude.into()
        };
        return i64::try_from(signed).ok().map(WordKind::Int);
    }
    let float = match plain.strip_prefix("0x") {
        Some(hex) => hex_float(hex)?,
        None if plain.contains(['.', 'e']) => decimal_float(&plain)?,
        None => return None,
    };
    Some(WordKind::Float(if negative { -float } else { float }))
}

/// A whole number; the inner nothing is one that is too large.
fn whole(plain: &str) -> Option<Option<u64>> {
    let bases = [("0x", 16), ("0b", 2), ("0o", 8)];
    let based = bases
        .iter()
        .find_map(|(prefix, base)| Some((plain.strip_prefix(prefix)?, *base)));
    let octal = plain.len() > 1 && plain.starts_with('0');
    let (digits, base) = based.unwrap_or((plain, if octal { 8 } else { 10 }));
    if digits.is_empty() || !digits.chars().all(|char| char.is_digit(base)) {
        return None;
    }
    Some(u64::from_str_radix(digits, base).ok())
}

/// An underscore stands between two digits, or between the base and a digit.
fn underscores_fit(digits: &str) -> bool {
    let fits = |pair: &[u8]| match pair {
        [b'_', after] => after.is_ascii_hexdigit(),
        [before, b'_'] => before.is_ascii_alphanumeric(),
        _ => true,
    };
    !digits.starts_with('_') && !digits.ends_with('_') && digits.as_bytes().windows(2).all(fits)
}

fn decimal_float(plain: &str) -> Option<f64> {
    let allowed = |char: char| char.is_ascii_digit() || matches!(char, '.' | 'e' | '+' | '-');
    if !plain.chars().all(allowed) {
        return None;
    }
    let float: f64 = plain.parse().ok()?;
    float.is_finite().then_some(float)
}

/// `1.8p3`, whose exponent is of two.
fn hex_float(hex: &str) -> Option<f64> {
    let (mantissa, exponent) = hex.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 13 {
        return None;
    }
    // At most 13 digits of four bits: a double holds them all.
    let value = u64::from_str_radix(&digits, 16).ok()? as f64;
    let exponent: i32 = exponent.parse().ok()?;
    let shift = exponent.checked_sub(i32::try_from(fraction.len() * 4).ok()?)?;
    let float = value * 2f64.powi(shift);
    float.is_finite().then_some(float)
}

/// `'x'`: the number of a character.
pub(crate) fn character(quoted: &str) -> Option<i64> {
    let inner = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut bytes = Vec::new();
    let (number, rest) = escape_or_char(inner, '\'', &mut bytes)?;
    rest.is_empty().then_some(number.into())
}

/// `"x"`: the bytes that it stands for.
pub(crate) fn text(quoted: &str) -> Option<Arc<[u8]>> {
    let mut rest = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::new();
    while !rest.is_empty() {
        rest = escape_or_char(rest, '"', &mut bytes)?.1;
    }
    Some(bytes.into())
}

/// `` `x` ``: as it is, but for carriage returns.
pub(crate) fn raw(quoted: &str) -> Arc<[u8]> {
    quoted.replace(['`', '\r'], "").into_bytes().into()
}

/// Takes one character off; says its number, and writes its bytes.
fn escape_or_char<'a>(text: &'a str, quote: char, bytes: &mut Vec<u8>) -> Option<(u32, &'a str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == quote {
        return None;
    }
    if first != '\\' {
        push(bytes, first);
        return Some((first.into(), chars.as_str()));
    }
    let kind = chars.next()?;
    let rest = chars.as_str();
    let byte = match kind {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        '\'' | '"' if kind == quote => u8::try_from(kind).ok()?,
        'x' => return coded(rest, 2, 16, bytes, true),
        'u' => return coded(rest, 4, 16, bytes, false),
        'U' => return coded(rest, 8, 16, bytes, false),
        '0'..='7' => return coded(text.get(1..)?, 3, 8, bytes, true),
        _ => return None,
    };
    bytes.push(byte);
    Some((byte.into(), rest))
}

/// A character by its number: a byte, or a code point.
fn coded<'a>(
    text: &'a str,
    len: usize,
    base: u32,
    bytes: &mut Vec<u8>,
    byte: bool,
) -> Option<(u32, &'a str)> {
    let (digits, rest) = text.split_at_checked(len)?;
    if !digits.chars().all(|char| char.is_digit(base)) {
        return None;
    }
    let number = u32::from_str_radix(digits, base).ok()?;
    match byte {
        true => bytes.push(u8::try_from(number).ok()?),
        false => push(bytes, char::from_u32(number)?),
    }
    Some((number, rest))
}

fn push(bytes: &mut Vec<u8>, char: char) {
    bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
}
