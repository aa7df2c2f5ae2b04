//! `format` and `formatlist`.

use super::super::bounds::{Exhausted, MAX_RANGE};
use super::super::eval::convert;
use super::super::eval::value::{Number, Val};
use super::args::{arg, text};
use super::strings::bounded;
use super::{Context, Function, MANY, Outcome, encoding};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::moving("format", (1, MANY), format),
    Function::moving("formatlist", (1, MANY), formatlist),
];

/// One `%…` of a format.
#[derive(Default)]
struct Verb {
    minus: bool,
    plus: bool,
    space: bool,
    zero: bool,
    sharp: bool,
    width: usize,
    precision: Option<usize>,
    index: Option<usize>,
    letter: char,
}

fn format(_: &Context<'_>, args: &[Val]) -> Outcome {
    if arg(args, 0).has_runtime() {
        return Err("the format itself is known at run time only".into());
    }
    let (text, runtime) = write(&text(args, 0)?, args.get(1..).unwrap_or(&[]))?;
    bounded(text.len())?;
    Ok(Val::maybe_runtime(text, runtime))
}

fn formatlist(context: &Context<'_>, args: &[Val]) -> Outcome {
    let lists = args.iter().filter_map(|arg| match arg {
        Val::List(list) => Some(list.items.len()),
        _ => None,
    });
    let lengths: Vec<usize> = lists.collect();
    let count = lengths.first().copied().unwrap_or(1);
    if lengths.iter().any(|len| *len != count) {
        return Err("the lists differ in length".into());
    }
    let mut results = Vec::new();
    let mut size = 0_usize;
    for at in 0..count {
        let row: Vec<Val> = args
            .iter()
            .map(|arg| match arg {
                Val::List(list) => list.items.get(at).cloned().unwrap_or(Val::Null),
                other => other.clone(),
            })
            .collect();
        let result = format(context, &row)?;
        size = size.saturating_add(result.weight());
        bounded(size)?;
        results.push(result);
    }
    Ok(Val::list(results)?)
}

fn write(format: &str, args: &[Val]) -> Result<(String, bool), String> {
    let mut out = String::new();
    let mut runtime = false;
    let mut next = 0;
    let mut used = 0;
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(rest.get(..at).unwrap_or(""));
        let (verb, after) = parse_verb(rest.get(at + 1..).unwrap_or(""))?;
        rest = after;
        if verb.letter == '%' {
            out.push('%');
            continue;
        }
        let index = verb.index.unwrap_or(next);
        let missing = || format!("there is no argument for %{}", verb.letter);
        let val = args.get(index).ok_or_else(missing)?;
        let (text, of_runtime) = one(&verb, val)?;
        if out.len() + text.len() > super::super::bounds::MAX_VALUE {
            return Err(Exhausted::MESSAGE.to_owned());
        }
        out.push_str(&text);
        runtime |= of_runtime;
        next = index + 1;
        used = used.max(next);
    }
    out.push_str(rest);
    if used < args.len() {
        let message = format!("{} arguments are given, but {used} are used", args.len());
        return Err(message);
    }
    Ok((out, runtime))
}

/// The verb after a percent sign, and the text after it.
fn parse_verb(text: &str) -> Result<(Verb, &str), String> {
    let mut verb = Verb::default();
    let mut chars = text.char_indices().peekable();
    let mut in_precision = false;
    while let Some((at, c)) = chars.next() {
        match c {
            '-' => verb.minus = true,
            '+' => verb.plus = true,
            ' ' => verb.space = true,
            '#' => verb.sharp = true,
            '0' if verb.width == 0 && !in_precision => verb.zero = true,
            '.' => {
                in_precision = true;
                verb.precision = Some(0);
            }
            '0'..='9' => {
                let digit = c.to_digit(10).unwrap_or(0) as usize;
                let number = if in_precision {
                    verb.precision.unwrap_or(0)
                } else {
                    verb.width
                };
                let number = number * 10 + digit;
                if number > MAX_RANGE {
                    return Err("a width in the format is too large".to_owned());
                }
                if in_precision {
                    verb.precision = Some(number)
                } else {
                    verb.width = number
                }
            }
            '[' => {
                let inner = text.get(at + 1..).unwrap_or("");
                let (digits, _) = inner
                    .split_once(']')
                    .ok_or("\"[\" without \"]\" in the format")?;
                let index: usize = digits.parse().map_err(|_| "a bad number in \"[…]\"")?;
                verb.index = Some(index.checked_sub(1).ok_or("arguments count from 1")?);
                for _ in 0..=digits.len() {
                    chars.next();
                }
            }
            letter => {
                verb.letter = letter;
                let end = at + letter.len_utf8();
                return Ok((verb, text.get(end..).unwrap_or("")));
            }
        }
    }
    Err("the format ends within a \"%\"".to_owned())
}

/// One argument as a verb writes it, and whether it holds a run-time reference.
fn one(verb: &Verb, val: &Val) -> Result<(String, bool), String> {
    let plain = verb.width == 0 && verb.precision.is_none() && !verb.sharp;
    if val.has_runtime() && !(plain && matches!(verb.letter, 's' | 'v')) {
        let letter = verb.letter;
        return Err(format!(
            "%{letter} cannot be applied to what is known at run time only"
        ));
    }
    match verb.letter {
        's' => {
            let (text, runtime) = convert::to_text(val)?;
            Ok((pad(verb, cut(verb, text), false), runtime))
        }
        'q' => {
            let (text, _) = convert::to_text(val)?;
            Ok((
                pad(
                    verb,
                    encoding::json_text(&Val::text(cut(verb, text)))?,
                    false,
                ),
                false,
            ))
        }
        'v' if verb.sharp => Ok((pad(verb, encoding::json_text(val)?, false), false)),
        'v' => match val {
            Val::Null => Ok((pad(verb, "null".to_owned(), false), false)),
            Val::List(_) | Val::Map(_) => Ok((
                pad(verb, encoding::json_text(val)?, false),
                val.has_runtime(),
            )),
            Val::Number(_) => Ok((pad(verb, val_text(val)?, true), false)),
            _ => {
                let (text, runtime) = convert::to_text(val)?;
                Ok((pad(verb, cut(verb, text), false), runtime))
            }
        },
        't' => Ok((pad(verb, convert::bool_of(val)?.to_string(), false), false)),
        'd' => {
            let number = convert::number_of(val)?;
            let whole = number.as_i64().unwrap_or(number.as_f64() as i64);
            Ok((
                pad(
                    verb,
                    sign(verb, whole < 0, whole.unsigned_abs().to_string()),
                    true,
                ),
                false,
            ))
        }
        'b' | 'o' | 'x' | 'X' => radix(verb, val).map(|text| (text, false)),
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' => float(verb, val).map(|text| (text, false)),
        letter => Err(format!(
            "unknown verb %{letter}; known are %s %q %v %t %d %b %o %x %X %f %e %g"
        )),
    }
}

fn val_text(val: &Val) -> Result<String, String> {
    convert::to_text(val).map(|(text, _)| text)
}

fn radix(verb: &Verb, val: &Val) -> Result<String, String> {
    if let (Val::Text(text), 'x' | 'X') = (val, verb.letter) {
        let hex = text.text.bytes().map(|byte| match verb.letter {
            'x' => format!("{byte:02x}"),
            _ => format!("{byte:02X}"),
        });
        return Ok(pad(verb, hex.collect(), false));
    }
    let number = convert::int_of(val)?;
    let size = number.unsigned_abs();
    let digits = match verb.letter {
        'b' => format!("{size:b}"),
        'o' => format!("{size:o}"),
        'x' => format!("{size:x}"),
        _ => format!("{size:X}"),
    };
    Ok(pad(verb, sign(verb, number < 0, digits), true))
}

fn float(verb: &Verb, val: &Val) -> Result<String, String> {
    let number = convert::number_of(val)?;
    let size = number.as_f64().abs();
    let precision = verb.precision.unwrap_or(6);
    let digits = match verb.letter {
        'f' | 'F' => format!("{size:.precision$}"),
        'e' | 'E' => exponent(&format!("{size:.precision$e}")),
        _ => Number::from_f64(size).to_string(),
    };
    let digits = if verb.letter.is_uppercase() {
        digits.to_uppercase()
    } else {
        digits
    };
    Ok(pad(verb, sign(verb, number.as_f64() < 0.0, digits), true))
}

/// An exponent has a sign and two digits at least.
fn exponent(text: &str) -> String {
    let Some((digits, exponent)) = text.split_once('e') else {
        return text.to_owned();
    };
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

fn sign(verb: &Verb, negative: bool, digits: String) -> String {
    match (negative, verb.plus, verb.space) {
        (true, _, _) => format!("-{digits}"),
        (false, true, _) => format!("+{digits}"),
        (false, false, true) => format!(" {digits}"),
        _ => digits,
    }
}

fn cut(verb: &Verb, text: String) -> String {
    match verb.precision {
        Some(count) => text.chars().take(count).collect(),
        None => text,
    }
}

fn pad(verb: &Verb, text: String, number: bool) -> String {
    let missing = verb.width.saturating_sub(text.chars().count());
    if missing == 0 {
        return text;
    }
    if verb.minus {
        return text + &" ".repeat(missing);
    }
    if !(verb.zero && number) {
        return " ".repeat(missing) + &text;
    }
    let (sign, digits) = match text.strip_prefix(['-', '+', ' ']) {
        Some(digits) => text.split_at(text.len() - digits.len()),
        None => ("", text.as_str()),
    };
    format!("{sign}{}{digits}", "0".repeat(missing))
}
