//! A value of a job file that the core passes on without looking inside, such as a driver's
//! configuration.

use core::fmt;
use std::collections::BTreeMap;

use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// JSON-like data with a total order of keys, comparable and hashable as all state of the core is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Value {
    /// Nothing; in a driver's configuration the same as leaving the key out.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction, as the bits of an `f64` so that it can be compared and hashed.
    Float(u64),
    /// Text.
    String(String),
    /// A list.
    List(Vec<Value>),
    /// Named values.
    Map(BTreeMap<String, Value>),
}

impl Value {
    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The whole number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        if let Value::Int(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    /// The named values, if it is a map.
    pub fn as_map(&self) -> Option<&BTreeMap<String, Value>> {
        if let Value::Map(map) = self {
            Some(map)
        } else {
            None
        }
    }

    /// The list, if it is one.
    pub fn as_list(&self) -> Option<&[Value]> {
        if let Value::List(list) = self {
            Some(list)
        } else {
            None
        }
    }

    /// What kind of value this is, as an error message names it.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Map(_) => "map",
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.to_owned())
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => to.serialize_unit(),
            Value::Bool(v) => to.serialize_bool(*v),
            Value::Int(v) => to.serialize_i64(*v),
            Value::Float(bits) => to.serialize_f64(f64::from_bits(*bits)),
            Value::String(v) => to.serialize_str(v),
            Value::List(v) => to.collect_seq(v),
            Value::Map(v) => to.collect_map(v),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Int(v))
    }
    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Value, E> {
        i64::try_from(v)
            .map(Value::Int)
            .map_err(|_| E::custom("number is too large"))
    }
    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Value::Float(v.to_bits()))
    }
    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }
    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::String(v))
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        Value::deserialize(from)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry()? {
            map.insert(key, value);
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, MapDeserializer, SeqDeserializer, UnitDeserializer};

    fn read<'de>(from: impl Deserializer<'de, Error = Error>) -> Option<Value> {
        Value::deserialize(from).ok()
    }

    #[test]
    fn value_kinds_round_trip() {
        assert_eq!(read(true.into_deserializer()), Some(Value::Bool(true)));
        assert_eq!(read((-5_i64).into_deserializer()), Some(Value::Int(-5)));
        assert_eq!(read(5_u64.into_deserializer()), Some(Value::Int(5)));
        assert_eq!(read(u64::MAX.into_deserializer()), None);
        let float = Value::Float(1.5_f64.to_bits());
        assert_eq!(read(1.5_f64.into_deserializer()), Some(float));
        assert_eq!(read("x".into_deserializer()), Some(Value::from("x")));
        let owned = "x".to_owned().into_deserializer();
        assert_eq!(read(owned), Some(Value::from("x")));
        assert_eq!(read(UnitDeserializer::new()), Some(Value::Null));
    }

    #[test]
    fn nested_values_round_trip() {
        let list = SeqDeserializer::new([1_i64, 2].into_iter());
        let ints = Value::List(vec![Value::Int(1), Value::Int(2)]);
        assert_eq!(read(list), Some(ints));
        let map = MapDeserializer::new([("a", 1_i64), ("b", 2)].into_iter());
        let read = read(map);
        let map = read.as_ref().and_then(Value::as_map);
        assert_eq!(map.map(BTreeMap::len), Some(2));
        assert_eq!(map.and_then(|map| map.get("b")), Some(&Value::Int(2)));
    }
}
