//! What is left out of what is handed on to others: values that people wrote into jobs and that may be
//! secrets. Names stay, so that one sees what was there.

use serde_json::Value;

/// What stands in the place of a value.
const HIDDEN: &str = "<redacted>";

/// Fields of the API whose values are left out, with all that is in them.
const SECRET: [&str; 23] = [
    "Args",
    "AuthToken",
    "BootstrapSecret",
    "Command",
    "Config",
    "EmbeddedTmpl",
    "Env",
    "Environment",
    "GetterHeaders",
    "GetterOptions",
    "GetterSource",
    "Header",
    "Items",
    "Meta",
    "Path",
    "Payload",
    "ReplicationToken",
    "SecretID",
    "Source",
    "Token",
    "VariableFlags",
    "Variables",
    "Volumes",
];

/// Leaves out what may be secret.
pub(super) fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match SECRET.contains(&name.as_str()) {
                    true => hide(value),
                    false => redact(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => *value = HIDDEN.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_are_hidden() {
        let mut answer = json!([{"AccessorID": "a", "SecretID": "hush", "Policies": ["deploy"]}]);
        redact(&mut answer);
        let hidden = json!([{"AccessorID": "a", "SecretID": HIDDEN, "Policies": ["deploy"]}]);
        assert_eq!(answer, hidden);
    }

    #[test]
    fn values_of_tasks_are_hidden_and_names_stay() {
        let mut job = json!({"ID": "web", "Meta": {"owner": "hush"}, "TaskGroups": [{"Tasks": [{
            "Name": "t", "Driver": "raw_exec", "Env": {"PASSWORD": "hush", "EMPTY": ""},
            "Config": {"args": ["-p", "hush"], "command": "/bin/hush"},
            "Templates": [{"EmbeddedTmpl": "hush", "DestPath": "local/x"}],
            "Artifacts": [{"GetterSource": "https://u:hush@h/x", "GetterHeaders": {"Auth": "hush"}}],
            "Resources": {"CPU": 100},
        }]}]});
        redact(&mut job);
        let text = job.to_string();
        assert!(!text.contains("hush"), "{text}");
        let task = &job["TaskGroups"][0]["Tasks"][0];
        assert_eq!(task["Env"], json!({"PASSWORD": HIDDEN, "EMPTY": ""}));
        assert_eq!(task["Resources"]["CPU"], 100);
        assert_eq!(
            (&job["ID"], &task["Driver"]),
            (&json!("web"), &json!("raw_exec"))
        );
    }
}
