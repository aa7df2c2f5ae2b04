//! Plain values of a configuration file: nothing is computed there.

use std::collections::BTreeMap;

use drover_core::model::value::Value;
use drover_core::text::{parse_duration, quote};
use drover_core::time::Span;
use hcl_edit::expr::{Expression, ObjectKey};
use hcl_edit::structure::{Attribute, Body, Structure};
use hcl_edit::template::{Element, Template};

/// How deep values and blocks may lie in each other.
const MAX_DEPTH: usize = 32;

const LITERAL: &str = "a literal value is required: expressions are not evaluated here";

/// The attributes of a body, to be taken one by one.
pub(super) struct Fields(BTreeMap<String, Value>, Vec<&'static str>);

/// The values of a map that was read as a whole.
pub(super) fn of_map(map: BTreeMap<String, Value>) -> Fields {
    Fields(map, Vec::new())
}

/// The attributes of a body; its blocks are left to others.
pub(super) fn fields(body: &Body) -> Result<Fields, String> {
    let mut fields = BTreeMap::new();
    for attribute in body.attributes() {
        insert(&mut fields, attribute, 0)?;
    }
    Ok(Fields(fields, Vec::new()))
}

/// Adds an attribute, which may be given once.
fn insert(
    map: &mut BTreeMap<String, Value>,
    attribute: &Attribute,
    depth: usize,
) -> Result<(), String> {
    let name = attribute.key.as_str();
    let value = value(&attribute.value, depth).map_err(|why| format!("{name}: {why}"))?;
    match map.insert(name.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(format!("{} is given twice", quote(name))),
    }
}

impl Fields {
    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.1.push(name);
        self.0.remove(name).filter(|value| *value != Value::Null)
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, String> {
        self.take(name).map(|value| text(name, value)).transpose()
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            // As Nomad's older files have it.
            Some(Value::String(text)) if text == "true" => Ok(Some(true)),
            Some(Value::String(text)) if text == "false" => Ok(Some(false)),
            Some(other) => Err(format!(
                "{name}: true or false is needed, not {}",
                other.kind()
            )),
        }
    }

    pub(super) fn number(&mut self, name: &'static str) -> Result<Option<i64>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Int(number)) => Ok(Some(number)),
            Some(other) => match written(&other) {
                Some(number) => Ok(Some(number)),
                None => Err(format!(
                    "{name}: a whole number is needed, not {}",
                    other.kind()
                )),
            },
        }
    }

    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, String> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::List(items)) => items.into_iter().map(|item| text(name, item)).collect(),
            Some(other) => Err(format!("{name}: a list is needed, not {}", other.kind())),
        }
    }

    pub(super) fn text_map(
        &mut self,
        name: &'static str,
    ) -> Result<BTreeMap<String, String>, String> {
        match self.take(name) {
            None => Ok(BTreeMap::new()),
            Some(Value::Map(map)) => (map.into_iter())
                .map(|(key, value)| Ok((key, text(name, value)?)))
                .collect(),
            Some(other) => Err(format!("{name}: a map is needed, not {}", other.kind())),
        }
    }

    /// A map of settings that are texts, whether they are written as such or as numbers or flags.
    pub(super) fn settings(
        &mut self,
        name: &'static str,
    ) -> Result<BTreeMap<String, String>, String> {
        match self.take(name) {
            None => Ok(BTreeMap::new()),
            Some(Value::Map(map)) => as_settings(name, map),
            Some(other) => Err(format!("{name}: a map is needed, not {}", other.kind())),
        }
    }

    /// A block that may be there once.
    pub(super) fn block(&mut self, name: &'static str) -> Result<Option<Fields>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Map(map)) => Ok(Some(of_map(map))),
            Some(Value::List(mut items)) => match (items.pop(), items.is_empty()) {
                (None, _) => Ok(None),
                (Some(Value::Map(map)), true) => Ok(Some(of_map(map))),
                _ => Err(format!("{name}: one block is needed")),
            },
            Some(other) => Err(format!("{name}: a block is needed, not {}", other.kind())),
        }
    }

    /// A length of time such as `3m`.
    pub(super) fn span(&mut self, name: &'static str) -> Result<Option<Span>, String> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let span = parse_duration(&text).ok().filter(|span| span.0 >= 0);
        let wrong = || {
            format!(
                "{name}: a duration such as 3m is needed, not {}",
                quote(&text)
            )
        };
        span.map(Some).ok_or_else(wrong)
    }

    /// All that is there, as texts.
    pub(super) fn into_texts(self, name: &str) -> Result<BTreeMap<String, String>, String> {
        let pairs = self.0.into_iter();
        pairs
            .map(|(key, value)| Ok((key, text(name, value)?)))
            .collect()
    }

    /// Takes what is known to have no effect, and says what of it is there.
    pub(super) fn ignore(&mut self, names: &'static [&'static str]) -> Vec<String> {
        let there = names.iter().filter(|name| self.take(name).is_some());
        there.map(|name| (*name).to_owned()).collect()
    }

    /// Refuses what nobody took.
    pub(super) fn nothing_else(self, about: &str) -> Result<(), String> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!(
                "{about}: {}",
                super::unknown("setting", name, &self.1)
            )),
        }
    }
}

/// The number that a text is.
fn written(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// The values of a map as texts, whether they are written as such or as numbers or flags.
pub(super) fn as_settings(
    about: &str,
    map: BTreeMap<String, Value>,
) -> Result<BTreeMap<String, String>, String> {
    let text = |(key, value): (String, Value)| match value {
        Value::String(text) => Ok((key, text)),
        Value::Int(number) => Ok((key, number.to_string())),
        Value::Bool(value) => Ok((key, value.to_string())),
        other => Err(format!(
            "{about}: {}: a string is needed, not {}",
            quote(&key),
            other.kind()
        )),
    };
    map.into_iter().map(text).collect()
}

fn text(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(format!("{name}: a string is needed, not {}", other.kind())),
    }
}

/// A whole body as a map: a block is a list of the bodies of its name, below its labels.
pub(crate) fn body(body: &Body) -> Result<BTreeMap<String, Value>, String> {
    deep(body, 0)
}

fn deep(body: &Body, depth: usize) -> Result<BTreeMap<String, Value>, String> {
    if depth > MAX_DEPTH {
        return Err(format!("it is deeper than {MAX_DEPTH}"));
    }
    let mut map = BTreeMap::new();
    for structure in body {
        match structure {
            Structure::Attribute(attribute) => insert(&mut map, attribute, depth)?,
            Structure::Block(block) => {
                let name = block.ident.as_str();
                let mut inner = Value::Map(deep(&block.body, depth + 1)?);
                for label in block.labels.iter().rev() {
                    inner = Value::Map([(label.as_str().to_owned(), inner)].into());
                }
                let list = map
                    .entry(name.to_owned())
                    .or_insert_with(|| Value::List(Vec::new()));
                match list {
                    Value::List(items) => items.push(inner),
                    _ => return Err(format!("{} is a value and a block", quote(name))),
                }
            }
        }
    }
    Ok(map)
}

/// The text of a heredoc in which nothing is to be computed.
fn plain(template: &Template) -> Result<String, String> {
    let parts = template.iter().map(|part| match part {
        Element::Literal(text) => Ok(text.value().as_str()),
        Element::Interpolation(_) | Element::Directive(_) => Err(LITERAL.to_owned()),
    });
    parts.collect()
}

fn value(expression: &Expression, depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err(format!("it is deeper than {MAX_DEPTH}"));
    }
    Ok(match expression {
        Expression::Null(_) => Value::Null,
        Expression::Bool(value) => Value::Bool(*value.value()),
        Expression::String(text) => Value::String(text.value().clone()),
        Expression::HeredocTemplate(heredoc) => Value::String(plain(&heredoc.template)?),
        Expression::Number(number) => match (number.value().as_i64(), number.value().as_f64()) {
            (Some(whole), _) => Value::Int(whole),
            (None, Some(float)) => Value::Float(float.to_bits()),
            (None, None) => return Err(format!("{} is too large", number.value())),
        },
        Expression::Array(items) => {
            let items = items.iter().map(|item| value(item, depth + 1));
            Value::List(items.collect::<Result<_, _>>()?)
        }
        Expression::Object(object) => {
            let mut map = BTreeMap::new();
            for (key, item) in object {
                let key = match key {
                    ObjectKey::Ident(name) => name.as_str().to_owned(),
                    ObjectKey::Expression(Expression::String(text)) => text.value().clone(),
                    ObjectKey::Expression(_) => {
                        return Err("a key is to be a plain name".to_owned());
                    }
                };
                map.insert(key, value(item.expr(), depth + 1)?);
            }
            Value::Map(map)
        }
        _ => {
            return Err(LITERAL.to_owned());
        }
    })
}
