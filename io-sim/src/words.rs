//! Anything of the core's that has names, in a few words: those of its variants and fields.

use serde::Serialize;
use serde_json::Value;

/// No more letters than this.
const MOST: usize = 100;

/// The names of its variants and fields, and what in them is short. What is empty is left out.
pub(crate) fn words<T: Serialize>(value: &T) -> String {
    let mut all = Vec::new();
    gather(&serde_json::to_value(value).unwrap_or_default(), &mut all);
    let mut text = all.join(" ");
    if let Some((end, _)) = text.char_indices().nth(MOST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn gather(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(false) => {}
        Value::Bool(true) => all.push("true".to_owned()),
        Value::Number(number) => all.push(number.to_string()),
        Value::String(text) => all.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, all)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let before = all.len();
                all.push(spoken(name));
                gather(value, all);
                // A field says nothing without a value, and a variant does.
                if all.len() == before + 1 && !name.starts_with(char::is_uppercase) {
                    all.pop();
                }
            }
        }
    }
}

/// `WatchDriver` and `watch_driver` as `watch driver`.
fn spoken(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variants_and_fields_with_values_are_named() {
        let report =
            json!({ "WatchDriver": { "op": 4, "name": "raw_exec", "why": null, "new": false } });
        assert_eq!(words(&report), "watch driver name raw_exec op 4");
        assert_eq!(words(&json!({ "Stopped": {} })), "stopped");
        assert!(words(&json!("x".repeat(200))).chars().count() == MOST + 1);
    }
}
