//! Values without a declared type: configuration of drivers and plugins, claims.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::Raw;

/// Any value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Nil.
    #[default]
    Nil,
    /// A truth value.
    Bool(bool),
    /// An integer in a signed form.
    Int(i64),
    /// An integer in an unsigned form.
    Uint(u64),
    /// A float.
    Float(f64),
    /// Text.
    Text(String),
    /// A string that is not UTF-8.
    Bytes(Raw),
    /// A list.
    List(Vec<Value>),
    /// A map by text.
    Map(BTreeMap<String, Value>),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Nil => serializer.serialize_none(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Uint(value) => serializer.serialize_u64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Text(value) => serializer.serialize_str(value),
            Value::Bytes(value) => value.serialize(serializer),
            Value::List(value) => value.serialize(serializer),
            Value::Map(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }
    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Uint(value))
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }
    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }
    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<Value, E> {
        Ok(Value::Bytes(Raw(value.to_vec())))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = BTreeMap::new();
        while let Some((key, value)) = map.next_entry()? {
            values.insert(key, value);
        }
        Ok(Value::Map(values))
    }
}
