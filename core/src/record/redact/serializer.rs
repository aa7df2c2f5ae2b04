//! A serializer around another one, which hides on the way.

use serde::ser::{Serialize, Serializer};

use super::compound::Compound;
use super::policy::{self, Rule};
use super::{Context, How, Redacted};

/// Writes to `to` what may be seen.
pub(super) struct Hiding<S> {
    pub(super) to: S,
    pub(super) cx: Context,
}

impl<S: Serializer> Hiding<S> {
    fn compound<C>(
        self,
        owner: &'static str,
        begin: impl FnOnce(S) -> Result<C, S::Error>,
    ) -> Result<Compound<C>, S::Error> {
        Ok(Compound::new(begin(self.to)?, self.cx, owner))
    }

    /// A number, of which `text` is the text.
    fn number(
        self,
        text: impl FnOnce() -> String,
        show: impl FnOnce(S) -> Result<S::Ok, S::Error>,
    ) -> Result<S::Ok, S::Error> {
        match self.cx.rule {
            Rule::Show | Rule::HideTexts | Rule::HidePairs | Rule::Checked | Rule::EventDetails => {
                show(self.to)
            }
            Rule::HideAll | Rule::DriverConfig => match self.cx.how {
                How::Omit => self.to.serialize_unit(),
                How::Token(key) => {
                    let text = text();
                    let hidden = key.hide(&text);
                    if hidden == text {
                        show(self.to)
                    } else {
                        self.to.serialize_str(&hidden)
                    }
                }
            },
        }
    }
}

macro_rules! numbers {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, v: $type) -> Result<S::Ok, S::Error> {
            self.number(|| v.to_string(), |to| to.$method(v))
        }
    )*};
}

impl<S: Serializer> Serializer for Hiding<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Compound<S::SerializeSeq>;
    type SerializeTuple = Compound<S::SerializeTuple>;
    type SerializeTupleStruct = Compound<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Compound<S::SerializeTupleVariant>;
    type SerializeMap = Compound<S::SerializeMap>;
    type SerializeStruct = Compound<S::SerializeStruct>;
    type SerializeStructVariant = Compound<S::SerializeStructVariant>;

    numbers!(
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
        serialize_f32 f32, serialize_f64 f64
    );

    fn serialize_bool(self, v: bool) -> Result<S::Ok, S::Error> {
        self.to.serialize_bool(v)
    }
    fn serialize_char(self, v: char) -> Result<S::Ok, S::Error> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, v: &str) -> Result<S::Ok, S::Error> {
        match (self.cx.rule, self.cx.how) {
            (Rule::Show, _) => self.to.serialize_str(v),
            (Rule::Checked, _) if policy::is_checked_text(v) => self.to.serialize_str(v),
            (_, How::Omit) => self.to.serialize_unit(),
            (_, How::Token(key)) => self.to.serialize_str(&key.hide(v)),
        }
    }
    fn serialize_bytes(self, v: &[u8]) -> Result<S::Ok, S::Error> {
        match (self.cx.rule, self.cx.how) {
            (Rule::Show, _) => self.to.serialize_bytes(v),
            (_, How::Omit) => self.to.serialize_unit(),
            (_, How::Token(key)) => self.to.serialize_bytes(key.token(v).as_bytes()),
        }
    }
    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.to.serialize_none()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.to.serialize_some(&Redacted { value, cx: self.cx })
    }
    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.to.serialize_unit()
    }
    fn serialize_unit_struct(self, name: &'static str) -> Result<S::Ok, S::Error> {
        self.to.serialize_unit_struct(name)
    }
    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.to.serialize_unit_variant(name, index, variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let cx = policy::of_type(name).map_or(self.cx, |rule| self.cx.with(rule));
        self.to
            .serialize_newtype_struct(name, &Redacted { value, cx })
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let cx = self.cx.of_variant(name, variant);
        let value = Redacted { value, cx };
        self.to
            .serialize_newtype_variant(name, index, variant, &value)
    }
    fn serialize_seq(self, length: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.compound("", |to| to.serialize_seq(length))
    }
    fn serialize_tuple(self, length: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.compound("", |to| to.serialize_tuple(length))
    }
    fn serialize_tuple_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.compound(name, |to| to.serialize_tuple_struct(name, length))
    }
    fn serialize_tuple_variant(
        mut self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.cx = self.cx.of_variant(name, variant);
        let begin = |to: S| to.serialize_tuple_variant(name, index, variant, length);
        self.compound(name, begin)
    }
    fn serialize_map(self, length: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.compound("", |to| to.serialize_map(length))
    }
    fn serialize_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        self.compound(name, |to| to.serialize_struct(name, length))
    }
    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let begin = |to: S| to.serialize_struct_variant(name, index, variant, length);
        self.compound(name, begin)
    }
    fn is_human_readable(&self) -> bool {
        self.to.is_human_readable()
    }
}

impl Context {
    fn of_variant(self, owner: &str, variant: &str) -> Context {
        match policy::of_variant(owner, variant) {
            Some(rule) => self.with(rule),
            None => self,
        }
    }
}
