//! Serialising into a hash: what a value says of itself, in its order.

use core::fmt::{self, Display};

use serde::ser::{self, Serialize};

use super::redact::{How, Redacted};

/// The FNV-1a hash of 64 bits: no secret is kept by it, and it is the same on every machine.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Takes these bytes in.
    pub fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The hash of all that was taken in.
    pub fn finish(self) -> u64 {
        self.0
    }
}

/// The hash of all that is not hidden of a state: kinds, ids, operations, launches, names of tasks and
/// of variables, states, counters, times, indices, the order. Not the values of variables and of
/// drivers' configurations, and not the words of events and of failures, into which such values may
/// have been mixed.
pub fn fingerprint<T: Serialize>(state: &T) -> u64 {
    let mut hash = Fnv::default();
    let shown = Redacted::new(state, How::Omit);
    // Hashing cannot fail; if a value refuses to be written, what came before it is compared.
    let _ = shown.serialize(Digest(&mut hash));
    hash.finish()
}

/// A serializer whose format is a hash. Kinds and lengths are hashed with the values, so that no
/// two different values look the same by where one ends and the next begins.
#[derive(Debug)]
pub struct Digest<'a>(pub &'a mut Fnv);

impl Digest<'_> {
    fn put(self, kind: u8, bytes: &[u8]) -> Result<(), Refused> {
        self.0.write(&[kind]);
        self.0.write(bytes);
        Ok(())
    }

    fn length(&mut self, kind: u8, length: usize) {
        self.0.write(&[kind]);
        // The same on machines of any word size.
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        self.0.write(&length.to_le_bytes());
    }
}

/// A value could not be serialised, which is its own doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(String);

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: Display>(why: T) -> Self {
        Refused(why.to_string())
    }
}

macro_rules! numbers {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, v: $type) -> Result<(), Refused> {
            self.put(b'n', &v.to_le_bytes())
        }
    )*};
}

impl<'a> ser::Serializer for Digest<'a> {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    numbers!(
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
        serialize_f32 f32, serialize_f64 f64
    );

    fn serialize_bool(self, v: bool) -> Result<(), Refused> {
        self.put(b'b', &[u8::from(v)])
    }
    fn serialize_char(self, v: char) -> Result<(), Refused> {
        self.put(b'c', &u32::from(v).to_le_bytes())
    }
    fn serialize_str(mut self, v: &str) -> Result<(), Refused> {
        self.length(b's', v.len());
        self.0.write(v.as_bytes());
        Ok(())
    }
    fn serialize_bytes(mut self, v: &[u8]) -> Result<(), Refused> {
        self.length(b'y', v.len());
        self.0.write(v);
        Ok(())
    }
    fn serialize_none(self) -> Result<(), Refused> {
        self.put(b'-', &[])
    }
    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<(), Refused> {
        self.0.write(b"+");
        v.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), Refused> {
        self.put(b'-', &[])
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Refused> {
        self.put(b'-', &[])
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Refused> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        v: &T,
    ) -> Result<(), Refused> {
        v.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        v: &T,
    ) -> Result<(), Refused> {
        self.length(b'v', variant.len());
        self.0.write(variant.as_bytes());
        v.serialize(self)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'a>, Refused> {
        Ok(Parts::begin(self.0, ""))
    }
    fn serialize_tuple(self, _: usize) -> Result<Parts<'a>, Refused> {
        Ok(Parts::begin(self.0, ""))
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Refused> {
        Ok(Parts::begin(self.0, ""))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Refused> {
        Ok(Parts::begin(self.0, variant))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'a>, Refused> {
        Ok(Parts::begin(self.0, ""))
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Refused> {
        Ok(Parts::begin(self.0, ""))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Refused> {
        Ok(Parts::begin(self.0, variant))
    }
}

/// The parts of a value that has several.
#[derive(Debug)]
pub struct Parts<'a>(&'a mut Fnv);

impl<'a> Parts<'a> {
    fn begin(hash: &'a mut Fnv, name: &str) -> Parts<'a> {
        hash.write(b"(");
        hash.write(name.as_bytes());
        Parts(hash)
    }

    fn part<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Refused> {
        v.serialize(Digest(self.0))
    }

    fn named<T: Serialize + ?Sized>(&mut self, name: &str, v: &T) -> Result<(), Refused> {
        Digest(self.0).put(b'f', name.as_bytes())?;
        self.part(v)
    }

    fn close(self) -> Result<(), Refused> {
        self.0.write(b")");
        Ok(())
    }
}

macro_rules! parts {
    ($($of:ident $method:ident),*) => {$(
        impl ser::$of for Parts<'_> {
            type Ok = ();
            type Error = Refused;
            fn $method<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Refused> {
                self.part(v)
            }
            fn end(self) -> Result<(), Refused> {
                self.close()
            }
        }
    )*};
}

parts!(
    SerializeSeq serialize_element, SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field
);

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Refused;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Refused> {
        self.part(key)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Refused> {
        self.part(v)
    }
    fn end(self) -> Result<(), Refused> {
        self.close()
    }
}

macro_rules! fields {
    ($($of:ident),*) => {$(
        impl ser::$of for Parts<'_> {
            type Ok = ();
            type Error = Refused;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                v: &T,
            ) -> Result<(), Refused> {
                self.named(name, v)
            }
            fn end(self) -> Result<(), Refused> {
                self.close()
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

#[cfg(test)]
mod tests {
    use super::*;

    use serde::Serialize;
    use std::collections::BTreeMap;

    fn digest(value: &(impl Serialize + ?Sized)) -> u64 {
        let mut hash = Fnv::default();
        assert_eq!(value.serialize(Digest(&mut hash)), Ok(()));
        hash.finish()
    }

    #[derive(Serialize)]
    enum Shape {
        Nothing,
        Number(u32),
        Pair(u32, u32),
        Named { size: u32, name: String },
        Other { size: u32, name: String },
    }

    #[derive(Serialize)]
    struct Wrapped(u32);

    fn named(size: u32, name: &str) -> Shape {
        let name = name.to_owned();
        Shape::Named { size, name }
    }

    fn other(size: u32, name: &str) -> Shape {
        let name = name.to_owned();
        Shape::Other { size, name }
    }

    #[test]
    fn values_that_differ_have_other_digests() {
        let map = |key: &str, value: u32| BTreeMap::from([(key.to_owned(), value)]);
        let all = [
            digest(&Shape::Nothing),
            digest(&Shape::Number(1)),
            digest(&Shape::Number(2)),
            digest(&Shape::Pair(1, 2)),
            digest(&Shape::Pair(2, 1)),
            digest(&named(1, "a")),
            digest(&named(1, "b")),
            digest(&named(2, "a")),
            digest(&other(2, "a")),
            digest(&map("a", 1)),
            digest(&map("a", 2)),
            digest(&map("b", 1)),
            digest(&["ab", "c"]),
            digest(&["a", "bc"]),
            digest(&vec![vec![1], vec![2, 3]]),
            digest(&vec![vec![1, 2], vec![3]]),
            digest(&Some(1)),
            digest(&None::<u32>),
            digest(&1),
            digest(&'a'),
            digest(&'b'),
            digest("a"),
            digest(&true),
            digest(&false),
            digest(&1.5),
        ];
        let different: std::collections::BTreeSet<u64> = all.into();
        assert_eq!(different.len(), all.len());
        assert_eq!(
            digest(&Wrapped(1)),
            digest(&1_u32),
            "a name around it says nothing"
        );
    }
}
