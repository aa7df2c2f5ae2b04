//! From one kind of value to another, where nothing is lost.

use super::value::{Number, Val};

/// The text of a primitive value, and whether it holds run-time references.
pub(crate) fn to_text(val: &Val) -> Result<(String, bool), String> {
    match val {
        Val::Text(text) => Ok((text.text.to_string(), text.runtime)),
        Val::Number(number) => Ok((number.to_string(), false)),
        Val::Bool(value) => Ok((value.to_string(), false)),
        other => Err(format!("a string is needed, not {}", other.kind())),
    }
}

/// The value as text.
pub(crate) fn text_of(val: &Val) -> Result<Val, String> {
    let (text, runtime) = to_text(val)?;
    Ok(Val::maybe_runtime(text, runtime))
}

/// The value as a number.
pub(crate) fn number_of(val: &Val) -> Result<Number, String> {
    match val {
        Val::Number(number) => Ok(*number),
        Val::Text(text) if !text.runtime => {
            Number::parse(&text.text).ok_or_else(|| format!("\"{}\" is not a number", text.text))
        }
        other => Err(format!("a number is needed, not {}", other.kind())),
    }
}

/// The value as a whole number.
pub(crate) fn int_of(val: &Val) -> Result<i64, String> {
    let number = number_of(val)?;
    let whole = number.as_i64();
    whole.ok_or_else(|| format!("a whole number is needed, not {number}"))
}

/// The value as true or false.
pub(crate) fn bool_of(val: &Val) -> Result<bool, String> {
    match val {
        Val::Bool(value) => Ok(*value),
        Val::Text(text) if &*text.text == "true" => Ok(true),
        Val::Text(text) if &*text.text == "false" => Ok(false),
        other => Err(format!("true or false is needed, not {}", other.kind())),
    }
}
