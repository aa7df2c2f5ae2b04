//! Operators.

use hcl_edit::expr::{BinaryOperator, UnaryOperator};

use super::convert::{bool_of, number_of};
use super::value::{Number, Val};

pub(crate) fn unary(operator: UnaryOperator, val: &Val) -> Result<Val, String> {
    match operator {
        UnaryOperator::Not => Ok(Val::Bool(!bool_of(val)?)),
        UnaryOperator::Neg => match number_of(val)? {
            Number::Int(number) => Ok(Val::Number(
                number
                    .checked_neg()
                    .map_or(Number::Float(-(number as f64)), Number::Int),
            )),
            Number::Float(number) => Ok(Val::Number(Number::from_f64(-number))),
        },
    }
}

pub(crate) fn binary(operator: BinaryOperator, left: &Val, right: &Val) -> Result<Val, String> {
    use BinaryOperator as Op;
    match operator {
        Op::Eq => Ok(Val::Bool(left == right)),
        Op::NotEq => Ok(Val::Bool(left != right)),
        Op::And => Ok(Val::Bool(bool_of(left)? && bool_of(right)?)),
        Op::Or => Ok(Val::Bool(bool_of(left)? || bool_of(right)?)),
        Op::Less | Op::LessEq | Op::Greater | Op::GreaterEq => {
            let order = number_of(left)?.compare(number_of(right)?);
            Ok(Val::Bool(match operator {
                Op::Less => order.is_lt(),
                Op::LessEq => order.is_le(),
                Op::Greater => order.is_gt(),
                _ => order.is_ge(),
            }))
        }
        Op::Plus | Op::Minus | Op::Mul | Op::Div | Op::Mod => {
            arithmetic(operator, number_of(left)?, number_of(right)?).map(Val::Number)
        }
    }
}

/// Exact where the result is a whole number of 64 bits, else as `f64`.
fn arithmetic(operator: BinaryOperator, a: Number, b: Number) -> Result<Number, String> {
    use BinaryOperator as Op;
    let divides = matches!(operator, Op::Div | Op::Mod);
    if divides && b.as_f64() == 0.0 {
        return Err("division by zero".to_owned());
    }
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        let exact = match operator {
            Op::Plus => a.checked_add(b),
            Op::Minus => a.checked_sub(b),
            Op::Mul => a.checked_mul(b),
            Op::Div if a.checked_rem(b) == Some(0) => a.checked_div(b),
            Op::Mod => a.checked_rem(b),
            _ => None,
        };
        if let Some(exact) = exact {
            return Ok(Number::Int(exact));
        }
    }
    let (a, b) = (a.as_f64(), b.as_f64());
    let result = match operator {
        Op::Plus => a + b,
        Op::Minus => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        _ => a % b,
    };
    if result.is_finite() {
        Ok(Number::from_f64(result))
    } else {
        Err("the result is too large".to_owned())
    }
}
