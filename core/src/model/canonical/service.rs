//! What a service leaves open, and what its checks inherit.
//!
//! Services are kept as they were written, and programs write them differently: those that have Nomad's types name
//! every field of a service and its checks, also those that say nothing. These are left out first, so that a job is
//! the same whoever hands it in.

use super::fill;
use crate::model::value::Value;
use crate::time::SECOND;

/// Fields of checks whose zero is a mistake, of which their author is told.
const LENGTHS: [&str; 2] = ["Interval", "Timeout"];

/// Fills in a service whose default name is this, of this task; empty for the group's.
pub(super) fn fill_service(service: &mut Value, name: &str, task: &str) {
    leave_out_nothings(service);
    leave_out_what_follows(service, task);
    fill(
        service,
        &[
            ("Name", Value::from(name)),
            ("Provider", Value::from("consul")),
            ("AddressMode", Value::from("auto")),
            ("OnUpdate", Value::from("require_healthy")),
        ],
    );
    let Value::Map(fields) = service else { return };
    let on_update = fields.get("OnUpdate").cloned().unwrap_or_default();
    let restart = fields.get("CheckRestart").cloned();
    let Some(Value::List(checks)) = fields.get_mut("Checks") else {
        return;
    };
    for check in checks {
        fill(check, &[("OnUpdate", on_update.clone())]);
        inherit_restart(check, restart.as_ref());
    }
}

/// Leaves out what a service says of nothing, and its checks. Names that somebody chose (`Meta`, headers) stay.
fn leave_out_nothings(service: &mut Value) {
    let Value::Map(fields) = service else { return };
    if let Some(Value::List(checks)) = fields.get_mut("Checks") {
        for check in checks {
            keep_what_says_something(check);
        }
    }
    keep_what_says_something(service);
}

/// Leaves out what is shown of every service and follows from where it stands.
fn leave_out_what_follows(service: &mut Value, task: &str) {
    let Value::Map(fields) = service else { return };
    fields.retain(|name, value| match (name.as_str(), value.as_str()) {
        ("Namespace", _) | ("Cluster", Some("default")) => false,
        ("TaskName", Some(of)) => task.is_empty() || of != task,
        _ => true,
    });
}

fn keep_what_says_something(block: &mut Value) {
    let Value::Map(fields) = block else { return };
    if let Some(Value::Map(restart)) = fields.get_mut("CheckRestart") {
        restart.retain(|_, value| !says_nothing(value));
    }
    // A block without fields is one nevertheless: it takes its defaults.
    fields.retain(|name, value| {
        let is_block = name == "CheckRestart" && *value != Value::Null;
        is_block || LENGTHS.contains(&name.as_str()) || !says_nothing(value)
    });
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::String(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Int(_) | Value::Float(_) => false,
    }
}

/// What a check says of restarts, completed by what its service says.
fn inherit_restart(check: &mut Value, of_service: Option<&Value>) {
    let Value::Map(fields) = check else { return };
    if let Some(Value::Map(of_service)) = of_service {
        let own = fields.entry("CheckRestart".to_owned());
        let own = own.or_insert_with(|| Value::Map(Default::default()));
        let of_service = of_service
            .iter()
            .map(|(key, value)| (key.as_str(), value.clone()));
        fill(own, &of_service.collect::<Vec<_>>());
    }
    if let Some(own) = fields.get_mut("CheckRestart") {
        fill(
            own,
            &[
                ("Grace", Value::Int(SECOND)),
                ("IgnoreWarnings", Value::Bool(false)),
            ],
        );
    }
}
