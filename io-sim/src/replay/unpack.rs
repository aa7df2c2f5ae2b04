//! The first frame of a segment, with its repetitions put back in.

use drover_core::record::SAME;
use serde_json::Value;

/// Puts back what stands in the table, as [`drover_core::record`] describes. A reference to
/// nothing becomes null, and whatever reads it says so.
pub(super) fn unpack(mut frame: Value) -> Value {
    let mut part = |name| frame.get_mut(name).map(Value::take).unwrap_or_default();
    let (shared, mut value) = (part("shared"), part("value"));
    put_back(&mut value, &shared);
    value
}

fn put_back(value: &mut Value, shared: &Value) {
    match value {
        Value::Object(map) => match map.get(SAME).and_then(Value::as_u64) {
            Some(place) => {
                let place = usize::try_from(place).unwrap_or(usize::MAX);
                *value = shared.get(place).cloned().unwrap_or_default();
            }
            None => map.values_mut().for_each(|child| put_back(child, shared)),
        },
        Value::Array(items) => items.iter_mut().for_each(|child| put_back(child, shared)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_become_what_they_stand_for() {
        let frame = json!({
            "shared": [{ "job": 1 }, { "$same": 7 }],
            "value": [{ "$same": 0 }, { "env": { "$same": 1 } }, { "$same": 9 }]
        });
        let whole = json!([{ "job": 1 }, { "env": { "$same": 7 } }, null]);
        assert_eq!(unpack(frame), whole);
    }
}
