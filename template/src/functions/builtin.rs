//! What Go's templates know by themselves.

use super::Param::{Any, Text};
use super::{Args, Function, Result, Run, function};
use crate::error::Fault;
use crate::eval::cx::Cx;
use crate::format;
use crate::value::{UintType, Value};

pub(super) const TABLE: &[Function] = &[
    Function {
        name: "and",
        takes: &[Any],
        more: Some((Any, usize::MAX)),
        description: "the first value that is false, or the last; later ones are not evaluated",
        run: Run::And,
        cheap: true,
    },
    Function {
        name: "or",
        takes: &[Any],
        more: Some((Any, usize::MAX)),
        description: "the first value that is true, or the last; later ones are not evaluated",
        run: Run::Or,
        cheap: true,
    },
    function(
        "not",
        &[Any],
        "whether the value is false: empty, zero or nil",
        |_, args| Ok(Value::Bool(!args.get(0)?.is_true())),
    )
    .cheap(),
    function(
        "len",
        &[Any],
        "the length of a text in bytes, of a list or of a map",
        len,
    )
    .cheap(),
    function(
        "index",
        &[Any],
        "the entry of a list, map or text at each index in turn",
        index,
    )
    .cheap()
    .and_any(Any),
    function(
        "slice",
        &[Any],
        "a slice of a text or list: from one index up to another",
        slice,
    )
    .and_up_to(3, Any),
    function(
        "print",
        &[],
        "all values as one text, with spaces between what is no text",
        print,
    )
    .cheap()
    .and_any(Any),
    function("printf", &[Text], "values by a format of Go's", printf)
        .cheap()
        .and_any(Any),
    function(
        "println",
        &[],
        "all values with spaces between them, and a new line",
        println,
    )
    .cheap()
    .and_any(Any),
];

fn len(_: &mut Cx<'_>, args: Args<'_>) -> Result {
    let len = match args.get(0)? {
        Value::Text(text) => text.len(),
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.len(),
        other => {
            let message = format!("{} has no length", other.type_name());
            return Err(Fault::failed(message));
        }
    };
    Ok(Value::size(len))
}

/// A place in something of a length.
fn position(of: &Value, most: usize) -> Result<usize> {
    let at = match of {
        Value::Int(int, _) => usize::try_from(*int).ok(),
        Value::Uint(uint, _) => usize::try_from(*uint).ok(),
        other => {
            let message = format!("{} is not a list index", other.type_name());
            return Err(Fault::failed(message));
        }
    };
    let outside = || Fault::failed("the index is out of range: compare it with len first");
    at.filter(|at| *at <= most).ok_or_else(outside)
}

fn index(_: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut value = args.get(0)?.clone();
    for key in args.from(1) {
        let last = |len: usize| match len.checked_sub(1) {
            Some(last) => position(key, last),
            None => Err(Fault::failed("there is nothing in it")),
        };
        value = match &value {
            Value::List(list) => {
                let at = last(list.items.len())?;
                list.items.get(at).cloned().unwrap_or(Value::Nil)
            }
            Value::Text(text) => {
                let byte = text.get(last(text.len())?).copied().unwrap_or_default();
                Value::Uint(byte.into(), UintType::Uint8)
            }
            Value::Map(map) => match key {
                Value::Text(key) => map.get(key).unwrap_or_else(|| map.missing()),
                other => {
                    let message = format!("a key must be text, and is {}", other.type_name());
                    return Err(Fault::failed(message));
                }
            },
            other => {
                let message = format!("{} has no entries", other.type_name());
                return Err(Fault::failed(message));
            }
        };
    }
    Ok(value)
}

fn slice(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let len = match args.get(0)? {
        Value::Text(text) => text.len(),
        Value::List(list) => list.items.len(),
        other => {
            let message = format!("{} has no parts", other.type_name());
            return Err(Fault::failed(message));
        }
    };
    let bound = |at: usize, or: usize| args.0.get(at).map_or(Ok(or), |of| position(of, len));
    let (from, to) = (bound(1, 0)?, bound(2, len)?);
    let capacity = bound(3, len)?;
    if from > to || to > capacity {
        return Err(Fault::failed("the part ends before it begins"));
    }
    if args.len() > 3 && matches!(args.get(0)?, Value::Text(_)) {
        return Err(Fault::failed(
            "a text has no capacity: leave the last index out",
        ));
    }
    match args.get(0)? {
        Value::List(list) => cx.list(
            list.items.get(from..to).unwrap_or_default().to_vec(),
            list.of,
        ),
        Value::Text(text) => cx.text(text.get(from..to).unwrap_or_default()),
        _ => Ok(Value::Nil),
    }
}

fn print(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut out = cx.sink();
    format::print(&mut out, args.0)?;
    cx.text(out.into_bytes())
}

fn println(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut out = cx.sink();
    format::println(&mut out, args.0)?;
    cx.text(out.into_bytes())
}

fn printf(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut out = cx.sink();
    format::printf(&mut out, args.text(0)?, args.from(1))?;
    cx.text(out.into_bytes())
}
