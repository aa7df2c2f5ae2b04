//! A serializer around another one, which hides on the way.

use serde::ser::{self, Serialize, Serializer};

use super::policy::{self, Fields, Rule};
use super::{Context, How, Redacted};

/// Writes to `to` what may be seen.
pub(super) struct Hiding<S> {
    pub(super) to: S,
    pub(super) cx: Context,
}

impl<S: Serializer> Hiding<S> {
    fn parts<C>(
        self,
        owner: &str,
        begin: impl FnOnce(S) -> Result<C, S::Error>,
    ) -> Result<Parts<C>, S::Error> {
        Ok(Parts {
            to: begin(self.to)?,
            cx: self.cx,
            fields: policy::fields(owner),
            at: 0,
            entry: self.cx.rule,
        })
    }

    /// A number, of which `text` is the text.
    fn number(
        self,
        text: impl FnOnce() -> String,
        show: impl FnOnce(S) -> Result<S::Ok, S::Error>,
    ) -> Result<S::Ok, S::Error> {
        match (self.cx.rule, self.cx.how) {
            (Rule::HideAll | Rule::DriverConfig | Rule::Service, How::Omit) => {
                self.to.serialize_unit()
            }
            (Rule::HideAll | Rule::DriverConfig | Rule::Service, How::Token(key)) => {
                let text = text();
                let hidden = key.hide(&text);
                if hidden == text {
                    show(self.to)
                } else {
                    self.to.serialize_str(&hidden)
                }
            }
            (
                Rule::Show | Rule::HideTexts | Rule::HidePairs | Rule::Checked | Rule::EventDetails,
                _,
            ) => show(self.to),
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

/// What is begun with the same arguments, and has parts.
macro_rules! with_parts {
    ($($method:ident $parts:ident ($($arg:ident: $type:ty),*) of $owner:expr;)*) => {$(
        fn $method(self, $($arg: $type),*) -> Result<Self::$parts, S::Error> {
            self.parts($owner, |to| to.$method($($arg),*))
        }
    )*};
}

impl<S: Serializer> Serializer for Hiding<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Parts<S::SerializeSeq>;
    type SerializeTuple = Parts<S::SerializeTuple>;
    type SerializeTupleStruct = Parts<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Parts<S::SerializeTupleVariant>;
    type SerializeMap = Parts<S::SerializeMap>;
    type SerializeStruct = Parts<S::SerializeStruct>;
    type SerializeStructVariant = Parts<S::SerializeStructVariant>;

    numbers!(
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
        serialize_f32 f32, serialize_f64 f64
    );

    with_parts! {
        serialize_seq SerializeSeq (length: Option<usize>) of "";
        serialize_tuple SerializeTuple (length: usize) of "";
        serialize_map SerializeMap (length: Option<usize>) of "";
        serialize_tuple_struct SerializeTupleStruct (name: &'static str, length: usize) of name;
        serialize_struct SerializeStruct (name: &'static str, length: usize) of name;
        serialize_struct_variant SerializeStructVariant
            (name: &'static str, index: u32, variant: &'static str, length: usize) of name;
    }

    fn serialize_tuple_variant(
        mut self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.cx = self.cx.with(policy::of_variant(name, variant));
        self.parts(name, |to| {
            to.serialize_tuple_variant(name, index, variant, length)
        })
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let cx = self.cx.with(policy::of_type(name));
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
        let cx = self.cx.with(policy::of_variant(name, variant));
        let value = Redacted { value, cx };
        self.to
            .serialize_newtype_variant(name, index, variant, &value)
    }
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
    fn is_human_readable(&self) -> bool {
        self.to.is_human_readable()
    }
}

/// The parts of one value.
pub(super) struct Parts<C> {
    to: C,
    cx: Context,
    /// The rules of the fields of their type.
    fields: Fields,
    /// How many came before.
    at: usize,
    /// The rule of the map's next value.
    entry: Rule,
}

impl<C> Parts<C> {
    fn part<'v, T: ?Sized>(&self, rule: Rule, value: &'v T) -> Redacted<'v, T> {
        let cx = self.cx.with(Some(rule));
        Redacted { value, cx }
    }

    fn item<'v, T: ?Sized>(&mut self, value: &'v T) -> Redacted<'v, T> {
        self.part(self.cx.rule, value)
    }

    /// Of a pair, which is a tuple of two, the first may be shown and the second not.
    fn of_tuple<'v, T: ?Sized>(&mut self, value: &'v T) -> Redacted<'v, T> {
        self.at += 1;
        let rule = match (self.cx.rule, self.at) {
            (Rule::HidePairs, 1) => Rule::Show,
            (Rule::HidePairs, _) => Rule::HideAll,
            (rule, _) => rule,
        };
        self.part(rule, value)
    }

    fn key<'v, T: Serialize + ?Sized>(&mut self, key: &'v T) -> Redacted<'v, T> {
        if policy::hides_keys(self.cx.rule) {
            let text = serde_json::to_string(key).unwrap_or_default();
            self.entry = policy::of_entry(self.cx.rule, text.trim_matches('"'));
        }
        self.part(Rule::Show, key)
    }

    fn value<'v, T: ?Sized>(&mut self, value: &'v T) -> Redacted<'v, T> {
        self.part(self.entry, value)
    }

    fn field<'v, T: ?Sized>(&mut self, name: &str, value: &'v T) -> Redacted<'v, T> {
        self.part(self.fields.rule(name), value)
    }
}

macro_rules! parts {
    ($($of:ident { $(fn $method:ident($($name:ident)?) $hide:ident)* })*) => {$(
        impl<C: ser::$of> ser::$of for Parts<C> {
            type Ok = C::Ok;
            type Error = C::Error;
            $(fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($name: &'static str,)?
                value: &T,
            ) -> Result<(), C::Error> {
                let value = self.$hide($($name,)? value);
                self.to.$method($($name,)? &value)
            })*
            fn end(self) -> Result<C::Ok, C::Error> {
                self.to.end()
            }
        }
    )*};
}

parts!(
    SerializeSeq { fn serialize_element() item }
    SerializeTuple { fn serialize_element() of_tuple }
    SerializeTupleStruct { fn serialize_field() item }
    SerializeTupleVariant { fn serialize_field() item }
    SerializeMap { fn serialize_key() key fn serialize_value() value }
    SerializeStruct { fn serialize_field(name) field }
    SerializeStructVariant { fn serialize_field(name) field }
);

impl Context {
    fn with(self, rule: Option<Rule>) -> Context {
        Context {
            rule: rule.unwrap_or(self.rule),
            ..self
        }
    }
}
