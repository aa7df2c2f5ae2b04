//! From text to values and back.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use drover_io_real::http_client::encoded;

use super::super::eval::value::{Number, Val};
use super::args::{arg, text};
use super::{Context, Function, Outcome, Refused};

/// How deep YAML may be: what reads it takes the stack for each level, and much of it.
const YAML_DEPTH: usize = 64;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("base64encode", (1, 1), |_, args| {
        Ok(Val::text(STANDARD.encode(text(args, 0)?)))
    }),
    Function::new("base64decode", (1, 1), |_, args| {
        let bytes = STANDARD
            .decode(text(args, 0)?)
            .map_err(|error| error.to_string())?;
        let decoded = String::from_utf8(bytes).map_err(|_| "the result is no UTF-8 text")?;
        Ok(Val::text(decoded))
    }),
    Function::new("csvdecode", (1, 1), csvdecode),
    Function::moving("jsonencode", (1, 1), |_, args| {
        let val = arg(args, 0);
        Ok(Val::maybe_runtime(json_text(val)?, val.has_runtime()))
    }),
    Function::new("jsondecode", (1, 1), |_, args| {
        let decoded: serde_json::Value =
            serde_json::from_str(&text(args, 0)?).map_err(|error| error.to_string())?;
        from_json(&decoded)
    }),
    Function::new("yamldecode", (1, 1), |_, args| {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_depth: YAML_DEPTH,
                flow_nesting_limit: YAML_DEPTH,
            },
        };
        let decoded: serde_json::Value =
            serde_saphyr::from_str_with_options(&text(args, 0)?, options)
                .map_err(|error| error.to_string())?;
        from_json(&decoded)
    }),
    Function::moving("yamlencode", (1, 1), |_, args| {
        let val = arg(args, 0);
        let encoded = serde_saphyr::to_string(&to_json(val)).map_err(|error| error.to_string())?;
        Ok(Val::maybe_runtime(encoded, val.has_runtime()))
    }),
    Function::new("urlencode", (1, 1), |_, args| {
        Ok(Val::text(urlencode(&text(args, 0)?)))
    }),
];

/// The value as JSON without blanks. Angle brackets and ampersands are written as escapes, so
/// that the text may stand in a web page.
pub(super) fn json_text(val: &Val) -> Result<String, String> {
    let json = serde_json::to_string(&to_json(val)).map_err(|error| error.to_string())?;
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return Ok(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            other => escaped.push(other),
        }
    }
    Ok(escaped)
}

/// The value as JSON, with its nulls.
fn to_json(val: &Val) -> serde_json::Value {
    match val {
        Val::Null => serde_json::Value::Null,
        Val::Bool(value) => (*value).into(),
        Val::Number(Number::Int(value)) => (*value).into(),
        Val::Number(Number::Float(value)) => (*value).into(),
        Val::Text(value) => value.text.to_string().into(),
        Val::List(list) => list.items.iter().map(to_json).collect(),
        Val::Map(map) => {
            let entries = map.entries.iter();
            entries
                .map(|(key, val)| (key.clone(), to_json(val)))
                .collect()
        }
    }
}

fn from_json(json: &serde_json::Value) -> Outcome {
    Ok(match json {
        serde_json::Value::Null => Val::Null,
        serde_json::Value::Bool(value) => Val::Bool(*value),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => Val::int(value),
            (None, Some(value)) => Val::Number(Number::from_f64(value)),
            (None, None) => return Err(Refused::from("a number is too large")),
        },
        serde_json::Value::String(value) => Val::text(value.as_str()),
        serde_json::Value::Array(items) => {
            let items: Result<Vec<Val>, Refused> = items.iter().map(from_json).collect();
            Val::list(items?)?
        }
        serde_json::Value::Object(entries) => {
            let mut map = BTreeMap::new();
            for (key, value) in entries {
                map.insert(key.clone(), from_json(value)?);
            }
            Val::map(map)?
        }
    })
}

/// Lines as maps, named by the first line.
fn csvdecode(_: &Context<'_>, args: &[Val]) -> Outcome {
    let whole = text(args, 0)?;
    let mut reader = csv::Reader::from_reader(whole.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let mut rows = Vec::new();
    let mut size = 0_usize;
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let cells = header.iter().zip(record.iter());
        let cells = cells.map(|(name, cell)| (name.to_owned(), Val::text(cell)));
        let row = Val::map(cells.collect())?;
        // Long names over many short lines would multiply.
        size = size.saturating_add(row.weight());
        super::strings::bounded(size)?;
        rows.push(row);
    }
    Ok(Val::list(rows)?)
}

/// As in a form: a blank is a plus.
fn urlencode(text: &str) -> String {
    encoded(text).replace("%20", "+")
}
