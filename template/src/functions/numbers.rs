//! Numbers.

use std::cmp::Ordering;

use super::Param::{Any, Number};
use super::{Args, Function, Result, function, types};
use crate::error::Fault;
use crate::eval::cx::Cx;
use crate::value::{UintType, Value};

pub(super) const TABLE: &[Function] = &[
    function(
        "add",
        &[Number, Number],
        "the sum of two numbers",
        |_, args| {
            arithmetic(args, i64::checked_add, u64::checked_add, |one, other| {
                one + other
            })
        },
    ),
    function(
        "subtract",
        &[Number, Number],
        "the second number less the first",
        |_, args| {
            arithmetic(args, i64::checked_sub, u64::checked_sub, |one, other| {
                one - other
            })
        },
    ),
    function(
        "multiply",
        &[Number, Number],
        "the product of two numbers",
        |_, args| {
            arithmetic(args, i64::checked_mul, u64::checked_mul, |one, other| {
                one * other
            })
        },
    ),
    function(
        "divide",
        &[Number, Number],
        "the second number divided by the first",
        |_, args| {
            arithmetic(args, i64::checked_div, u64::checked_div, |one, other| {
                one / other
            })
        },
    ),
    function(
        "modulo",
        &[Number, Number],
        "what remains of the second number divided by the first",
        |_, args| {
            whole(args)?;
            arithmetic(args, i64::checked_rem, u64::checked_rem, |one, other| {
                one % other
            })
        },
    ),
    function(
        "minimum",
        &[Number, Number],
        "the smaller of two numbers",
        |_, args| extreme(args, Ordering::Less),
    ),
    function(
        "maximum",
        &[Number, Number],
        "the larger of two numbers",
        |_, args| extreme(args, Ordering::Greater),
    ),
];

fn least<T: Ord>(one: T, other: T) -> Option<T> {
    Some(one.min(other))
}

fn most<T: Ord>(one: T, other: T) -> Option<T> {
    Some(one.max(other))
}

/// Whichever number is less, or greater, than the other.
fn extreme(args: Args<'_>, wanted: Ordering) -> Result {
    let (one, other) = (args.get(1)?, args.get(0)?);
    let order = match (one, other) {
        (Value::Float(_), _) | (_, Value::Float(_)) => {
            types::float(one).partial_cmp(&types::float(other))
        }
        _ => Some(args.int(1)?.cmp(&args.int(0)?)),
    };
    let chosen = if order == Some(wanted) { one } else { other };
    Ok(match chosen {
        Value::Int(int, _) => Value::int64(*int),
        other => other.clone(),
    })
}

fn whole(args: Args<'_>) -> Result<()> {
    match args.0.iter().any(|arg| matches!(arg, Value::Float(_))) {
        true => Err(Fault::failed("it takes whole numbers")),
        false => Ok(()),
    }
}

/// The second argument with the first: what a pipeline gives comes last.
fn arithmetic(
    args: Args<'_>,
    ints: fn(i64, i64) -> Option<i64>,
    uints: fn(u64, u64) -> Option<u64>,
    floats: fn(f64, f64) -> f64,
) -> Result {
    let none = || Fault::failed("the result does not fit, or was divided by zero");
    match (args.get(1)?, args.get(0)?) {
        (Value::Float(one), other) => Ok(Value::Float(floats(*one, types::float(other)))),
        (one, Value::Float(other)) => Ok(Value::Float(floats(types::float(one), *other))),
        (Value::Uint(one, _), Value::Uint(other, _)) => {
            let found = uints(*one, *other).ok_or_else(none)?;
            Ok(Value::Uint(found, UintType::Uint64))
        }
        _ => ints(args.int(1)?, args.int(0)?)
            .map(Value::int64)
            .ok_or_else(none),
    }
}

pub(super) const SPRIG: &[Function] = &[
    function(
        "sprig_add",
        &[],
        "the sum of all, as whole numbers",
        |_, args| fold(args, 0, i64::checked_add),
    )
    .and_any(Any),
    function("sprig_add1", &[Any], "one more", |_, args| {
        fold(args, 1, i64::checked_add)
    }),
    function(
        "sprig_sub",
        &[Any, Any],
        "the first less the second",
        |_, args| {
            fold(
                Args(args.from(1)),
                types::int(args.get(0)?),
                i64::checked_sub,
            )
        },
    ),
    function("sprig_mul", &[Any], "the product of all", |_, args| {
        fold(args, 1, i64::checked_mul)
    })
    .and_any(Any),
    function(
        "sprig_div",
        &[Any, Any],
        "the first divided by the second, as whole numbers",
        |_, args| {
            fold(
                Args(args.from(1)),
                types::int(args.get(0)?),
                i64::checked_div,
            )
        },
    ),
    function(
        "sprig_mod",
        &[Any, Any],
        "what remains of the first divided by the second",
        |_, args| {
            fold(
                Args(args.from(1)),
                types::int(args.get(0)?),
                i64::checked_rem,
            )
        },
    ),
    function(
        "sprig_max",
        &[Any],
        "the largest, as a whole number",
        |_, args| fold(args, i64::MIN, most),
    )
    .and_any(Any),
    function(
        "sprig_min",
        &[Any],
        "the smallest, as a whole number",
        |_, args| fold(args, i64::MAX, least),
    )
    .and_any(Any),
    function(
        "sprig_addf",
        &[],
        "the sum of all, as fractions",
        |_, args| Ok(Value::Float(args.0.iter().map(types::float).sum())),
    )
    .and_any(Any),
    function(
        "sprig_mulf",
        &[Any],
        "the product of all, as fractions",
        |_, args| Ok(Value::Float(args.0.iter().map(types::float).product())),
    )
    .and_any(Any),
    function(
        "sprig_floor",
        &[Any],
        "the whole number below",
        |_, args| Ok(Value::Float(types::float(args.get(0)?).floor())),
    ),
    function("sprig_ceil", &[Any], "the whole number above", |_, args| {
        Ok(Value::Float(types::float(args.get(0)?).ceil()))
    }),
    function(
        "sprig_round",
        &[Any, Any],
        "rounded to as many digits after the point",
        round,
    ),
];

fn fold(args: Args<'_>, first: i64, with: fn(i64, i64) -> Option<i64>) -> Result {
    let mut found = first;
    for arg in args.0 {
        let next = with(found, types::int(arg));
        found =
            next.ok_or_else(|| Fault::failed("the result does not fit, or was divided by zero"))?;
    }
    Ok(Value::int64(found))
}

fn round(_: &mut Cx<'_>, args: Args<'_>) -> Result {
    let digits = i32::try_from(args.int(1)?.clamp(-300, 300)).unwrap_or_default();
    let scale = 10f64.powi(digits);
    let scaled = types::float(args.get(0)?) * scale;
    let fraction = scaled - scaled.trunc();
    let rounded = if fraction >= 0.5 {
        scaled.ceil()
    } else {
        scaled.floor()
    };
    Ok(Value::Float(rounded / scale))
}
