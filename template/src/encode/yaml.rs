//! Values as YAML, in blocks.

use std::cmp::Ordering;

use super::yaml_text;
use crate::error::Fault;
use crate::eval::cx::too_deep;
use crate::format::Sink;
use crate::options::VALUE_DEPTH;
use crate::value::{Shown, Text, Value};

/// Writes a document, with a new line at its end.
pub(crate) fn write(out: &mut Sink, value: &Value) -> Result<(), Fault> {
    let mut writer = Writer { out, depth: 0 };
    writer.value(value, 0, Place::Top)
}

/// What stands before a value on its line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    /// A dash.
    Item,
    /// A key.
    Entry,
}

/// What has parts, and what does not.
enum Shape {
    Scalar(String),
    Text(Text),
    List(Vec<Value>),
    Map(Vec<(Text, Value)>),
}

struct Writer<'a> {
    out: &'a mut Sink,
    depth: usize,
}

impl Writer<'_> {
    /// A value at an indentation, up to the end of its last line.
    fn value(&mut self, value: &Value, indent: usize, place: Place) -> Result<(), Fault> {
        if self.depth > VALUE_DEPTH {
            return Err(too_deep());
        }
        self.depth += 1;
        match shape(value)? {
            Shape::Scalar(scalar) => {
                self.gap(place)?;
                self.out.push(scalar)?;
                self.out.push("\n")?;
            }
            Shape::Text(text) => {
                self.gap(place)?;
                // Lines of a text stand deeper than what it belongs to.
                let deeper = if place == Place::Top { 0 } else { indent };
                yaml_text::write(self.out, &text, deeper)?;
                self.out.push("\n")?;
            }
            Shape::List(items) if items.is_empty() => {
                self.gap(place)?;
                self.out.push("[]\n")?;
            }
            Shape::Map(entries) if entries.is_empty() => {
                self.gap(place)?;
                self.out.push("{}\n")?;
            }
            Shape::List(items) => self.list(&items, indent, place)?,
            Shape::Map(entries) => self.map(entries, indent, place)?,
        }
        self.depth -= 1;
        Ok(())
    }

    fn gap(&mut self, place: Place) -> Result<(), Fault> {
        match place {
            Place::Top => Ok(()),
            Place::Item | Place::Entry => self.out.push(" "),
        }
    }

    fn list(&mut self, items: &[Value], indent: usize, place: Place) -> Result<(), Fault> {
        // A list in a map stands as deep as its key; one in a list begins on the line of the dash.
        let indent = if place == Place::Entry {
            indent.saturating_sub(2)
        } else {
            indent
        };
        for (at, item) in items.iter().enumerate() {
            self.begin(at == 0, indent, place)?;
            self.out.push("-")?;
            self.value(item, indent + 2, Place::Item)?;
        }
        Ok(())
    }

    fn map(
        &mut self,
        entries: Vec<(Text, Value)>,
        indent: usize,
        place: Place,
    ) -> Result<(), Fault> {
        for (at, (key, value)) in entries.iter().enumerate() {
            self.begin(at == 0, indent, place)?;
            yaml_text::key(self.out, key)?;
            self.out.push(":")?;
            self.value(value, indent + 2, Place::Entry)?;
        }
        Ok(())
    }

    /// The beginning of a line, or of the rest of one.
    fn begin(&mut self, first: bool, indent: usize, place: Place) -> Result<(), Fault> {
        match (first, place) {
            (true, Place::Top) => Ok(()),
            (true, Place::Item) => self.out.push(" "),
            (true, Place::Entry) => {
                self.out.push("\n")?;
                self.out.repeat(' ', indent)
            }
            (false, _) => self.out.repeat(' ', indent),
        }
    }
}

fn shape(value: &Value) -> Result<Shape, Fault> {
    Ok(match value {
        Value::Nil | Value::Absent => Shape::Scalar("null".into()),
        Value::Bool(bool) => Shape::Scalar(bool.to_string()),
        Value::Int(int, _) => Shape::Scalar(int.to_string()),
        Value::Uint(uint, _) => Shape::Scalar(uint.to_string()),
        Value::Float(float) => Shape::Scalar(number(*float)?),
        Value::Text(text) => Shape::Text(text.clone()),
        Value::List(list) => Shape::List(list.items.clone()),
        Value::Map(map) => {
            let mut entries = map.entries();
            entries.sort_by(|(one, _), (other, _)| natural(one, other));
            Shape::Map(entries)
        }
        Value::Record(record) => match &record.shown {
            Shown::Item(_) => Shape::Map(small(record.fields.iter().take(2))),
            Shown::Time(_, nanos) => Shape::Scalar(nanos.to_string()),
            Shown::Fields | Shown::Text(_) => Shape::Map(small(record.fields.iter())),
        },
        Value::Count(..) | Value::Scratch => {
            let message = format!("YAML cannot represent {}", value.type_name());
            return Err(Fault::failed(message));
        }
    })
}

/// Fields by their names in small letters.
fn small<'a>(fields: impl Iterator<Item = &'a (&'static str, Value)>) -> Vec<(Text, Value)> {
    let small = |key: &str| Text::from(key.to_lowercase().into_bytes());
    fields
        .map(|(key, value)| (small(key), value.clone()))
        .collect()
}

fn number(float: f64) -> Result<String, Fault> {
    if float.is_nan() {
        return Ok(".nan".into());
    }
    if float.is_infinite() {
        return Ok(if float > 0.0 { ".inf" } else { "-.inf" }.into());
    }
    let mut out = Sink::new(64, "a number", 64);
    crate::format::plain(&mut out, &Value::Float(float))?;
    Ok(String::from_utf8_lossy(&out.into_bytes()).into_owned())
}

/// The order of keys: numbers in them by their size, letters after what is none.
fn natural(one: &[u8], other: &[u8]) -> Ordering {
    let (one, other) = (String::from_utf8_lossy(one), String::from_utf8_lossy(other));
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let differs = one.iter().zip(&other).position(|(one, other)| one != other);
    let Some(at) = differs else {
        return one.len().cmp(&other.len());
    };
    let (left, right) = (
        one.get(at).copied().unwrap_or(' '),
        other.get(at).copied().unwrap_or(' '),
    );
    match (left.is_alphabetic(), right.is_alphabetic()) {
        (true, true) => return left.cmp(&right),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let before = one
        .iter()
        .take(at)
        .rev()
        .take_while(|char| char.is_ascii_digit());
    let inside = (left == '0' || right == '0') && before.into_iter().any(|char| *char != '0');
    let (from_left, from_right) = (digits(&one, at, inside), digits(&other, at, inside));
    from_left.cmp(&from_right).then(left.cmp(&right))
}

/// The number that begins at a place, by its length without zeros and its digits, and how many
/// digits it has. Nothing is a number without digits.
fn digits(text: &[char], at: usize, inside: bool) -> ((usize, String), usize) {
    let digits = text
        .iter()
        .skip(at)
        .take_while(|char| char.is_ascii_digit());
    let digits: String = digits.collect();
    // The zeros inside of a number count.
    let counted = if inside {
        format!("1{digits}")
    } else {
        digits.clone()
    };
    let number = counted.trim_start_matches('0').to_owned();
    ((number.len(), number), digits.len())
}
