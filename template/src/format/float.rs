//! Fractions as Go writes them.

/// More digits than any double has after its point.
const DIGITS: usize = 1100;

/// `%e`, `%f` and `%g` without sign; no precision means as few digits as tell it apart.
pub(super) fn float(value: f64, verb: char, precision: Option<usize>, sharp: bool) -> String {
    let value = value.abs();
    if !value.is_finite() {
        return if value.is_nan() { "NaN" } else { "+Inf" }.into();
    }
    let shown = match verb.to_ascii_lowercase() {
        'e' => exponential(value, precision),
        'f' => fixed(value, precision),
        _ => general(value, precision, sharp),
    };
    match verb.is_ascii_uppercase() && verb != 'F' {
        true => shown.to_ascii_uppercase(),
        false => shown,
    }
}

fn zeros(text: &mut String, precision: usize) {
    text.extend(std::iter::repeat_n('0', precision.saturating_sub(DIGITS)));
}

fn fixed(value: f64, precision: Option<usize>) -> String {
    let Some(precision) = precision else {
        return format!("{value}");
    };
    let mut shown = format!("{value:.*}", precision.min(DIGITS));
    zeros(&mut shown, precision);
    shown
}

/// With at least two digits of exponent.
fn exponential(value: f64, precision: Option<usize>) -> String {
    let shown = match precision {
        None => format!("{value:e}"),
        Some(precision) => format!("{value:.*e}", precision.min(DIGITS)),
    };
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let mut mantissa = mantissa.to_owned();
    zeros(&mut mantissa, precision.unwrap_or_default());
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn exponent_of(shown: &str) -> i32 {
    let exponent = shown.split_once('e').map(|(_, exponent)| exponent);
    exponent
        .and_then(|exponent| exponent.parse().ok())
        .unwrap_or_default()
}

/// Whichever of the others is shorter.
fn general(value: f64, precision: Option<usize>, sharp: bool) -> String {
    let digits = precision.map(|digits| digits.max(1));
    let rounded = match digits {
        None => format!("{value:e}"),
        Some(digits) => format!("{value:.*e}", (digits - 1).min(DIGITS)),
    };
    let exponent = exponent_of(&rounded);
    // What is as short as can be is judged as if it had six digits.
    let threshold = match digits {
        None => 6,
        Some(digits) => i32::try_from(digits).unwrap_or(i32::MAX),
    };
    let mantissa = rounded.split('e').next().unwrap_or_default();
    let sharp = sharp && digits.is_some();
    if exponent < -4 || exponent >= threshold {
        let short = if sharp {
            mantissa.to_owned()
        } else {
            without_zeros(mantissa)
        };
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{short}e{sign}{:02}", exponent.abs());
    }
    let after = match digits {
        None => return fixed(value, None),
        Some(digits) => i32::try_from(digits).unwrap_or(i32::MAX) - 1 - exponent,
    };
    let shown = fixed(value, usize::try_from(after).ok());
    if sharp { shown } else { without_zeros(&shown) }
}

fn without_zeros(shown: &str) -> String {
    match shown.contains('.') {
        true => shown.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => shown.to_owned(),
    }
}

/// As Go's JSON has it; nothing for what JSON cannot say.
pub(crate) fn json_float(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let magnitude = value.abs();
    let small = magnitude != 0.0 && magnitude < 1e-6;
    if !small && magnitude < 1e21 {
        return Some(format!("{value}"));
    }
    let shown = format!("{value:e}");
    Some(match shown.contains("e-") {
        true => shown,
        false => shown.replace('e', "e+"),
    })
}
