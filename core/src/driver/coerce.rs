//! Values as the job language reads them: what one kind can be made of another.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::model::value::Value;
use crate::text::{NotADuration, parse_duration};
use crate::time::Span;

/// The text of a value, where the job language would make one of it.
pub(super) fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(v) => Some(Cow::Owned(v.to_string())),
        Value::Int(v) => Some(Cow::Owned(v.to_string())),
        Value::Float(bits) => Some(Cow::Owned(f64::from_bits(*bits).to_string())),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}

/// The boolean of a value, where the job language would make one of it.
pub(super) fn bool_of(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(v) => Some(*v),
        Value::String(text) => match text.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        Value::Null | Value::Int(_) | Value::Float(_) | Value::List(_) | Value::Map(_) => None,
    }
}

/// The whole number of a value, where the job language would make one of it.
pub(super) fn whole_of(value: &Value) -> Option<i64> {
    match value {
        Value::Int(v) => Some(*v),
        // `8e0` is a whole number too; its text has no fraction then.
        Value::Float(bits) => f64::from_bits(*bits).to_string().parse().ok(),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    }
}

/// A duration; the empty text is the same as none.
pub(super) fn span_of(text: &str) -> Result<Span, NotADuration> {
    if text.is_empty() {
        return Ok(Span::ZERO);
    }
    parse_duration(text)
}

/// The blocks of a value: itself, or the items of the list that a job file's blocks become.
pub(super) fn blocks_of(value: &Value) -> Option<Vec<&BTreeMap<String, Value>>> {
    match value {
        Value::Map(map) => Some(vec![map]),
        Value::List(list) => list.iter().map(Value::as_map).collect(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => None,
    }
}

/// The parts of `label:port`.
pub fn port_pair(text: &str) -> Option<(&str, u16)> {
    let (label, port) = text.split_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    (!label.is_empty()).then_some((label, port))
}
