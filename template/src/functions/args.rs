//! Arguments of functions.

use std::borrow::Cow;
use std::rc::Rc;

use super::Result;
use crate::error::Fault;
use crate::value::{List, Map, Shown, Text, Value};

/// What a function takes in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Param {
    Any,
    Text,
    Int,
    Number,
    List,
    Map,
}

impl Param {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "value",
            Self::Text => "text",
            Self::Int => "int",
            Self::Number => "number",
            Self::List => "list",
            Self::Map => "map",
        }
    }

    pub(super) fn takes(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Text => as_text(value).is_some(),
            Self::Int => matches!(value, Value::Int(..) | Value::Uint(..)),
            Self::Number => matches!(value, Value::Int(..) | Value::Uint(..) | Value::Float(_)),
            Self::List => matches!(value, Value::List(_)),
            Self::Map => matches!(value, Value::Map(_)),
        }
    }
}

/// A text, or an item of a variable, which is used as one.
pub(super) fn as_text(value: &Value) -> Option<&Text> {
    match value {
        Value::Text(text) => Some(text),
        Value::Record(record) => match &record.shown {
            Shown::Item(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Arguments whose number and sorts were compared with the table already.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a>(pub(crate) &'a [Value]);

impl<'a> Args<'a> {
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(self, at: usize) -> Result<&'a Value> {
        let missing = || Fault::failed(format!("argument {} is missing", at + 1));
        self.0.get(at).ok_or_else(missing)
    }

    pub(crate) fn from(self, at: usize) -> &'a [Value] {
        self.0.get(at..).unwrap_or_default()
    }

    fn wrong<T>(self, at: usize, wanted: &str) -> Result<T> {
        let given = self.get(at)?.type_name();
        let message = format!("argument {} must be {wanted}, and is {given}", at + 1);
        Err(Fault::failed(message))
    }

    pub(crate) fn text(self, at: usize) -> Result<&'a Text> {
        match as_text(self.get(at)?) {
            Some(text) => Ok(text),
            None => self.wrong(at, "text"),
        }
    }

    /// A text's characters; what is no UTF-8 is replaced.
    pub(crate) fn str(self, at: usize) -> Result<Cow<'a, str>> {
        Ok(String::from_utf8_lossy(self.text(at)?))
    }

    pub(crate) fn int(self, at: usize) -> Result<i64> {
        match self.get(at)? {
            Value::Int(int, _) => Ok(*int),
            Value::Uint(uint, _) => {
                i64::try_from(*uint).map_err(|_| Fault::failed("the number is too large"))
            }
            _ => self.wrong(at, "int"),
        }
    }

    /// A count; what is below zero is none.
    pub(crate) fn count(self, at: usize) -> Result<usize> {
        let int = self.int(at)?.max(0);
        usize::try_from(int).map_err(|_| Fault::failed("the number is too large"))
    }

    pub(crate) fn list(self, at: usize) -> Result<&'a Rc<List>> {
        match self.get(at)? {
            Value::List(list) => Ok(list),
            _ => self.wrong(at, "list"),
        }
    }

    pub(crate) fn items(self, at: usize) -> Result<&'a [Value]> {
        Ok(&self.list(at)?.items)
    }

    pub(crate) fn map(self, at: usize) -> Result<&'a Rc<Map>> {
        match self.get(at)? {
            Value::Map(map) => Ok(map),
            _ => self.wrong(at, "map"),
        }
    }

    /// The last one: what a pipeline gives.
    pub(crate) fn last(self) -> Result<&'a Value> {
        self.get(self.len().saturating_sub(1))
    }
}
