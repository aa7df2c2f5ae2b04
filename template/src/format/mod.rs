//! Values as text, as Go's fmt shows them.

mod float;
mod leaf;
mod printf;
pub(crate) mod quote;
mod sink;

pub(crate) use float::json_float;
pub(crate) use printf::printf;
pub(crate) use sink::Sink;

use crate::error::Fault;
use crate::value::Value;
use printf::Spec;

/// The value of an action.
pub(crate) fn show(out: &mut Sink, value: &Value) -> Result<(), Fault> {
    match value {
        Value::Absent | Value::Nil => out.push("<no value>"),
        Value::Text(text) => out.push(text),
        Value::Count(..) | Value::Scratch => {
            let message = format!("{} cannot be shown", value.type_name());
            Err(Fault::failed(message))
        }
        _ => plain(out, value),
    }
}

/// A value as `%v` shows it.
pub(crate) fn plain(out: &mut Sink, value: &Value) -> Result<(), Fault> {
    printf::value(out, &Spec::default(), 'v', value, 0)
}

/// `print`: spaces stand between two things neither of which is a text.
pub(crate) fn print(out: &mut Sink, values: &[Value]) -> Result<(), Fault> {
    let mut before_is_text = true;
    for value in values {
        let is_text = matches!(value, Value::Text(_));
        if !before_is_text && !is_text {
            out.push(" ")?;
        }
        plain(out, value)?;
        before_is_text = is_text;
    }
    Ok(())
}

/// `println`: spaces stand between all, and a new line at the end.
pub(crate) fn println(out: &mut Sink, values: &[Value]) -> Result<(), Fault> {
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push(" ")?;
        }
        plain(out, value)?;
    }
    out.push("\n")
}
