//! Maps as TOML: simple values first, then tables.

use crate::error::Fault;
use crate::eval::cx::too_deep;
use crate::format::Sink;
use crate::options::VALUE_DEPTH;
use crate::value::{Shown, Text, Value};

pub(crate) fn write(out: &mut Sink, value: &Value) -> Result<(), Fault> {
    match entries(value) {
        Some(entries) => Writer { out }.table(&entries, &[]),
        None => Writer { out }.value(value, 0),
    }
}

/// What a table has; what is nil is left out.
fn entries(value: &Value) -> Option<Vec<(Text, Value)>> {
    let mut found = match value {
        Value::Map(map) => map.entries(),
        Value::Record(record) if record.shown == Shown::Fields => {
            let fields = record.fields.iter();
            fields
                .map(|(key, value)| (Text::from(key.as_bytes()), value.clone()))
                .collect()
        }
        Value::Record(record) if matches!(record.shown, Shown::Item(_)) => {
            let fields = record.fields.iter().take(2);
            fields
                .map(|(key, value)| (Text::from(key.as_bytes()), value.clone()))
                .collect()
        }
        _ => return None,
    };
    found.retain(|(_, value)| !matches!(value, Value::Nil));
    Some(found)
}

struct Writer<'a> {
    out: &'a mut Sink,
}

impl Writer<'_> {
    fn table(&mut self, entries: &[(Text, Value)], path: &[String]) -> Result<(), Fault> {
        if path.len() > VALUE_DEPTH {
            return Err(too_deep());
        }
        for (key, value) in entries.iter().filter(|(_, value)| !is_table(value)) {
            self.out.repeat(' ', 2 * path.len())?;
            self.out.push(key_text(key))?;
            self.out.push(" = ")?;
            self.value(value, 0)?;
            self.out.push("\n")?;
        }
        for (key, value) in entries.iter().filter(|(_, value)| is_table(value)) {
            let mut path = path.to_vec();
            path.push(key_text(key));
            match value {
                Value::List(list) => {
                    for item in &list.items {
                        self.head(&path, ["[[", "]]"])?;
                        self.table(&self::entries(item).unwrap_or_default(), &path)?;
                    }
                }
                _ => {
                    self.head(&path, ["[", "]"])?;
                    self.table(&self::entries(value).unwrap_or_default(), &path)?;
                }
            }
        }
        Ok(())
    }

    /// The line that begins a table; the outermost ones stand apart.
    fn head(&mut self, path: &[String], [open, close]: [&str; 2]) -> Result<(), Fault> {
        if (path.len() == 1 || open == "[[") && self.out.len() > 0 {
            self.out.push("\n")?;
        }
        self.out.repeat(' ', 2 * path.len().saturating_sub(1))?;
        self.out.push(open)?;
        self.out.push(path.join("."))?;
        self.out.push(close)?;
        self.out.push("\n")
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Fault> {
        if depth > VALUE_DEPTH {
            return Err(too_deep());
        }
        match value {
            Value::Bool(bool) => self.out.push(bool.to_string()),
            Value::Int(int, _) => self.out.push(int.to_string()),
            Value::Uint(uint, _) => self.out.push(uint.to_string()),
            Value::Float(float) => self.float(*float),
            Value::Text(text) => self.out.push(text_of(text)),
            Value::Record(record) => match &record.shown {
                Shown::Item(text) | Shown::Text(text) => self.out.push(text_of(text)),
                Shown::Time(_, nanos) => self.out.push(nanos.to_string()),
                Shown::Fields => self.inline(value, depth),
            },
            Value::Map(_) => self.inline(value, depth),
            Value::List(list) => {
                self.out.push("[")?;
                for (at, item) in list.items.iter().enumerate() {
                    self.out.push(if at > 0 { ", " } else { "" })?;
                    self.value(item, depth + 1)?;
                }
                self.out.push("]")
            }
            Value::Nil | Value::Absent | Value::Count(..) | Value::Scratch => {
                let message = format!("TOML cannot represent {} in a list", value.type_name());
                Err(Fault::failed(message))
            }
        }
    }

    fn inline(&mut self, value: &Value, depth: usize) -> Result<(), Fault> {
        self.out.push("{")?;
        for (at, (key, value)) in entries(value).unwrap_or_default().iter().enumerate() {
            self.out.push(if at > 0 { ", " } else { "" })?;
            self.out.push(key_text(key))?;
            self.out.push(" = ")?;
            self.value(value, depth + 1)?;
        }
        self.out.push("}")
    }

    /// A fraction always looks like one.
    fn float(&mut self, float: f64) -> Result<(), Fault> {
        if !float.is_finite() {
            let shown = if float.is_nan() {
                "nan"
            } else if float > 0.0 {
                "inf"
            } else {
                "-inf"
            };
            return self.out.push(shown);
        }
        let shown = float.to_string();
        self.out.push(&shown)?;
        match shown.contains('.') {
            true => Ok(()),
            false => self.out.push(".0"),
        }
    }
}

/// Whether it is written as a table, or as several.
fn is_table(value: &Value) -> bool {
    match value {
        Value::List(list) => {
            !list.items.is_empty() && list.items.iter().all(|item| entries(item).is_some())
        }
        other => entries(other).is_some(),
    }
}

fn key_text(key: &[u8]) -> String {
    let bare = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match !key.is_empty() && key.iter().all(bare) {
        true => String::from_utf8_lossy(key).into_owned(),
        false => text_of(key),
    }
}

fn text_of(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for char in String::from_utf8_lossy(text).chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' | '\u{7f}' => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            _ => out.push(char),
        }
    }
    out.push('"');
    out
}
