//! Whether an object fulfils an expression.

use drover_core::text::quote;

use super::Row;
use super::select::{Picked, Unpicked, pick_below};
use super::syntax::{Each, Expr, Match, Selector, Test};

/// What the names of a condition stand for.
pub(super) struct Scope<'a> {
    row: &'a dyn Row,
    /// Of the innermost condition last.
    bound: Vec<(String, Picked)>,
}

impl<'a> Scope<'a> {
    /// Only the object.
    pub(super) fn of(row: &'a dyn Row) -> Scope<'a> {
        Scope {
            row,
            bound: Vec::new(),
        }
    }

    fn pick(&self, selector: &Selector) -> Result<Option<Picked>, String> {
        let path = selector.0.as_slice();
        let bound = path.first().and_then(|first| {
            let mut bound = self.bound.iter().rev();
            let (_, value) = bound.find(|(name, _)| name == first)?;
            Some(pick_below(value, path, 1))
        });
        match bound.unwrap_or_else(|| self.row.pick(path)) {
            Ok(picked) => Ok(Some(picked)),
            Err(Unpicked::Missing) => Ok(None),
            Err(why @ Unpicked::Impossible { .. }) => {
                let path = selector.path();
                Err(format!("error finding value in datum: {path} {why}"))
            }
        }
    }
}

/// Whether the expression holds.
///
/// # Errors
/// Something cannot be compared so.
pub(super) fn evaluate(expr: &Expr, scope: &Scope<'_>) -> Result<bool, String> {
    match expr {
        Expr::Or(parts) => {
            for part in parts {
                if evaluate(part, scope)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Expr::And(parts) => {
            for part in parts {
                if !evaluate(part, scope)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Expr::Not(inner) => Ok(!evaluate(inner, scope)?),
        Expr::Match(one) => matches(one, scope),
        Expr::Each(each) => holds_for_each(each, scope),
    }
}

fn matches(one: &Match, scope: &Scope<'_>) -> Result<bool, String> {
    let holds = match scope.pick(&one.selector)? {
        // What is not there is empty, and not set, and nothing else.
        None => matches!(one.test, Test::Empty | Test::Nil),
        Some(value) => {
            holds(&one.test, &value).map_err(|why| format!("{} of {}", why, one.selector.path()))?
        }
    };
    Ok(holds != one.negated)
}

/// Whether a value passes a test.
fn holds(test: &Test, value: &Picked) -> Result<bool, String> {
    let cannot = |what: &str| {
        let kind = value.kind();
        Err(format!("cannot perform {what} operations on type {kind}"))
    };
    match (test, value) {
        (Test::Nil, value) => Ok(matches!(value, Picked::Nil | Picked::Zero)),
        (Test::Equals(wanted), Picked::List(_) | Picked::Map(_) | Picked::Object(_)) => {
            let words = format!("equality (with {})", quote(wanted));
            cannot(&words)
        }
        (Test::Equals(wanted), value) => equals(wanted, value),
        (Test::Empty, Picked::Nil | Picked::Zero) => Ok(true),
        (Test::Empty, Picked::Text(text)) => Ok(text.is_empty()),
        (Test::Empty, Picked::List(list)) => Ok(list.is_empty()),
        (Test::Empty, Picked::Map(map)) => Ok(map.is_empty()),
        (Test::Empty, _) => cannot("is empty"),
        (Test::Contains(_) | Test::Matches(_), Picked::Nil) => Ok(false),
        (Test::Contains(part), Picked::Zero) => Ok(part.is_empty()),
        (Test::Matches(regex), Picked::Zero) => Ok(regex.is_match("")),
        (Test::Contains(part), Picked::Text(text)) => Ok(text.contains(part)),
        (Test::Contains(key), Picked::Map(map)) => Ok(map.contains_key(key)),
        (Test::Contains(element), Picked::List(list)) => {
            for one in list {
                if equals(element, one)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Test::Contains(_), _) => cannot("in/contains"),
        (Test::Matches(regex), Picked::Text(text)) => Ok(regex.is_match(text)),
        (Test::Matches(_), _) => cannot("matches"),
    }
}

/// Whether a value is what was written, read as the value's type.
fn equals(wanted: &str, value: &Picked) -> Result<bool, String> {
    let not = |kind: &str| format!("{} is no {kind} to compare with the value", quote(wanted));
    match value {
        Picked::Nil => Ok(false),
        Picked::Zero => Ok(matches!(wanted, "" | "0" | "false")),
        Picked::Text(text) => Ok(text == wanted),
        Picked::Bool(value) => match wanted {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(*value),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(!*value),
            _ => Err(not("bool")),
        },
        Picked::Int(value) => match wanted.parse::<i128>() {
            Ok(wanted) => Ok(*value == wanted),
            Err(_) => Err(not("whole number")),
        },
        Picked::Float(value) => match wanted.parse::<f64>() {
            Ok(wanted) => Ok(value.total_cmp(&wanted).is_eq()),
            Err(_) => Err(not("number")),
        },
        Picked::List(_) | Picked::Map(_) | Picked::Object(_) => Err(format!(
            "{} cannot be compared with a {}",
            quote(wanted),
            value.kind()
        )),
    }
}

fn holds_for_each(each: &Each, scope: &Scope<'_>) -> Result<bool, String> {
    let elements: Vec<(Picked, Picked)> = match scope.pick(&each.selector)? {
        None | Some(Picked::Nil | Picked::Zero) => Vec::new(),
        Some(Picked::List(list)) => {
            let positions = (0..).map(Picked::Int);
            positions.zip(list).collect()
        }
        Some(Picked::Map(map)) => map
            .into_iter()
            .map(|(key, value)| (Picked::Text(key), value))
            .collect(),
        Some(other) => {
            let path = each.selector.path();
            let kind = other.kind();
            return Err(format!("{path} is a {kind}, and neither a list nor a map"));
        }
    };
    let mut inner = Scope {
        row: scope.row,
        bound: scope.bound.clone(),
    };
    let outer = inner.bound.len();
    for (key, value) in elements {
        inner.bound.truncate(outer);
        if let Some(name) = &each.names.only {
            let of_map = matches!(key, Picked::Text(_));
            let only = if of_map { key.clone() } else { value.clone() };
            inner.bound.push((name.clone(), only));
        }
        if let Some(name) = &each.names.key {
            inner.bound.push((name.clone(), key));
        }
        if let Some(name) = &each.names.value {
            inner.bound.push((name.clone(), value));
        }
        if evaluate(&each.condition, &inner)? != each.all {
            return Ok(!each.all);
        }
    }
    Ok(each.all)
}
