//! Tests through the public interface.

mod blocks;
mod errors;
mod expressions;
mod functions;
mod fuzz;
mod json;
mod tasks;
mod variables;

use super::{Options, Parsed, parse};

/// Reads a job file that must be good.
fn good(text: &str) -> Parsed {
    good_with(text, &Options::default())
}

fn good_with(text: &str, options: &Options) -> Parsed {
    match parse(text, "test.nomad", options) {
        Ok(parsed) => parsed,
        Err(errors) => panic!("{errors}"),
    }
}

/// What is said of a job file that must be bad.
fn bad(text: &str) -> String {
    bad_with(text, &Options::default())
}

fn bad_with(text: &str, options: &Options) -> String {
    match parse(text, "test.nomad", options) {
        Ok(parsed) => panic!("{:#?}", parsed.job),
        Err(errors) => errors.to_string(),
    }
}

/// The job's JSON, without what is empty or was not written.
fn json(parsed: &Parsed) -> serde_json::Value {
    let mut written = serde_json::to_value(&parsed.job).unwrap_or_default();
    let plain = serde_json::to_value(drover_core::model::job::Job::default()).unwrap_or_default();
    if let (Some(written), Some(plain)) = (written.as_object_mut(), plain.as_object()) {
        written.retain(|key, value| plain.get(key) != Some(value));
    }
    without_empty(&mut written);
    written
}

fn without_empty(value: &mut serde_json::Value) {
    let empty = |value: &serde_json::Value| match value {
        serde_json::Value::Null => true,
        serde_json::Value::String(text) => text.is_empty(),
        serde_json::Value::Array(items) => items.is_empty(),
        serde_json::Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match value {
        serde_json::Value::Object(fields) => {
            fields.values_mut().for_each(without_empty);
            fields.retain(|_, value| !empty(value));
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(without_empty),
        _ => {}
    }
}

/// The value that an expression has in a driver's configuration.
fn value(expr: &str) -> serde_json::Value {
    let text = in_config(expr);
    let parsed = good(&text);
    let config = &parsed.job.task_groups[0].tasks[0].config;
    serde_json::to_value(config.get("x")).unwrap_or_default()
}

/// A job whose only task has the expression in its configuration, in line 1.
fn in_config(expr: &str) -> String {
    format!(
        "job \"j\" {{\n group \"g\" {{\n task \"t\" {{\n config {{\n x = {expr}\n}}\n}}\n}}\n}}\n"
    )
}
