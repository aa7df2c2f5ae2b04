//! Values as JSON, as Go writes it.

use crate::error::Fault;
use crate::eval::cx::too_deep;
use crate::format::{Sink, json_float};
use crate::options::VALUE_DEPTH;
use crate::value::{Shown, Value};

/// How it is to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// In lines, two spaces deeper for each level.
    pub(crate) pretty: bool,
    /// Whether `<`, `>` and `&` are escaped.
    pub(crate) html: bool,
}

pub(crate) fn write(out: &mut Sink, style: &Style, value: &Value) -> Result<(), Fault> {
    Writer { out, style: *style }.value(value, 0)
}

struct Writer<'a> {
    out: &'a mut Sink,
    style: Style,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Fault> {
        if depth > VALUE_DEPTH {
            return Err(too_deep());
        }
        match value {
            Value::Nil | Value::Absent => self.out.push("null"),
            Value::Bool(bool) => self.out.push(bool.to_string()),
            Value::Int(int, _) => self.out.push(int.to_string()),
            Value::Uint(uint, _) => self.out.push(uint.to_string()),
            Value::Float(float) => match json_float(*float) {
                Some(shown) => self.out.push(shown),
                None => Err(Fault::failed(
                    "JSON has no infinity and no \"not a number\"",
                )),
            },
            Value::Text(text) => self.text(text),
            Value::List(list) => {
                let items = list.items.iter().map(|item| (None, item.clone()));
                self.all(items, ["[", "]"], depth)
            }
            Value::Map(map) => {
                let entries = map.entries().into_iter();
                self.all(
                    entries.map(|(key, value)| (Some(key), value)),
                    ["{", "}"],
                    depth,
                )
            }
            Value::Record(record) => match &record.shown {
                Shown::Item(text) => self.text(text),
                Shown::Time(_, nanos) => self.out.push(nanos.to_string()),
                Shown::Fields | Shown::Text(_) => {
                    let fields = record.fields.iter();
                    let fields =
                        fields.map(|(key, value)| (Some(key.as_bytes().into()), value.clone()));
                    self.all(fields, ["{", "}"], depth)
                }
            },
            Value::Count(..) | Value::Scratch => {
                let message = format!("JSON cannot represent {}", value.type_name());
                Err(Fault::failed(message))
            }
        }
    }

    /// What stands between brackets.
    fn all(
        &mut self,
        entries: impl Iterator<Item = (Option<crate::value::Text>, Value)>,
        [open, close]: [&str; 2],
        depth: usize,
    ) -> Result<(), Fault> {
        self.out.push(open)?;
        let mut any = false;
        for (key, value) in entries {
            if any {
                self.out.push(",")?;
            }
            any = true;
            self.line(depth + 1)?;
            if let Some(key) = key {
                self.text(&key)?;
                self.out.push(if self.style.pretty { ": " } else { ":" })?;
            }
            self.value(&value, depth + 1)?;
        }
        if any {
            self.line(depth)?;
        }
        self.out.push(close)
    }

    fn line(&mut self, depth: usize) -> Result<(), Fault> {
        if !self.style.pretty {
            return Ok(());
        }
        self.out.push("\n")?;
        self.out.repeat(' ', 2 * depth)
    }

    fn text(&mut self, text: &[u8]) -> Result<(), Fault> {
        self.out.push("\"")?;
        for chunk in text.utf8_chunks() {
            for char in chunk.valid().chars() {
                self.char(char)?;
            }
            if !chunk.invalid().is_empty() {
                self.out.push("\\ufffd")?;
            }
        }
        self.out.push("\"")
    }

    fn char(&mut self, char: char) -> Result<(), Fault> {
        match char {
            '"' => self.out.push("\\\""),
            '\\' => self.out.push("\\\\"),
            '\u{8}' => self.out.push("\\b"),
            '\u{c}' => self.out.push("\\f"),
            '\n' => self.out.push("\\n"),
            '\r' => self.out.push("\\r"),
            '\t' => self.out.push("\\t"),
            '<' | '>' | '&' if self.style.html => {
                self.out.push(format!("\\u{:04x}", u32::from(char)))
            }
            '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                self.out.push(format!("\\u{:04x}", u32::from(char)))
            }
            _ => self.out.push_char(char),
        }
    }
}
