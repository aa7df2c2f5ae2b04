//! Values while a job file is evaluated. Cheap to clone; each knows its size written out, so that
//! a value that refers to itself many times cannot grow beyond the bounds unseen.

use std::collections::BTreeMap;
use std::rc::Rc;

use drover_core::model::value::Value;

use super::super::bounds::{Exhausted, ITEM, MAX_DEPTH, MAX_VALUE};

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text),
    List(List),
    Map(Map),
}

/// A number: whole where it can be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

/// Text, with the knowledge whether it holds a reference that is resolved at run time only.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) text: Rc<str>,
    pub(crate) runtime: bool,
}

/// A list, or a set as a list that is sorted and without doubles.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) items: Rc<[Val]>,
    size: Size,
    runtime: bool,
}

/// How large a collection is, written out.
#[derive(Clone, Copy, Debug)]
struct Size {
    weight: usize,
    depth: usize,
}

/// Named values.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) entries: Rc<BTreeMap<String, Val>>,
    size: Size,
    runtime: bool,
}

impl Number {
    /// The number, as a whole one if it is one.
    pub(crate) fn from_f64(number: f64) -> Number {
        // Beyond 2^53 an f64 no longer knows its last digits.
        if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 {
            Number::Int(number as i64)
        } else {
            Number::Float(number)
        }
    }

    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Float(number) => number,
        }
    }

    pub(crate) fn as_i64(self) -> Option<i64> {
        match self {
            Number::Int(number) => Some(number),
            Number::Float(_) => None,
        }
    }

    /// The number of a decimal text.
    pub(crate) fn parse(text: &str) -> Option<Number> {
        let decimal = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
        if text.is_empty() || text.len() > 400 || !text.chars().all(decimal) {
            return None;
        }
        if let Ok(number) = text.parse() {
            return Some(Number::Int(number));
        }
        let number: f64 = text.parse().ok()?;
        number.is_finite().then(|| Number::from_f64(number))
    }

    pub(crate) fn compare(self, other: Number) -> core::cmp::Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (a, b) => a.as_f64().total_cmp(&b.as_f64()),
        }
    }
}

impl core::fmt::Display for Number {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Number::Int(number) => number.fmt(f),
            Number::Float(number) => number.fmt(f),
        }
    }
}

impl Val {
    pub(crate) fn text(text: impl Into<Rc<str>>) -> Val {
        Val::maybe_runtime(text, false)
    }

    pub(crate) fn maybe_runtime(text: impl Into<Rc<str>>, runtime: bool) -> Val {
        let text = text.into();
        Val::Text(Text { text, runtime })
    }

    pub(crate) fn int(number: i64) -> Val {
        Val::Number(Number::Int(number))
    }

    pub(crate) fn list(items: Vec<Val>) -> Result<Val, Exhausted> {
        let size = Size::around(items.iter(), 0)?;
        Ok(Val::List(List {
            runtime: items.iter().any(Val::has_runtime),
            items: items.into(),
            size,
        }))
    }

    pub(crate) fn map(entries: BTreeMap<String, Val>) -> Result<Val, Exhausted> {
        let keys = entries.keys().map(String::len).sum();
        let size = Size::around(entries.values(), keys)?;
        Ok(Val::Map(Map {
            runtime: entries.values().any(Val::has_runtime),
            entries: Rc::new(entries),
            size,
        }))
    }

    /// Whether a run-time reference is somewhere in it.
    pub(crate) fn has_runtime(&self) -> bool {
        match self {
            Val::Text(text) => text.runtime,
            Val::List(list) => list.runtime,
            Val::Map(map) => map.runtime,
            _ => false,
        }
    }

    /// Its size written out.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Val::Text(text) => 1 + text.text.len(),
            Val::List(list) => list.size.weight,
            Val::Map(map) => map.size.weight,
            _ => 1,
        }
    }

    fn depth(&self) -> usize {
        match self {
            Val::List(list) => list.size.depth,
            Val::Map(map) => map.size.depth,
            _ => 0,
        }
    }

    /// What kind of value this is, as an error message names it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Val::Null => "null",
            Val::Bool(_) => "a bool",
            Val::Number(_) => "a number",
            Val::Text(text) if text.runtime => "a run-time reference",
            Val::Text(_) => "a string",
            Val::List(_) => "a list",
            Val::Map(_) => "a map",
        }
    }

    /// The value as the model keeps it; entries of maps that are null are left out.
    pub(crate) fn to_model(&self) -> Value {
        match self {
            Val::Null => Value::Null,
            Val::Bool(v) => Value::Bool(*v),
            Val::Number(Number::Int(v)) => Value::Int(*v),
            Val::Number(Number::Float(v)) => Value::Float(v.to_bits()),
            Val::Text(v) => Value::String(v.text.to_string()),
            Val::List(v) => Value::List(v.items.iter().map(Val::to_model).collect()),
            Val::Map(v) => {
                let entries = v.entries.iter().filter(|(_, v)| !matches!(v, Val::Null));
                Value::Map(entries.map(|(k, v)| (k.clone(), v.to_model())).collect())
            }
        }
    }

    /// A total order of all values, for sets.
    pub(crate) fn compare(&self, other: &Val) -> core::cmp::Ordering {
        let rank = |val: &Val| match val {
            Val::Null => 0,
            Val::Bool(_) => 1,
            Val::Number(_) => 2,
            Val::Text(_) => 3,
            Val::List(_) => 4,
            Val::Map(_) => 5,
        };
        match (self, other) {
            (Val::Bool(a), Val::Bool(b)) => a.cmp(b),
            (Val::Number(a), Val::Number(b)) => a.compare(*b),
            (Val::Text(a), Val::Text(b)) => a.text.cmp(&b.text),
            (Val::List(a), Val::List(b)) => {
                let pairs = a.items.iter().zip(b.items.iter());
                pairs
                    .map(|(a, b)| a.compare(b))
                    .find(|order| order.is_ne())
                    .unwrap_or(a.items.len().cmp(&b.items.len()))
            }
            (Val::Map(a), Val::Map(b)) => {
                let pairs = a.entries.iter().zip(b.entries.iter());
                pairs
                    .map(|((ka, a), (kb, b))| ka.cmp(kb).then_with(|| a.compare(b)))
                    .find(|order| order.is_ne())
                    .unwrap_or(a.entries.len().cmp(&b.entries.len()))
            }
            (a, b) => rank(a).cmp(&rank(b)),
        }
    }
}

impl PartialEq for Val {
    fn eq(&self, other: &Val) -> bool {
        self.compare(other).is_eq()
    }
}

impl Size {
    /// The size of a collection of these values.
    fn around<'a>(items: impl Iterator<Item = &'a Val>, extra: usize) -> Result<Size, Exhausted> {
        let mut size = Size {
            weight: extra.saturating_add(1),
            depth: 1,
        };
        for item in items {
            size.weight = size.weight.saturating_add(item.weight() + ITEM);
            size.depth = size.depth.max(item.depth() + 1);
        }
        // Values are walked by recursion, so their depth is bounded as their weight is.
        let fits = size.weight <= MAX_VALUE && size.depth <= MAX_DEPTH;
        fits.then_some(size).ok_or(Exhausted)
    }
}
