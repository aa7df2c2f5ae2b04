//! A state without its repetitions: every task of an allocation carries its whole job, and the
//! ledger has every record once more.

use std::collections::BTreeMap;

use drover_core::record::SAME;
use serde_json::{Map, Value, json};

/// Smaller parts are not worth a reference.
const SMALLEST: usize = 96;

/// `value` with what stands in it more than once taken out into a table, as
/// [`drover_core::record`] describes.
pub(super) fn pack(mut value: Value) -> Value {
    let mut parts = BTreeMap::new();
    count(&value, &mut parts);
    let mut table = Vec::new();
    replace(&mut value, &mut parts, &mut table);
    json!({ "shared": table, "value": value })
}

/// How often a part stands there, and its place in the table once it has one.
#[derive(Default)]
struct Part {
    times: u32,
    place: Option<usize>,
}

fn count(value: &Value, parts: &mut BTreeMap<String, Part>) {
    if let Some(text) = text_of(value) {
        let part = parts.entry(text).or_default();
        part.times += 1;
        // What is in a part that was seen before goes into the table with it.
        if part.times > 1 {
            return;
        }
    }
    children(value).for_each(|child| count(child, parts));
}

fn replace(value: &mut Value, parts: &mut BTreeMap<String, Part>, table: &mut Vec<Value>) {
    let part = text_of(value).and_then(|text| parts.get_mut(&text));
    if let Some(part) = part.filter(|part| part.times > 1 || is_reference(value)) {
        let place = *part.place.get_or_insert_with(|| {
            table.push(value.clone());
            table.len() - 1
        });
        *value = json!({ SAME: place });
        return;
    }
    match value {
        Value::Object(map) => map
            .values_mut()
            .for_each(|child| replace(child, parts, table)),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|child| replace(child, parts, table)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The text of a part that is worth a reference, or that would be taken for one.
fn text_of(value: &Value) -> Option<String> {
    let has_parts = value.is_object() || value.is_array();
    let text = has_parts.then(|| value.to_string())?;
    (text.len() >= SMALLEST || is_reference(value)).then_some(text)
}

fn is_reference(value: &Value) -> bool {
    value.as_object().is_some_and(|map| map.contains_key(SAME))
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(map) => Box::new(Map::values(map)),
        Value::Array(items) => Box::new(items.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Box::new(std::iter::empty())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_there_twice_is_written_once() {
        let job = json!({ "ID": "x".repeat(100) });
        let packed = pack(json!({ "a": job, "b": [job, 1], "c": { "small": true } }));
        assert_eq!(
            packed,
            json!({
                "shared": [job],
                "value": { "a": { "$same": 0 }, "b": [{ "$same": 0 }, 1], "c": { "small": true } }
            })
        );
    }

    #[test]
    fn what_looks_like_a_reference_is_none() {
        let packed = pack(json!({ "env": { "$same": 7 } }));
        let expected = json!({ "shared": [{ "$same": 7 }], "value": { "env": { "$same": 0 } } });
        assert_eq!(packed, expected);
    }
}
