//! From declared types to bytes.
//!
//! Some structs are written without their empty fields ([`OMIT_EMPTY`]): each field is written, and removed
//! again if it turns out to be empty.

use std::fmt;

use serde::ser::{self, Serialize};

/// The structs that are written without their empty fields.
const OMIT_EMPTY: &[&str] = &[
    "Allocation",
    "AllocUpdate",
    "NetworkResource",
    "Port",
    "AllocatedPortMapping",
];

/// Why a value cannot be encoded. All declared types of this crate can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unencodable(String);

impl fmt::Display for Unencodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unencodable {}

impl ser::Error for Unencodable {
    fn custom<T: fmt::Display>(why: T) -> Unencodable {
        Unencodable(why.to_string())
    }
}

/// Encodes a message.
///
/// # Errors
/// If the type cannot be represented: enums with data, sequences of unknown length, 4 GiB in one object.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Unencodable> {
    let mut out = Vec::new();
    encode_onto(&mut out, value)?;
    Ok(out)
}

/// Appends the encoding of a message.
///
/// # Errors
/// As [`encode`].
pub fn encode_onto<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<(), Unencodable> {
    value.serialize(&mut Encoder { out })
}

struct Encoder<'a> {
    out: &'a mut Vec<u8>,
}

impl Encoder<'_> {
    /// A length: in the low bits of `mark` if it is less than `small`, else in 16 bits after `wide`, or in 32
    /// after the mark that follows `wide`.
    fn length(
        &mut self,
        length: usize,
        mark: u8,
        small: usize,
        wide: u8,
    ) -> Result<(), Unencodable> {
        if length < small {
            self.out.push(mark | length as u8);
        } else if let Ok(length) = u16::try_from(length) {
            self.out.push(wide);
            self.out.extend(length.to_be_bytes());
        } else if let Ok(length) = u32::try_from(length) {
            self.out.push(wide + 1);
            self.out.extend(length.to_be_bytes());
        } else {
            return Err(Unencodable(format!(
                "{length} bytes or items in one object"
            )));
        }
        Ok(())
    }

    fn nil(&mut self) {
        self.out.push(0xc0);
    }
}

fn unrepresentable<T>(what: &str) -> Result<T, Unencodable> {
    Err(Unencodable(format!("{what} cannot be represented")))
}

impl<'a, 'b> ser::Serializer for &'a mut Encoder<'b> {
    type Ok = ();
    type Error = Unencodable;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = ser::Impossible<(), Unencodable>;
    type SerializeTupleVariant = ser::Impossible<(), Unencodable>;
    type SerializeMap = Self;
    type SerializeStruct = Fields<'a, 'b>;
    type SerializeStructVariant = ser::Impossible<(), Unencodable>;

    fn serialize_bool(self, value: bool) -> Result<(), Unencodable> {
        self.out.push(if value { 0xc3 } else { 0xc2 });
        Ok(())
    }
    fn serialize_i8(self, value: i8) -> Result<(), Unencodable> {
        self.serialize_i64(value.into())
    }
    fn serialize_i16(self, value: i16) -> Result<(), Unencodable> {
        self.serialize_i64(value.into())
    }
    fn serialize_i32(self, value: i32) -> Result<(), Unencodable> {
        self.serialize_i64(value.into())
    }
    fn serialize_i64(self, value: i64) -> Result<(), Unencodable> {
        if (-32..128).contains(&value) {
            self.out.push(value as u8);
        } else if let Ok(value) = i8::try_from(value) {
            self.out.extend([0xd0, value as u8]);
        } else if let Ok(value) = i16::try_from(value) {
            self.out.push(0xd1);
            self.out.extend(value.to_be_bytes());
        } else if let Ok(value) = i32::try_from(value) {
            self.out.push(0xd2);
            self.out.extend(value.to_be_bytes());
        } else {
            self.out.push(0xd3);
            self.out.extend(value.to_be_bytes());
        }
        Ok(())
    }
    fn serialize_u8(self, value: u8) -> Result<(), Unencodable> {
        self.serialize_u64(value.into())
    }
    fn serialize_u16(self, value: u16) -> Result<(), Unencodable> {
        self.serialize_u64(value.into())
    }
    fn serialize_u32(self, value: u32) -> Result<(), Unencodable> {
        self.serialize_u64(value.into())
    }
    fn serialize_u64(self, value: u64) -> Result<(), Unencodable> {
        if value < 128 {
            self.out.push(value as u8);
        } else if let Ok(value) = u8::try_from(value) {
            self.out.extend([0xcc, value]);
        } else if let Ok(value) = u16::try_from(value) {
            self.out.push(0xcd);
            self.out.extend(value.to_be_bytes());
        } else if let Ok(value) = u32::try_from(value) {
            self.out.push(0xce);
            self.out.extend(value.to_be_bytes());
        } else {
            self.out.push(0xcf);
            self.out.extend(value.to_be_bytes());
        }
        Ok(())
    }
    fn serialize_f32(self, value: f32) -> Result<(), Unencodable> {
        self.out.push(0xca);
        self.out.extend(value.to_be_bytes());
        Ok(())
    }
    fn serialize_f64(self, value: f64) -> Result<(), Unencodable> {
        self.out.push(0xcb);
        self.out.extend(value.to_be_bytes());
        Ok(())
    }
    fn serialize_char(self, value: char) -> Result<(), Unencodable> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, value: &str) -> Result<(), Unencodable> {
        self.serialize_bytes(value.as_bytes())
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<(), Unencodable> {
        self.length(value.len(), 0xa0, 32, 0xda)?;
        self.out.extend_from_slice(value);
        Ok(())
    }
    fn serialize_none(self) -> Result<(), Unencodable> {
        self.nil();
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unencodable> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), Unencodable> {
        self.serialize_none()
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Unencodable> {
        self.serialize_none()
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Unencodable> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Unencodable> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Unencodable> {
        unrepresentable(name)
    }
    fn serialize_seq(self, length: Option<usize>) -> Result<Self, Unencodable> {
        match length {
            None => return unrepresentable("a list of unknown length"),
            Some(0) => self.nil(),
            Some(length) => self.length(length, 0x90, 16, 0xdc)?,
        }
        Ok(self)
    }
    fn serialize_tuple(self, length: usize) -> Result<Self, Unencodable> {
        self.serialize_seq(Some(length))
    }
    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Unencodable> {
        unrepresentable(name)
    }
    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Unencodable> {
        unrepresentable(name)
    }
    fn serialize_map(self, length: Option<usize>) -> Result<Self, Unencodable> {
        match length {
            None => return unrepresentable("a map of unknown length"),
            Some(0) => self.nil(),
            Some(length) => self.length(length, 0x80, 16, 0xde)?,
        }
        Ok(self)
    }
    fn serialize_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Fields<'a, 'b>, Unencodable> {
        if OMIT_EMPTY.contains(&name) {
            let start = self.out.len();
            return Ok(Fields {
                encoder: self,
                omit_empty: Some(Written { start, fields: 0 }),
            });
        }
        self.length(length, 0x80, 16, 0xde)?;
        Ok(Fields {
            encoder: self,
            omit_empty: None,
        })
    }
    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Unencodable> {
        unrepresentable(name)
    }
    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The fields of a struct.
struct Fields<'a, 'b> {
    encoder: &'a mut Encoder<'b>,
    /// For a struct without its empty fields, whose number of fields is not known yet.
    omit_empty: Option<Written>,
}

/// Where the struct begins, and how many fields were written.
struct Written {
    start: usize,
    fields: usize,
}

impl ser::SerializeStruct for Fields<'_, '_> {
    type Ok = ();
    type Error = Unencodable;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Unencodable> {
        let start = self.encoder.out.len();
        key.serialize(&mut *self.encoder)?;
        let behind_key = self.encoder.out.len();
        value.serialize(&mut *self.encoder)?;
        if let Some(written) = &mut self.omit_empty {
            // Nil, false, 0 and an empty text; an empty struct is a map of nothing.
            if matches!(
                self.encoder.out[behind_key..],
                [0xc0 | 0xc2 | 0x00 | 0xa0 | 0x80]
            ) {
                self.encoder.out.truncate(start);
            } else {
                written.fields += 1;
            }
        }
        Ok(())
    }

    fn end(self) -> Result<(), Unencodable> {
        if let Some(Written { start, fields }) = self.omit_empty {
            let end = self.encoder.out.len();
            self.encoder.length(fields, 0x80, 16, 0xde)?;
            let mark = self.encoder.out.len() - end;
            self.encoder.out[start..].rotate_right(mark);
        }
        Ok(())
    }
}

impl ser::SerializeSeq for &mut Encoder<'_> {
    type Ok = ();
    type Error = Unencodable;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unencodable> {
        value.serialize(&mut **self)
    }
    fn end(self) -> Result<(), Unencodable> {
        Ok(())
    }
}

impl ser::SerializeTuple for &mut Encoder<'_> {
    type Ok = ();
    type Error = Unencodable;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unencodable> {
        value.serialize(&mut **self)
    }
    fn end(self) -> Result<(), Unencodable> {
        Ok(())
    }
}

impl ser::SerializeMap for &mut Encoder<'_> {
    type Ok = ();
    type Error = Unencodable;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unencodable> {
        key.serialize(&mut **self)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unencodable> {
        value.serialize(&mut **self)
    }
    fn end(self) -> Result<(), Unencodable> {
        Ok(())
    }
}
