//! Single values by a verb: numbers, texts, and the mark of a verb that does not fit.

use super::float;
use super::printf::Spec;
use super::quote;
use super::sink::Sink;
use crate::error::Fault;
use crate::value::Value;

/// A text at its width.
pub(super) fn pad(out: &mut Sink, spec: &Spec, shown: impl AsRef<[u8]>) -> Result<(), Fault> {
    let shown = shown.as_ref();
    let missing = match spec.width {
        None => 0,
        Some(width) => width.saturating_sub(String::from_utf8_lossy(shown).chars().count()),
    };
    if spec.minus {
        out.push(shown)?;
        return out.repeat(' ', missing);
    }
    out.repeat(if spec.zero { '0' } else { ' ' }, missing)?;
    out.push(shown)
}

/// The mark of a verb that does not fit its value, which is shown by the same flags.
fn bad(out: &mut Sink, spec: &Spec, verb: char, of: &Value) -> Result<(), Fault> {
    out.push(format!("%!{verb}({}=", of.type_name()))?;
    let spec = Spec {
        sharp: false,
        ..spec.clone()
    };
    super::printf::value(out, &spec, 'v', of, 0)?;
    out.push(")")
}

pub(super) fn bool(out: &mut Sink, spec: &Spec, verb: char, bool: bool) -> Result<(), Fault> {
    match verb {
        't' | 'v' => pad(out, spec, bool.to_string()),
        _ => bad(out, spec, verb, &Value::Bool(bool)),
    }
}

pub(super) fn text(out: &mut Sink, spec: &Spec, verb: char, text: &[u8]) -> Result<(), Fault> {
    match verb {
        'v' if spec.sharp => pad(out, spec, quote::quoted(text, false)),
        's' | 'v' => pad(out, spec, cut(spec, text)),
        'q' => {
            let text = cut(spec, text);
            let raw = std::str::from_utf8(text).is_ok_and(|text| {
                !text.contains(['`', '\u{7f}', '\u{feff}'])
                    && text.chars().all(|char| char == '\t' || !char.is_control())
            });
            match (spec.sharp && raw, std::str::from_utf8(text)) {
                (true, Ok(text)) => pad(out, spec, format!("`{text}`")),
                _ => pad(out, spec, quote::quoted(text, spec.plus)),
            }
        }
        'x' | 'X' => hex(out, spec, verb, text),
        _ => bad(out, spec, verb, &Value::text(text)),
    }
}

/// A precision counts characters.
fn cut<'a>(spec: &Spec, text: &'a [u8]) -> &'a [u8] {
    let Some(precision) = spec.precision else {
        return text;
    };
    let mut end = 0;
    let mut left = precision;
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            if left == 0 {
                return text.get(..end).unwrap_or(text);
            }
            left -= 1;
            end += char.len_utf8();
        }
        for _ in chunk.invalid() {
            if left == 0 {
                return text.get(..end).unwrap_or(text);
            }
            left -= 1;
            end += 1;
        }
    }
    text
}

/// Each byte by two digits.
fn hex(out: &mut Sink, spec: &Spec, verb: char, text: &[u8]) -> Result<(), Fault> {
    let text = text
        .get(..spec.precision.unwrap_or(text.len()))
        .unwrap_or(text);
    let prefix = if spec.sharp {
        format!("0{verb}")
    } else {
        String::new()
    };
    let mut shown = String::new();
    for (at, byte) in text.iter().enumerate() {
        if at == 0 || spec.space {
            shown.push_str(if at == 0 { "" } else { " " });
            shown.push_str(&prefix);
        }
        shown.push_str(&match verb {
            'X' => format!("{byte:02X}"),
            _ => format!("{byte:02x}"),
        });
    }
    pad(out, spec, shown)
}

pub(super) fn int(
    out: &mut Sink,
    spec: &Spec,
    verb: char,
    int: i128,
    of: &Value,
) -> Result<(), Fault> {
    let magnitude = int.unsigned_abs();
    let digits = match verb {
        'v' if spec.sharp && matches!(of, Value::Uint(..)) => format!("0x{magnitude:x}"),
        'd' | 'v' => magnitude.to_string(),
        'b' => format!("{magnitude:b}"),
        'o' | 'O' => format!("{magnitude:o}"),
        'x' => format!("{magnitude:x}"),
        'X' => format!("{magnitude:X}"),
        'c' => return pad(&mut *out, &plain_width(spec), char_of(int).to_string()),
        'q' => {
            let shown = quote::quoted_char(char_of(int), spec.plus);
            return pad(out, &plain_width(spec), shown);
        }
        'U' => return unicode(out, spec, int),
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 's' | 't' => return bad(out, spec, verb, of),
        _ => return bad(out, spec, verb, of),
    };
    let prefix = match verb {
        'b' if spec.sharp => "0b",
        'o' if spec.sharp && !digits.starts_with('0') => "0",
        'O' => "0o",
        'x' if spec.sharp => "0x",
        'X' if spec.sharp => "0X",
        _ => "",
    };
    number(out, spec, int < 0, prefix, &digits)
}

fn plain_width(spec: &Spec) -> Spec {
    Spec {
        precision: None,
        ..spec.clone()
    }
}

fn char_of(int: i128) -> char {
    let number = u32::try_from(int).ok();
    number
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn unicode(out: &mut Sink, spec: &Spec, int: i128) -> Result<(), Fault> {
    let digits = spec.precision.unwrap_or(4).clamp(4, 64);
    // A number below zero is shown as its bits.
    let bits = int.rem_euclid(1 << 64);
    let mut shown = format!("U+{bits:0digits$X}");
    if spec.sharp {
        let char = char_of(int);
        if quote::is_printable(char) {
            shown.push_str(&format!(" '{char}'"));
        }
    }
    pad(
        out,
        &Spec {
            zero: false,
            ..spec.clone()
        },
        shown,
    )
}

/// Digits with a sign, as many as a precision or a width with zeros wants.
fn number(
    out: &mut Sink,
    spec: &Spec,
    negative: bool,
    prefix: &str,
    digits: &str,
) -> Result<(), Fault> {
    let sign = sign(spec, negative);
    let least = match (spec.precision, spec.width) {
        (Some(precision), _) => precision,
        (None, Some(width)) if spec.zero => width.saturating_sub(sign.len()),
        (None, _) => 0,
    };
    let plain = Spec {
        zero: false,
        ..spec.clone()
    };
    if spec.precision == Some(0) && digits == "0" {
        return pad(out, &plain, "");
    }
    let zeros = least.saturating_sub(digits.len());
    let zeros = "0".repeat(zeros);
    pad(out, &plain, format!("{sign}{prefix}{zeros}{digits}"))
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

pub(super) fn float(out: &mut Sink, spec: &Spec, verb: char, value: f64) -> Result<(), Fault> {
    let precision = match verb {
        'e' | 'E' | 'f' | 'F' => Some(spec.precision.unwrap_or(6)),
        'g' | 'G' | 'v' => spec.precision,
        _ => return bad(out, spec, verb, &Value::Float(value)),
    };
    let verb = if verb == 'v' { 'g' } else { verb };
    let digits = float::float(value, verb, precision, spec.sharp);
    let negative = value.is_sign_negative() && !value.is_nan();
    if !value.is_finite() {
        let digits = digits.trim_start_matches('+');
        let sign = if value.is_nan() {
            sign(spec, false)
        } else {
            sign(&positive(spec, negative), negative)
        };
        let plain = Spec {
            zero: false,
            ..spec.clone()
        };
        return pad(out, &plain, format!("{sign}{digits}"));
    }
    let sign = sign(spec, negative);
    let zeros = match spec.width {
        Some(width) if spec.zero => width.saturating_sub(sign.len() + digits.len()),
        _ => 0,
    };
    let zeros = "0".repeat(zeros);
    let plain = Spec {
        zero: false,
        ..spec.clone()
    };
    pad(out, &plain, format!("{sign}{zeros}{digits}"))
}

/// Infinity always has a sign.
fn positive(spec: &Spec, negative: bool) -> Spec {
    Spec {
        plus: !negative,
        ..spec.clone()
    }
}
