//! Functions of numbers.

use super::super::eval::value::{Number, Val};
use super::args::{int, number, text};
use super::{Context, Function, MANY, Outcome};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("abs", (1, 1), |_, args| match number(args, 0)? {
        Number::Int(value) => Ok(Val::Number(
            value
                .checked_abs()
                .map_or(Number::Float((value as f64).abs()), Number::Int),
        )),
        Number::Float(value) => float(value.abs()),
    }),
    Function::new("ceil", (1, 1), |_, args| {
        rounded(number(args, 0)?, f64::ceil)
    }),
    Function::new("floor", (1, 1), |_, args| {
        rounded(number(args, 0)?, f64::floor)
    }),
    Function::new("log", (2, 2), |_, args| {
        let (value, base) = (number(args, 0)?.as_f64(), number(args, 1)?.as_f64());
        float(value.log2() / base.log2())
    }),
    Function::new("max", (1, MANY), |_, args| extreme(args, true)),
    Function::new("min", (1, MANY), |_, args| extreme(args, false)),
    Function::new("parseint", (2, 2), parseint),
    Function::new("pow", (2, 2), |_, args| {
        let (base, power) = (number(args, 0)?, number(args, 1)?);
        if let (Number::Int(base), Number::Int(power)) = (base, power)
            && let Ok(power) = u32::try_from(power)
            && let Some(result) = base.checked_pow(power)
        {
            return Ok(Val::int(result));
        }
        float(base.as_f64().powf(power.as_f64()))
    }),
    Function::new("signum", (1, 1), |_, args| {
        let order = number(args, 0)?.compare(Number::Int(0));
        Ok(Val::int(order as i64))
    }),
];

fn rounded(number: Number, how: fn(f64) -> f64) -> Outcome {
    match number {
        Number::Int(value) => Ok(Val::int(value)),
        Number::Float(value) => float(how(value)),
    }
}

fn float(value: f64) -> Outcome {
    if value.is_finite() {
        Ok(Val::Number(Number::from_f64(value)))
    } else {
        Err("the result is not a number, or too large".into())
    }
}

fn extreme(args: &[Val], largest: bool) -> Outcome {
    let mut best = number(args, 0)?;
    for at in 1..args.len() {
        let next = number(args, at)?;
        if next.compare(best).is_gt() == largest && next.compare(best).is_ne() {
            best = next;
        }
    }
    Ok(Val::Number(best))
}

fn parseint(_: &Context<'_>, args: &[Val]) -> Outcome {
    let (digits, base) = (text(args, 0)?, int(args, 1)?);
    let base = u32::try_from(base)
        .ok()
        .filter(|base| (2..=36).contains(base));
    let base = base.ok_or("the base must be from 2 to 36")?;
    let number = i64::from_str_radix(&digits, base);
    let bad = |_| format!("\"{digits}\" is no whole number of base {base}, or too large");
    Ok(Val::int(number.map_err(bad)?))
}
