//! What differs between two states, as paths and values.

use serde::Serialize;
use serde_json::Value;

/// One place at which two states differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Where: `allocs.<id>.phase`.
    pub path: String,
    /// What was there; none if nothing.
    pub before: Option<Value>,
    /// What is there now; none if nothing.
    pub after: Option<Value>,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = &self.path;
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                write!(f, "{path}: {} -> {}", short(before), short(after))
            }
            (None, Some(after)) => write!(f, "{path}: new, {}", short(after)),
            (Some(before), None) => write!(f, "{path}: gone, was {}", short(before)),
            (None, None) => write!(f, "{path}"),
        }
    }
}

/// The longest value that is shown as a whole.
const LONGEST: usize = 160;

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        return text;
    }
    let start: String = text.chars().take(LONGEST).collect();
    format!("{start}...")
}

/// A state as JSON; an error's words if it has none.
pub fn json<T: Serialize>(state: &T) -> Value {
    serde_json::to_value(state).unwrap_or_else(|error| Value::String(error.to_string()))
}

/// What differs, in the order of the paths.
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(&mut found, String::new(), Some(before), Some(after));
    found
}

fn compare(found: &mut Vec<Change>, path: String, before: Option<&Value>, after: Option<&Value>) {
    if before == after {
        return;
    }
    let below = |name: &str| match path.as_str() {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    };
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for (name, value) in old {
                compare(found, below(name), Some(value), new.get(name));
            }
            for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                compare(found, below(name), None, Some(value));
            }
        }
        // A map whose keys are no text is a list of pairs: compared by its keys.
        (Some(Value::Array(old)), Some(Value::Array(new)))
            if are_pairs(old) && are_pairs(new) && !(old.is_empty() && new.is_empty()) =>
        {
            for pair in old {
                let other = new.iter().find(|other| other[0] == pair[0]);
                compare(
                    found,
                    below(&key(pair)),
                    Some(&pair[1]),
                    other.map(|other| &other[1]),
                );
            }
            let known = |pair: &Value| old.iter().any(|other| other[0] == pair[0]);
            for pair in new.iter().filter(|pair| !known(pair)) {
                compare(found, below(&key(pair)), None, Some(&pair[1]));
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for at in 0..old.len().max(new.len()) {
                compare(found, format!("{path}[{at}]"), old.get(at), new.get(at));
            }
        }
        (before, after) => found.push(Change {
            path,
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

/// Whether every item is a list of two of which the first is a name.
fn are_pairs(items: &[Value]) -> bool {
    items
        .iter()
        .all(|item| match item.as_array().map(Vec::as_slice) {
            Some([key, _]) => key.is_object() || key.is_string(),
            _ => false,
        })
}

fn key(pair: &Value) -> String {
    match &pair[0] {
        Value::String(text) => text.clone(),
        Value::Object(map) => {
            let parts: Vec<String> = map.values().map(plain).collect();
            parts.join("/")
        }
        other => other.to_string(),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join("/"),
        Value::Object(map) => map.values().map(plain).collect::<Vec<_>>().join("/"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(before: Value, after: Value) -> Vec<String> {
        changes(&before, &after)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn diff_names_only_differences() {
        let before = json!({"a": {"b": 1, "c": [1, 2]}, "gone": "x", "same": [true]});
        let after = json!({"a": {"b": 2, "c": [1, 3, 4]}, "new": null, "same": [true]});
        assert_eq!(
            shown(before, after),
            [
                "a.b: 1 -> 2",
                "a.c[1]: 2 -> 3",
                "a.c[2]: new, 4",
                "gone: gone, was \"x\"",
                "new: new, null",
            ]
        );
    }

    #[test]
    fn lists_of_pairs_are_compared_by_their_keys() {
        let before = json!({"jobs": [[{"namespace": "default", "id": "a"}, 1]]});
        let after = json!({
            "jobs": [[{"namespace": "default", "id": "0"}, 5], [{"namespace": "default", "id": "a"}, 2]]
        });
        let shown = shown(before, after);
        assert!(
            shown.iter().any(|line| line.ends_with(": 1 -> 2")),
            "{shown:?}"
        );
        assert!(
            shown.iter().any(|line| line.ends_with(": new, 5")),
            "{shown:?}"
        );
        assert_eq!(shown.len(), 2);
    }
}
