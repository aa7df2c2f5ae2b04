//! A hash of whatever can be serialised, without what is hidden in recordings. It is the same on every
//! machine and keeps no secret.
//!
//! A secret that was mixed from others when it was recorded is mixed from their tokens when it is
//! replayed, so nothing that is hidden counts, not even how long it is. A part that is empty (nothing,
//! `false`, 0, no text, an empty list, a struct of such fields) has the hash 0, and a field whose hash is 0
//! counts as one that is not there.

use std::fmt::{self, Display};

use drover_core::store::{Batch, CommitId};
use serde::ser::{self, Serialize, Serializer};
use serde::{Deserialize, Deserializer};

use crate::redact::{How, Redacted};

/// A hash of a state or of a commit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ContentHash(pub u64);

impl ContentHash {
    /// The hash of all that is shown of a value.
    pub fn of<T: Serialize>(value: &T) -> ContentHash {
        // Hashing refuses nothing; a value that refuses to be written has the hash of nothing.
        ContentHash(
            Redacted::new(value, How::Omit)
                .serialize(Hasher)
                .unwrap_or(0),
        )
    }

    /// The hash of a commit.
    pub fn of_commit(id: CommitId, batch: &Batch) -> ContentHash {
        ContentHash::of(&(id, batch))
    }
}

impl Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// As text: not every reader of JSON keeps as many bits.
impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let hash = u64::from_str_radix(&text, 16).map_err(serde::de::Error::custom)?;
        Ok(ContentHash(hash))
    }
}

/// Takes one more word into a hash.
#[inline]
pub fn mix(hash: u64, word: u64) -> u64 {
    // The rotation keeps order in the result; the product spreads each bit over both halves.
    let product = u128::from(hash.rotate_left(23) ^ word) * 0x9e37_79b9_7f4a_7c15;
    let (low, high) = (product & u128::from(u64::MAX), product >> 64);
    u64::try_from(low ^ high)
        .unwrap_or(0)
        .wrapping_add(0x2545_f491_4f6c_dd1d)
}

fn of_number(number: u64) -> u64 {
    if number == 0 { 0 } else { mix(1, number) }
}

fn of_bytes(bytes: &[u8]) -> u64 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let words = eights.iter().chain([&last]).copied();
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    match length {
        0 => 0,
        length => words.map(u64::from_le_bytes).fold(length, mix),
    }
}

/// A serializer whose format is a hash.
struct Hasher;

macro_rules! numbers {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, v: $type) -> Result<u64, fmt::Error> {
            Ok(of_number(u64::from_le_bytes(i64::from(v).to_le_bytes())))
        }
    )*};
}

impl Serializer for Hasher {
    type Ok = u64;
    type Error = fmt::Error;
    type SerializeSeq = Parts;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = Parts;
    type SerializeMap = Parts;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    numbers!(
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32,
        serialize_i64 i64, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32
    );

    fn serialize_u64(self, v: u64) -> Result<u64, fmt::Error> {
        Ok(of_number(v))
    }
    fn serialize_f32(self, v: f32) -> Result<u64, fmt::Error> {
        self.serialize_f64(f64::from(v))
    }
    fn serialize_f64(self, v: f64) -> Result<u64, fmt::Error> {
        Ok(of_number(v.to_bits()))
    }
    fn serialize_char(self, v: char) -> Result<u64, fmt::Error> {
        Ok(of_number(u64::from(v)))
    }
    fn serialize_str(self, v: &str) -> Result<u64, fmt::Error> {
        Ok(of_bytes(v.as_bytes()))
    }
    fn serialize_bytes(self, v: &[u8]) -> Result<u64, fmt::Error> {
        Ok(of_bytes(v))
    }
    fn serialize_none(self) -> Result<u64, fmt::Error> {
        Ok(0)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<u64, fmt::Error> {
        Ok(mix(2, v.serialize(self)?))
    }
    fn serialize_unit(self) -> Result<u64, fmt::Error> {
        Ok(0)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<u64, fmt::Error> {
        Ok(0)
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<u64, fmt::Error> {
        Ok(of_bytes(variant.as_bytes()))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        v: &T,
    ) -> Result<u64, fmt::Error> {
        v.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        v: &T,
    ) -> Result<u64, fmt::Error> {
        Ok(mix(of_bytes(variant.as_bytes()), v.serialize(self)?))
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Parts, fmt::Error> {
        Ok(Parts(0))
    }
    fn serialize_tuple(self, _: usize) -> Result<Parts, fmt::Error> {
        Ok(Parts(0))
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts, fmt::Error> {
        Ok(Parts(0))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts, fmt::Error> {
        Ok(Parts(of_bytes(variant.as_bytes())))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Parts, fmt::Error> {
        Ok(Parts(0))
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts, fmt::Error> {
        Ok(Parts(0))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts, fmt::Error> {
        Ok(Parts(of_bytes(variant.as_bytes())))
    }
}

/// The hash of the parts so far.
struct Parts(u64);

impl Parts {
    /// One that counts also where it is empty.
    fn item<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), fmt::Error> {
        self.0 = mix(self.0, v.serialize(Hasher)?);
        Ok(())
    }

    /// One that counts where it is not empty.
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, v: &T) -> Result<(), fmt::Error> {
        let hash = v.serialize(Hasher)?;
        if hash != 0 {
            self.0 = mix(mix(self.0, of_bytes(name.as_bytes())), hash);
        }
        Ok(())
    }
}

macro_rules! parts {
    ($($of:ident { $(fn $method:ident($($name:ident)?) $do:ident)* })*) => {$(
        impl ser::$of for Parts {
            type Ok = u64;
            type Error = fmt::Error;
            $(fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($name: &'static str,)?
                v: &T,
            ) -> Result<(), fmt::Error> {
                self.$do($($name,)? v)
            })*
            fn end(self) -> Result<u64, fmt::Error> {
                Ok(self.0)
            }
        }
    )*};
}

parts!(
    SerializeSeq { fn serialize_element() item }
    SerializeTuple { fn serialize_element() item }
    SerializeTupleStruct { fn serialize_field() item }
    SerializeTupleVariant { fn serialize_field() item }
    SerializeMap { fn serialize_key() item fn serialize_value() item }
    SerializeStruct { fn serialize_field(name) field }
    SerializeStructVariant { fn serialize_field(name) field }
);

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde::Serialize;

    use super::*;

    fn hash(value: &(impl Serialize + ?Sized)) -> u64 {
        value.serialize(Hasher).unwrap_or_default()
    }

    #[derive(Serialize)]
    enum Shape {
        Nothing,
        Number(u32),
        Pair(u32, u32),
        Named { size: u32, name: &'static str },
        Other { size: u32, name: &'static str },
    }

    #[test]
    fn different_values_have_different_hashes() {
        let map = |key: &str, value: u32| BTreeMap::from([(key.to_owned(), value)]);
        let named = |size, name| hash(&Shape::Named { size, name });
        let all = [
            hash(&Shape::Nothing),
            hash(&Shape::Number(1)),
            hash(&Shape::Number(2)),
            hash(&Shape::Pair(1, 2)),
            hash(&Shape::Pair(2, 1)),
            named(1, "a"),
            named(1, "b"),
            named(2, "a"),
            named(0, "a"),
            hash(&Shape::Other { size: 2, name: "a" }),
            hash(&map("a", 0)),
            hash(&map("a", 1)),
            hash(&map("b", 0)),
            hash(&["ab", "c"]),
            hash(&["a", "bc"]),
            hash(&[0, 0]),
            hash(&[0]),
            hash(&vec![vec![1], vec![2, 3]]),
            hash(&vec![vec![1, 2], vec![3]]),
            hash(&Some(1)),
            hash(&Some(0)),
            hash(&0),
            hash(&1),
            hash(&-1),
            hash("a"),
            hash("a\0"),
            hash("0123456789"),
            hash("0123456798"),
            hash(&1.5),
        ];
        let different: BTreeSet<u64> = all.into();
        assert_eq!(different.len(), all.len());
    }

    #[test]
    fn empty_field_hashes_as_absent() {
        #[derive(Serialize)]
        struct Old {
            name: &'static str,
        }
        #[derive(Default, Serialize)]
        struct New {
            name: &'static str,
            since: Option<u32>,
            times: u32,
            list: Vec<u32>,
            inner: Option<Box<New>>,
        }
        let new = New {
            name: "a",
            ..New::default()
        };
        assert_eq!(hash(&Old { name: "a" }), hash(&new));
        assert_ne!(hash(&new), hash(&New { times: 1, ..new }));
    }
}
