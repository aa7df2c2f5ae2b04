//! From bytes to declared types.
//!
//! **Memory.** One byte, nil, can decode into a struct of a kilobyte. So each element and each struct is
//! charged its size in memory to a budget that is proportional to the message ([`MEMORY_PER_BYTE`]). Maps are
//! charged by the nodes of their trees ([`BTREE_NODE`]).

use serde::de::{self, Deserialize, DeserializeSeed, Visitor};

use super::head::Head;
use super::{MAX_DEPTH, Malformed};

/// How many bytes of memory each byte of a message may take. Recorded messages of more than a kilobyte
/// take 3.2 at most.
const MEMORY_PER_BYTE: usize = 8;

/// How many entries a node of a `BTreeMap` has capacity for.
const BTREE_NODE: usize = 11;

/// The budget of a message without bytes.
const MIN_BUDGET: usize = 64 << 10;

/// Decodes one message, which must be all of `bytes`. Fields that are not declared are skipped.
///
/// # Errors
/// If it is not of this type, not exactly one message, or exceeds its memory budget.
pub fn decode<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Malformed> {
    let budget = bytes
        .len()
        .saturating_mul(MEMORY_PER_BYTE)
        .saturating_add(MIN_BUDGET);
    let mut decoder = Decoder {
        rest: bytes,
        depth: 0,
        budget,
    };
    let value = T::deserialize(&mut decoder)?;
    if decoder.rest.is_empty() {
        Ok(value)
    } else {
        Err(Malformed::TrailingBytes)
    }
}

impl de::Error for Malformed {
    fn custom<T: std::fmt::Display>(why: T) -> Malformed {
        Malformed::InvalidType(why.to_string())
    }
}

struct Decoder<'de> {
    rest: &'de [u8],
    depth: usize,
    budget: usize,
}

impl<'de> Decoder<'de> {
    fn head(&mut self) -> Result<Head, Malformed> {
        let (head, size) = Head::read(self.rest)?.ok_or(Malformed::Truncated)?;
        self.rest = self.rest.get(size..).ok_or(Malformed::Truncated)?;
        Ok(head)
    }

    fn bytes(&mut self, length: usize) -> Result<&'de [u8], Malformed> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A string; nil is an empty one.
    fn raw(&mut self) -> Result<&'de [u8], Malformed> {
        match self.head()? {
            Head::Nil => Ok(&[]),
            Head::Raw(length) => self.bytes(length),
            other => unexpected(other, "a string"),
        }
    }

    /// Skips one object.
    fn skip(&mut self) -> Result<(), Malformed> {
        let mut objects = 1_u64;
        while objects > 0 {
            let (bytes, more) = self.head()?.follows();
            self.bytes(bytes)?;
            objects = (objects - 1).checked_add(more).ok_or(Malformed::TooLong)?;
        }
        Ok(())
    }

    fn charge<T>(&mut self, count: usize) -> Result<(), Malformed> {
        let left = self.budget.checked_sub(count * size_of::<T>());
        self.budget = left.ok_or(Malformed::OverBudget)?;
        Ok(())
    }

    /// Reads the items of a list or map.
    fn within<T>(
        &mut self,
        items: usize,
        read: impl FnOnce(&mut Items<'_, 'de>) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        if self.depth == MAX_DEPTH {
            return Err(Malformed::TooDeep);
        }
        // Each item has a byte at least.
        if items > self.rest.len() {
            return Err(Malformed::Truncated);
        }
        self.depth += 1;
        let mut inside = Items {
            decoder: self,
            left: items,
            done: 0,
            of_struct: false,
        };
        let value = read(&mut inside)?;
        let left = inside.left;
        self.depth -= 1;
        if left == 0 {
            Ok(value)
        } else {
            Err(Malformed::InvalidType(format!("{left} items too many")))
        }
    }

    fn map<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value, Malformed> {
        match head {
            Head::Nil => self.within(0, |items| visitor.visit_map(items)),
            Head::Map(pairs) => self.within(pairs, |items| visitor.visit_map(items)),
            other => unexpected(other, "a map"),
        }
    }

    fn list<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value, Malformed> {
        match head {
            Head::Nil => self.within(0, |items| visitor.visit_seq(items)),
            Head::List(items) => self.within(items, |items| visitor.visit_seq(items)),
            other => unexpected(other, "a list"),
        }
    }

    /// A number; nil is 0.
    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Malformed> {
        match self.head()? {
            Head::Nil => visitor.visit_u64(0),
            Head::Uint(value) => visitor.visit_u64(value),
            Head::Int(value) => visitor.visit_i64(value),
            Head::Float(value) => visitor.visit_f64(value),
            other => unexpected(other, "a number"),
        }
    }
}

fn unexpected<T>(found: Head, wanted: &str) -> Result<T, Malformed> {
    Err(Malformed::InvalidType(format!(
        "{} where {wanted} belongs",
        found.name()
    )))
}

/// Methods for numbers, which are all the same.
macro_rules! numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
            self.number(visitor)
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Decoder<'de> {
    type Error = Malformed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        match self.head()? {
            Head::Nil => visitor.visit_unit(),
            Head::Bool(value) => visitor.visit_bool(value),
            Head::Uint(value) => visitor.visit_u64(value),
            Head::Int(value) => visitor.visit_i64(value),
            Head::Float(value) => visitor.visit_f64(value),
            Head::Raw(length) => {
                let bytes = self.bytes(length)?;
                match std::str::from_utf8(bytes) {
                    Ok(text) => visitor.visit_borrowed_str(text),
                    Err(_) => visitor.visit_borrowed_bytes(bytes),
                }
            }
            Head::Ext(length) => visitor.visit_borrowed_bytes(self.bytes(length)?),
            head @ Head::List(_) => self.list(head, visitor),
            head @ Head::Map(_) => self.map(head, visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        match self.head()? {
            Head::Nil => visitor.visit_bool(false),
            Head::Bool(value) => visitor.visit_bool(value),
            other => unexpected(other, "a truth value"),
        }
    }

    numbers!(deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64);

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        let bytes = self.raw()?;
        match std::str::from_utf8(bytes) {
            Ok(text) => visitor.visit_borrowed_str(text),
            Err(_) => visitor.visit_str(&String::from_utf8_lossy(bytes)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        match Head::read(self.rest)? {
            Some((Head::List(_), _)) => self.deserialize_seq(visitor),
            _ => visitor.visit_borrowed_bytes(self.raw()?),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        match self.rest.split_first() {
            Some((0xc0, rest)) => {
                self.rest = rest;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        match self.head()? {
            Head::Nil => visitor.visit_unit(),
            other => unexpected(other, "nil"),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        let head = self.head()?;
        self.list(head, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        let head = self.head()?;
        self.map(head, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        self.charge::<V::Value>(1)?;
        match self.head()? {
            Head::Nil => self.within(0, |items| visitor.visit_map(items)),
            Head::Map(pairs) => self.within(pairs, |items| {
                items.of_struct = true;
                visitor.visit_map(items)
            }),
            other => unexpected(other, "a map"),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Malformed> {
        Err(Malformed::InvalidType(format!(
            "{name} is no type of messages"
        )))
    }

    /// The name of a field. A number is skipped: serde would take it for the index of a field.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        match Head::read(self.rest)? {
            Some((Head::Raw(_), _)) => visitor.visit_borrowed_bytes(self.raw()?),
            _ => {
                self.skip()?;
                visitor.visit_borrowed_bytes(b"")
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        self.skip()?;
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The remaining items of a list or map.
struct Items<'a, 'de> {
    decoder: &'a mut Decoder<'de>,
    left: usize,
    /// Entries of a map so far.
    done: usize,
    /// Whether the entries are fields, whose struct was charged.
    of_struct: bool,
}

impl Items<'_, '_> {
    /// Charges a key or a value: each node once, with its first entry.
    fn charge<T>(&mut self) -> Result<(), Malformed> {
        match self.of_struct || !self.done.is_multiple_of(BTREE_NODE) {
            true => Ok(()),
            false => self.decoder.charge::<T>(BTREE_NODE),
        }
    }
}

impl<'de> de::SeqAccess<'de> for &mut Items<'_, 'de> {
    type Error = Malformed;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Malformed> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        self.decoder.charge::<T::Value>(1)?;
        seed.deserialize(&mut *self.decoder).map(Some)
    }

    // No size hint: memory is allocated as elements arrive.
}

impl<'de> de::MapAccess<'de> for &mut Items<'_, 'de> {
    type Error = Malformed;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Malformed> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        self.charge::<K::Value>()?;
        seed.deserialize(&mut *self.decoder).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Malformed> {
        self.charge::<V::Value>()?;
        self.done += 1;
        seed.deserialize(&mut *self.decoder)
    }
}
