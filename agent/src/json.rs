//! Values of JSON, and what they are as types.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// What a value is as a type.
///
/// It goes through text: most types are read from text elsewhere, and to read them from values as well would put the
/// code for that into the program a second time, which for the types of jobs alone is some megabytes.
///
/// # Errors
/// It is of another shape: what is wrong with it, in the words of the decoder.
pub(crate) fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    let text = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| without_place(&error))
}

/// What a decoder says, without the line and column of a text that nobody wrote.
fn without_place(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    words.strip_suffix(&place).unwrap_or(&words).to_owned()
}

/// Removes the fields that are `null`, all the way down.
pub(crate) fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn value_of_another_shape_is_refused_without_a_place() {
        let read = typed::<BTreeMap<String, u64>>(&json!({ "count": "three" }));
        assert_eq!(
            read,
            Err("invalid type: string \"three\", expected u64".to_owned())
        );
        let read = typed::<BTreeMap<String, u64>>(&json!({ "count": 3 }));
        assert_eq!(read.unwrap()["count"], 3);
    }
}
