//! Reading texts as other values.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::Param::Text;
use super::{Args, Function, Result, function};
use crate::error::Fault;
use crate::eval::cx::Cx;
use crate::options::VALUE_DEPTH;
use crate::value::{Of, UintType, Value};

pub(super) const TABLE: &[Function] = &[
    function(
        "parseBool",
        &[Text],
        "true or false; nothing is false",
        |_, args| {
            parsed(
                args,
                Value::Bool(false),
                "true or false",
                |text| match text {
                    "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(Value::Bool(true)),
                    "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(Value::Bool(false)),
                    _ => None,
                },
            )
        },
    ),
    function(
        "parseFloat",
        &[Text],
        "a fraction; nothing is zero",
        |_, args| {
            parsed(args, Value::Float(0.0), "a number", |text| {
                float(text).map(Value::Float)
            })
        },
    ),
    function(
        "parseInt",
        &[Text],
        "a whole number; nothing is zero",
        |_, args| {
            parsed(args, Value::int64(0), "a whole number that fits", |text| {
                text.parse().ok().map(Value::int64)
            })
        },
    ),
    function(
        "parseUint",
        &[Text],
        "a whole number that is not negative; nothing is zero",
        |_, args| {
            let uint = |uint| Value::Uint(uint, UintType::Uint64);
            parsed(
                args,
                uint(0),
                "a whole number that fits and is not negative",
                |text| {
                    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                    text.parse().ok().filter(|_| digits).map(uint)
                },
            )
        },
    ),
    function(
        "parseJSON",
        &[Text],
        "the value of a JSON text; an empty text is an empty map",
        parse_json,
    ),
    function(
        "parseYAML",
        &[Text],
        "the value of a YAML text; an empty text is an empty map",
        parse_yaml,
    ),
];

fn parsed(
    args: Args<'_>,
    empty: Value,
    wanted: &str,
    parse: impl FnOnce(&str) -> Option<Value>,
) -> Result {
    let text = args.str(0)?;
    if text.is_empty() {
        return Ok(empty);
    }
    parse(&text).ok_or_else(|| Fault::failed(format!("the text is not {wanted}")))
}

/// A fraction as Go reads one.
pub(super) fn float(text: &str) -> Option<f64> {
    let number = text.trim_start_matches(['+', '-']);
    let allowed = |char: char| char.is_ascii_digit() || matches!(char, '.' | 'e' | 'E' | '+' | '-');
    let named = ["inf", "infinity", "nan"]
        .iter()
        .any(|name| number.eq_ignore_ascii_case(name));
    if !named && !number.chars().all(allowed) {
        return None;
    }
    let float: f64 = text.parse().ok()?;
    (named || float.is_finite()).then_some(float)
}

/// Room for a tree that a text may describe.
fn check_size(cx: &mut Cx<'_>, text: &[u8]) -> Result<()> {
    cx.spend(u64::try_from(text.len() / 8).unwrap_or(u64::MAX))?;
    cx.grow(text.len().saturating_mul(4))
}

fn parse_json(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let text = args.text(0)?;
    if text.is_empty() {
        return cx.map(BTreeMap::new(), Of::Any);
    }
    json(cx, text)
}

pub(super) fn json(cx: &mut Cx<'_>, text: &[u8]) -> Result {
    check_size(cx, text)?;
    let text = String::from_utf8_lossy(text);
    let json: Json = serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Fault::failed(format!(
            "the text is no JSON, at its line {line}, column {column}"
        ))
    })?;
    value(cx, json, true)
}

fn parse_yaml(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let text = args.str(0)?;
    if text.is_empty() {
        return cx.map(BTreeMap::new(), Of::Any);
    }
    check_size(cx, text.as_bytes())?;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: VALUE_DEPTH,
            flow_nesting_limit: VALUE_DEPTH,
        },
    };
    let json: Json = serde_saphyr::from_str_with_options(&text, options).map_err(|error| {
        let position = error.location().map(|at| (at.line(), at.column()));
        Fault::failed(match position {
            Some((line, column)) => {
                format!("the text is no YAML, at its line {line}, column {column}")
            }
            None => "the text is no YAML that can be read here".into(),
        })
    })?;
    value(cx, json, false)
}

/// What a template is given as its data: whole numbers stay whole, as they are in Go's structures.
pub(crate) fn data(cx: &mut Cx<'_>, json: Json) -> Result {
    value(cx, json, false)
}

/// A tree of JSON as a value; its numbers are all fractions, as Go reads them.
fn value(cx: &mut Cx<'_>, json: Json, fractions: bool) -> Result {
    cx.spend(1)?;
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(bool) => Value::Bool(bool),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) if !fractions => Value::int(int),
            (None, Some(uint)) if !fractions => Value::Uint(uint, UintType::Uint64),
            _ => Value::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => cx.text(text)?,
        Json::Array(items) => {
            let items: Result<Vec<_>> = items
                .into_iter()
                .map(|item| value(cx, item, fractions))
                .collect();
            cx.anys(items?)?
        }
        Json::Object(entries) => {
            let mut found = BTreeMap::new();
            for (key, json) in entries {
                cx.grow(key.len())?;
                found.insert(key.into_bytes().into(), value(cx, json, fractions)?);
            }
            cx.map(found, Of::Any)?
        }
    })
}
