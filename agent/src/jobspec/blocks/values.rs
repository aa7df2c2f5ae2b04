//! From a value to what an attribute holds.

use std::collections::BTreeMap;

use drover_core::model::value::Value;
use drover_core::text::{parse_duration, quote};
use drover_core::time::Span as Duration;
use hcl_edit::Span;
use hcl_edit::expr::Expression;

use super::super::error::did_you_mean;
use super::super::eval::scope::Scope;
use super::super::eval::value::{Number, Val};
use super::super::eval::{Evaluator, Fault, convert};
use super::super::source::At;
use super::Kind;

/// Whole-number durations below this are more likely meant as seconds than as nanoseconds.
const SUSPICIOUS: i64 = 1_000_000;

/// The value of an attribute as JSON; none where it is null, which is as good as not written.
pub(super) fn read(
    on: &Evaluator<'_>,
    name: &str,
    kind: Kind,
    expr: &Expression,
    scope: &Scope,
) -> Result<Option<Value>, Fault> {
    let at = expr.span();
    let val = on.eval(expr, scope)?;
    if matches!(val, Val::Null) {
        return Ok(None);
    }
    on.spend(&at, val.weight())?;
    let named = |why: String| on.fault(&at, format!("{name}: {why}"));
    let value = match kind {
        Kind::Text => Value::String(convert::to_text(&val).map_err(named)?.0),
        Kind::Bool => Value::Bool(convert::bool_of(&val).map_err(named)?),
        Kind::Int => Value::Int(convert::int_of(&val).map_err(named)?),
        Kind::Span => Value::Int(span(on, name, &val, &at)?),
        Kind::Texts => texts(&val).map_err(named)?,
        Kind::Pairs => pairs(&val, convert_text).map_err(named)?,
        Kind::TextLists => pairs(&val, texts).map_err(named)?,
        Kind::Choice(choices) => return choice(on, name, choices, &val, &at),
        Kind::Choices(choices) => choice_of_each(on, name, choices, &val, &at)?,
        Kind::Ignored(_) => return Ok(None),
    };
    Ok(Some(value))
}

fn span(on: &Evaluator<'_>, name: &str, val: &Val, at: &At) -> Result<i64, Fault> {
    let named = |why: String| on.fault(at, format!("{name}: {why}"));
    match val {
        Val::Number(Number::Int(nanos)) => {
            if (1..SUSPICIOUS).contains(nanos) {
                let shown = Duration(*nanos);
                let message = format!("{name} = {nanos} is {shown}: numbers are nanoseconds");
                on.warn(
                    on.fault(at, message)
                        .help(format!("Write \"{nanos}s\" for seconds.")),
                );
            }
            Ok(*nanos)
        }
        Val::Text(text) if !text.runtime => {
            let span = parse_duration(&text.text).map(|span| span.0);
            let shown = |why| format!("{} is no duration: {why}", quote(&text.text));
            let fault = |why| named(shown(why)).help("Write it like \"90s\" or \"1h30m\".");
            span.map_err(fault)
        }
        other => Err(named(format!(
            "a duration such as \"30s\" is needed, not {}",
            other.kind()
        ))),
    }
}

fn convert_text(val: &Val) -> Result<Value, String> {
    Ok(Value::String(convert::to_text(val)?.0))
}

fn texts(val: &Val) -> Result<Value, String> {
    let Val::List(list) = val else {
        return Err(format!("a list of strings is needed, not {}", val.kind()));
    };
    let items: Result<_, _> = list.items.iter().map(convert_text).collect();
    Ok(Value::List(items?))
}

fn pairs(val: &Val, inner: fn(&Val) -> Result<Value, String>) -> Result<Value, String> {
    let Val::Map(map) = val else {
        return Err(format!("a map is needed, not {}", val.kind()));
    };
    let mut entries = BTreeMap::new();
    for (key, val) in map.entries.iter() {
        let value = inner(val).map_err(|why| format!("\"{key}\": {why}"))?;
        entries.insert(key.clone(), value);
    }
    Ok(Value::Map(entries))
}

/// A list of texts, each of which is to be one of the choices.
fn choice_of_each(
    on: &Evaluator<'_>,
    name: &str,
    choices: &[&str],
    val: &Val,
    at: &At,
) -> Result<Value, Fault> {
    let Val::List(list) = val else {
        let why = format!("{name}: a list of strings is needed, not {}", val.kind());
        return Err(on.fault(at, why));
    };
    let mut chosen = Vec::new();
    for item in list.items.iter() {
        chosen.extend(choice(on, name, choices, item, at)?);
    }
    Ok(Value::List(chosen))
}

fn choice(
    on: &Evaluator<'_>,
    name: &str,
    choices: &[&str],
    val: &Val,
    at: &At,
) -> Result<Option<Value>, Fault> {
    let (text, _) = convert::to_text(val).map_err(|why| on.fault(at, format!("{name}: {why}")))?;
    if text.is_empty() {
        return Ok(None);
    }
    if choices.contains(&text.as_str()) {
        return Ok(Some(Value::String(text)));
    }
    let fault = on.fault(at, format!("{name} cannot be \"{text}\""));
    let near = did_you_mean(&text, choices.iter().copied());
    Err(fault.help(near.unwrap_or_else(|| format!("It is one of {}.", choices.join(", ")))))
}
