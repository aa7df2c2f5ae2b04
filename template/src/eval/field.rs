//! Fields of maps and records, and the few methods that there are.

use std::rc::Rc;
use std::sync::Arc;

use super::Render;
use crate::error::Fault;
use crate::functions::{Args, scratch};
use crate::value::{Map, Of, Record, Value};

impl Render<'_> {
    /// `.a.b.c`, the last of which may be a method with arguments.
    pub(super) fn fields(
        &mut self,
        mut value: Value,
        names: &[Arc<[u8]>],
        args: Vec<Value>,
    ) -> Result<Value, Fault> {
        let Some((last, before)) = names.split_last() else {
            return Ok(value);
        };
        for name in before {
            value = self.field(&value, name, Vec::new())?;
        }
        self.field(&value, last, args)
    }

    fn field(&mut self, value: &Value, name: &[u8], args: Vec<Value>) -> Result<Value, Fault> {
        if matches!(value, Value::Scratch) {
            let found = scratch::method(&mut self.cx, name, Args(&args));
            return found.map_err(|fault| fault.of("scratch"));
        }
        if let Some(found) = self.method(value, name)? {
            return match args.is_empty() {
                true => Ok(found),
                false => Err(taken(name)),
            };
        }
        match value {
            Value::Absent if self.strict => Err(missing(name)),
            Value::Absent => Ok(Value::Absent),
            _ if !args.is_empty() => Err(taken(name)),
            Value::Map(map) => match map.get(name) {
                Some(found) => Ok(found),
                None if self.strict => Err(missing(name)),
                None => Ok(map.missing()),
            },
            Value::Record(record) => {
                let found = record.field(name).cloned();
                found.ok_or_else(|| none(name, value))
            }
            _ => Err(none(name, value)),
        }
    }

    fn method(&mut self, value: &Value, name: &[u8]) -> Result<Option<Value>, Fault> {
        match value {
            Value::Map(map) => self.method_of_items(map, name),
            Value::Record(record) if record.type_name == "NomadVariable" && name == b"Metadata" => {
                Ok(Some(Value::Record(Rc::new(record.metadata()))))
            }
            _ => Ok(None),
        }
    }

    /// What the items of a variable can tell of themselves.
    fn method_of_items(&mut self, map: &Rc<Map>, name: &[u8]) -> Result<Option<Value>, Fault> {
        let Some(variable) = map.variable() else {
            return Ok(None);
        };
        let texts = match variable.field(b"Items") {
            Some(Value::Map(texts)) => texts.entries(),
            _ => Vec::new(),
        };
        let found = match name {
            b"Parent" => Value::Record(variable.clone()),
            b"Metadata" => Value::Record(Rc::new(variable.metadata())),
            b"Keys" => self.cx.texts(texts.into_iter().map(|(key, _)| key))?,
            b"Values" => {
                let values = texts.into_iter().map(|(_, value)| value).collect();
                self.cx.list(values, Of::Texts)?
            }
            b"Tuples" => {
                let pair = |(key, value)| match value {
                    Value::Text(value) => Value::Record(Rc::new(Record::pair(key, value))),
                    other => other,
                };
                let pairs = texts.into_iter().map(pair).collect();
                self.cx.list(pairs, Of::Records)?
            }
            b"ItemsMap" => {
                let items = texts.into_iter().collect();
                self.cx.map(items, Of::Any)?
            }
            _ => return Ok(None),
        };
        Ok(Some(found))
    }
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn taken(name: &[u8]) -> Fault {
    let message = format!(".{} is a value and takes no arguments", shown(name));
    Fault::failed(message)
}

fn missing(name: &[u8]) -> Fault {
    Fault::failed(format!(
        "there is no key {:?}, and missing keys are errors here",
        shown(name)
    ))
}

fn none(name: &[u8], value: &Value) -> Fault {
    let message = format!(
        "{} has no field {}: test it with {{{{with}}}} first if it may be missing",
        value.type_name(),
        shown(name)
    );
    Fault::failed(message)
}
