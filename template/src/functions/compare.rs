//! Comparisons.

use std::cmp::Ordering;

use super::Param::Any;
use super::args::as_text;
use super::{Args, Function, Result, function};
use crate::error::Fault;
use crate::eval::cx::Cx;
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    function(
        "eq",
        &[Any, Any],
        "whether the first value is equal to any of the others",
        eq,
    )
    .and_any(Any),
    function("ne", &[Any, Any], "whether two values differ", |_, args| {
        Ok(Value::Bool(!equal(args.get(0)?, args.get(1)?)?))
    }),
    function(
        "lt",
        &[Any, Any],
        "whether the first value is less",
        |_, args| Ok(Value::Bool(order(args)?.is_lt())),
    ),
    function(
        "le",
        &[Any, Any],
        "whether the first value is less or equal",
        |_, args| Ok(Value::Bool(order(args)?.is_le())),
    ),
    function(
        "gt",
        &[Any, Any],
        "whether the first value is greater",
        |_, args| Ok(Value::Bool(order(args)?.is_gt())),
    ),
    function(
        "ge",
        &[Any, Any],
        "whether the first value is greater or equal",
        |_, args| Ok(Value::Bool(order(args)?.is_ge())),
    ),
];

fn eq(_: &mut Cx<'_>, args: Args<'_>) -> Result {
    let first = args.get(0)?;
    for other in args.from(1) {
        if equal(first, other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn int(of: &Value) -> Option<i128> {
    match of {
        Value::Int(int, _) => Some((*int).into()),
        Value::Uint(uint, _) => Some((*uint).into()),
        _ => None,
    }
}

fn cannot<T>(one: &Value, other: &Value) -> Result<T> {
    let (one, other) = (one.type_name(), other.type_name());
    let message = format!("{one} and {other} cannot be compared: convert one of them");
    Err(Fault::failed(message))
}

/// Whether two values are equal, if their types let them be compared.
fn equal(one: &Value, other: &Value) -> Result<bool> {
    if let (Some(one), Some(other)) = (int(one), int(other)) {
        return Ok(one == other);
    }
    match (one, other) {
        (Value::Nil, Value::Nil) => Ok(true),
        (Value::Nil, _) | (_, Value::Nil) => Ok(false),
        (Value::Bool(one), Value::Bool(other)) => Ok(one == other),
        (Value::Float(one), Value::Float(other)) => Ok(one == other),
        _ => match (as_text(one), as_text(other)) {
            (Some(one), Some(other)) => Ok(one == other),
            _ => cannot(one, other),
        },
    }
}

/// The order of two numbers or texts. What is not a number at all is neither less nor greater.
fn order(args: Args<'_>) -> Result<Ordering> {
    let (one, other) = (args.get(0)?, args.get(1)?);
    if let (Some(one), Some(other)) = (int(one), int(other)) {
        return Ok(one.cmp(&other));
    }
    match (one, other) {
        (Value::Float(one), Value::Float(other)) => match one.partial_cmp(other) {
            Some(order) => Ok(order),
            None => Err(Fault::failed("what is not a number has no order")),
        },
        _ => match (args.text(0), args.text(1)) {
            (Ok(one), Ok(other)) => Ok(one.cmp(other)),
            _ => cannot(one, other),
        },
    }
}
