//! When two states are one: a hash that does not see which random ids things bear (allocations and
//! launches go by their stable names), in which order operations were numbered, or when it is, only
//! how long ago and how soon.
//!
//! Operations in flight are a set, of which the caller takes care; in which order they were asked for decides
//! nothing. Not looked at either: random numbers to come, counters, and the indexes that tell people that
//! something changed; no decision hangs on them, so what follows from two such states is the same.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::hash::Hasher;

use drover_core::time::Now;
use serde::ser::{self, Serialize};

use crate::hash::StateHasher;
use crate::names::Names;

/// Fields whose values decide nothing.
const IGNORED: &[&str] = &[
    "rng",
    "counters",
    "last_op",
    "operations",
    "index",
    "modify_index",
    "seed",
];

/// The hash of a state at a time.
pub(super) struct Same {
    hash: StateHasher,
    now: Now,
    names: BTreeMap<String, u64>,
    numbers: BTreeMap<(&'static str, u64), u64>,
    newtype: Option<&'static str>,
    /// Whether what has no number yet gets none: where the order of things tells nothing.
    unordered: bool,
}

/// The number of what has none.
const NAMELESS: u64 = u64::MAX;

impl Same {
    pub(super) fn at(now: Now, names: &Names) -> Same {
        let number = |(id, name): (String, &str)| {
            let mut hash = StateHasher::default();
            hash.write(name.as_bytes());
            (id, hash.finish())
        };
        Same {
            hash: StateHasher::default(),
            now,
            names: names.all().map(number).collect(),
            numbers: BTreeMap::new(),
            newtype: None,
            unordered: false,
        }
    }

    /// The parts, whatever their order.
    pub(super) fn with_each<T: Serialize>(mut self, parts: impl Iterator<Item = T>) -> Same {
        let whole = self.hash;
        self.unordered = true;
        let mut sum = 0_u64;
        for part in parts {
            self.hash = StateHasher::default();
            let _ = part.serialize(&mut self);
            sum = sum.wrapping_add(self.hash.finish());
        }
        self.unordered = false;
        self.hash = whole;
        self.hash.write_u64(sum);
        self
    }

    pub(super) fn with(mut self, part: &impl Serialize) -> Same {
        // Nothing in a state fails to be looked at; if it did, states would only be more different.
        let _ = part.serialize(&mut self);
        self
    }

    pub(super) fn finish(self) -> u64 {
        self.hash.finish()
    }

    fn signed(&mut self, value: i64) {
        self.hash.write_u64(value as u64);
    }

    /// A number as it is, unless its type says that only its place in time or order counts.
    fn number(&mut self, value: u64) {
        let value = match self.newtype.take() {
            Some("Instant") => value.wrapping_sub(self.now.at.0),
            Some(kind @ ("Op" | "CommitId" | "RequestId" | "SessionId")) => {
                let next = self.numbers.len() as u64;
                match self.numbers.get(&(kind, value)) {
                    Some(number) => *number,
                    None if self.unordered => NAMELESS,
                    None => {
                        self.numbers.insert((kind, value), next);
                        next
                    }
                }
            }
            Some(_) | None => value,
        };
        self.hash.write_u64(value);
    }
}

/// Looking at a state does not fail.
#[derive(Debug)]
pub(super) struct Never;

impl Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a state cannot be inspected")
    }
}

impl std::error::Error for Never {}

impl ser::Error for Never {
    fn custom<T: Display>(_: T) -> Never {
        Never
    }
}

type Done = Result<(), Never>;

impl ser::Serializer for &mut Same {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_bool(self, v: bool) -> Done {
        self.number(u64::from(v));
        Ok(())
    }
    fn serialize_i8(self, v: i8) -> Done {
        self.serialize_i64(i64::from(v))
    }
    fn serialize_i16(self, v: i16) -> Done {
        self.serialize_i64(i64::from(v))
    }
    fn serialize_i32(self, v: i32) -> Done {
        self.serialize_i64(i64::from(v))
    }
    fn serialize_i64(self, v: i64) -> Done {
        let wall = self.newtype.take() == Some("Timestamp") && v != 0;
        self.signed(if wall {
            v.wrapping_sub(self.now.wall.0)
        } else {
            v
        });
        Ok(())
    }
    fn serialize_u8(self, v: u8) -> Done {
        self.serialize_u64(u64::from(v))
    }
    fn serialize_u16(self, v: u16) -> Done {
        self.serialize_u64(u64::from(v))
    }
    fn serialize_u32(self, v: u32) -> Done {
        self.serialize_u64(u64::from(v))
    }
    fn serialize_u64(self, v: u64) -> Done {
        self.number(v);
        Ok(())
    }
    fn serialize_f32(self, v: f32) -> Done {
        self.serialize_f64(f64::from(v))
    }
    fn serialize_f64(self, v: f64) -> Done {
        self.hash.write_u64(v.to_bits());
        Ok(())
    }
    fn serialize_char(self, v: char) -> Done {
        self.serialize_u64(u64::from(u32::from(v)))
    }
    fn serialize_str(self, v: &str) -> Done {
        if is_uuid(v) {
            let number = self.names.get(v).copied().unwrap_or(NAMELESS);
            self.hash.write_u64(number);
        } else {
            self.hash.write_usize(v.len());
            self.hash.write(v.as_bytes());
        }
        Ok(())
    }
    fn serialize_bytes(self, v: &[u8]) -> Done {
        self.hash.write(v);
        Ok(())
    }
    fn serialize_none(self) -> Done {
        self.hash.write_u64(1);
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        self.hash.write_u64(2);
        value.serialize(self)
    }
    fn serialize_unit(self) -> Done {
        self.hash.write_u64(3);
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Done {
        Ok(())
    }
    fn serialize_unit_variant(self, _: &'static str, index: u32, _: &'static str) -> Done {
        self.hash.write_u32(index);
        Ok(())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Done {
        self.newtype = Some(name);
        let done = value.serialize(&mut *self);
        self.newtype = None;
        done
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Done {
        self.hash.write_u32(index);
        value.serialize(self)
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<Self, Never> {
        self.hash.write_usize(len.unwrap_or(usize::MAX));
        Ok(self)
    }
    fn serialize_tuple(self, len: usize) -> Result<Self, Never> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Self, Never> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        len: usize,
    ) -> Result<Self, Never> {
        self.hash.write_u32(index);
        self.serialize_seq(Some(len))
    }
    fn serialize_map(self, len: Option<usize>) -> Result<Self, Never> {
        self.serialize_seq(len)
    }
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Self, Never> {
        self.serialize_seq(Some(len))
    }
    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self, Never> {
        self.serialize_tuple_variant(name, index, variant, len)
    }
}

macro_rules! items {
    ($($kind:ident $item:ident,)*) => {$(
        impl ser::$kind for &mut Same {
            type Ok = ();
            type Error = Never;
            fn $item<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
                value.serialize(&mut **self)
            }
            fn end(self) -> Done {
                Ok(())
            }
        }
    )*};
}

items! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

impl ser::SerializeMap for &mut Same {
    type Ok = ();
    type Error = Never;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        key.serialize(&mut **self)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(&mut **self)
    }
    fn end(self) -> Done {
        Ok(())
    }
}

macro_rules! fields {
    ($($kind:ident,)*) => {$(
        impl ser::$kind for &mut Same {
            type Ok = ();
            type Error = Never;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Done {
                if IGNORED.contains(&name) {
                    return Ok(());
                }
                value.serialize(&mut **self)
            }
            fn end(self) -> Done {
                Ok(())
            }
        }
    )*};
}

fields! {
    SerializeStruct,
    SerializeStructVariant,
}

/// Whether this is how ids are written.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && [8, 13, 18, 23]
            .iter()
            .all(|at| text.as_bytes().get(*at) == Some(&b'-'))
}
