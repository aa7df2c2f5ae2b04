//! A state without its repetitions: every task of an allocation carries its whole job, and the
//! ledger has every record once more. Parts are told apart by short prints of their texts: the texts
//! themselves, one for each part of a part, would be many times the state.

use std::collections::BTreeMap;

use drover_core::record::SAME;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Smaller parts are not worth a reference.
const SMALLEST: usize = 96;

/// `value` with what stands in it more than once taken out into a table, as
/// [`drover_core::record`] describes.
pub(super) fn pack(mut value: Value) -> Value {
    let mut table = Vec::new();
    if let (Some(sketch), _) = Sketch::of(&value, &mut Sha256::new()) {
        let mut parts = BTreeMap::new();
        count(&sketch, &mut parts);
        replace(&mut value, &sketch, &mut parts, &mut table);
    }
    json!({ "shared": table, "value": value })
}

/// What stands for a part's text: two of the same stand for the same.
type Print = [u8; 16];

/// A part, and those in it, in the order in which they stand there.
struct Sketch {
    print: Print,
    /// Whether it is worth a reference, or would be taken for one.
    counts: bool,
    parts: Vec<Sketch>,
}

/// How often a part stands there, and its place in the table once it has one.
#[derive(Default)]
struct Part {
    times: u32,
    place: Option<usize>,
}

impl Sketch {
    /// The sketch of a value, none if it has no parts; and the length of its text.
    fn of(value: &Value, around: &mut Sha256) -> (Option<Sketch>, usize) {
        let has_parts = value.is_object() || value.is_array();
        if !has_parts {
            let text = value.to_string();
            around.update(text.as_bytes());
            around.update(b";");
            return (None, text.len());
        }
        let mut hash = Sha256::new();
        let mut length = 2;
        let mut parts = Vec::new();
        match value {
            Value::Object(map) => {
                hash.update(b"{");
                for (name, child) in map {
                    // With its length, so that no two maps give the same bytes.
                    hash.update(name.len().to_le_bytes());
                    hash.update(name.as_bytes());
                    let (part, of_child) = Sketch::of(child, &mut hash);
                    length += name.len() + of_child + 4;
                    parts.extend(part);
                }
            }
            Value::Array(items) => {
                hash.update(b"[");
                for child in items {
                    hash.update(b",");
                    let (part, of_child) = Sketch::of(child, &mut hash);
                    length += of_child + 1;
                    parts.extend(part);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        let mut print = Print::default();
        print.copy_from_slice(&hash.finalize()[..16]);
        around.update(b"#");
        around.update(print);
        let counts = length >= SMALLEST || is_reference(value);
        let sketch = Sketch {
            print,
            counts,
            parts,
        };
        (Some(sketch), length)
    }
}

fn count(sketch: &Sketch, parts: &mut BTreeMap<Print, Part>) {
    if sketch.counts {
        let part = parts.entry(sketch.print).or_default();
        part.times += 1;
        // What is in a part that was seen before goes into the table with it.
        if part.times > 1 {
            return;
        }
    }
    sketch.parts.iter().for_each(|part| count(part, parts));
}

fn replace(
    value: &mut Value,
    sketch: &Sketch,
    parts: &mut BTreeMap<Print, Part>,
    table: &mut Vec<Value>,
) {
    let part = parts.get_mut(&sketch.print).filter(|_| sketch.counts);
    if let Some(part) = part.filter(|part| part.times > 1 || is_reference(value)) {
        // Taken, not copied: what stands for it is small.
        let whole = value.take();
        let place = *part.place.get_or_insert_with(|| {
            table.push(whole);
            table.len() - 1
        });
        *value = json!({ SAME: place });
        return;
    }
    let children = children(value).filter(|child| child.is_object() || child.is_array());
    for (child, sketch) in children.zip(&sketch.parts) {
        replace(child, sketch, parts, table);
    }
}

fn is_reference(value: &Value) -> bool {
    value.as_object().is_some_and(|map| map.contains_key(SAME))
}

fn children(value: &mut Value) -> Box<dyn Iterator<Item = &mut Value> + '_> {
    match value {
        Value::Object(map) => Box::new(map.values_mut()),
        Value::Array(items) => Box::new(items.iter_mut()),
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
