//! The parts of a value that has several, on their way through [`super::serializer`].

use core::fmt;

use serde::ser::{self, Serialize};

use super::policy::{self, Rule};
use super::{Context, Redacted};

/// The parts of one value.
pub(super) struct Compound<C> {
    to: C,
    cx: Context,
    /// The type whose parts they are; empty for lists and maps.
    owner: &'static str,
    /// How many came before.
    at: usize,
    /// The rule of the map's next value.
    entry: Rule,
}

impl<C> Compound<C> {
    pub(super) fn new(to: C, cx: Context, owner: &'static str) -> Compound<C> {
        Compound {
            to,
            cx,
            owner,
            at: 0,
            entry: cx.rule,
        }
    }

    fn item<'v, T: ?Sized>(&mut self, value: &'v T) -> Redacted<'v, T> {
        self.at += 1;
        Redacted { value, cx: self.cx }
    }

    fn of_tuple<'v, T: ?Sized>(&mut self, value: &'v T) -> Redacted<'v, T> {
        let rule = match (self.cx.rule, self.at) {
            (Rule::HidePairs, 0) => Rule::Show,
            (Rule::HidePairs, _) => Rule::HideAll,
            (rule, _) => rule,
        };
        let cx = self.cx.with(rule);
        self.at += 1;
        Redacted { value, cx }
    }

    fn field<'v, T: ?Sized>(&self, name: &str, value: &'v T) -> Redacted<'v, T> {
        let cx = self.cx.with(policy::of_field(self.owner, name));
        Redacted { value, cx }
    }
}

impl<C: ser::SerializeSeq> ser::SerializeSeq for Compound<C> {
    type Ok = C::Ok;
    type Error = C::Error;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        let value = self.item(value);
        self.to.serialize_element(&value)
    }
    fn end(self) -> Result<C::Ok, C::Error> {
        self.to.end()
    }
}

impl<C: ser::SerializeTuple> ser::SerializeTuple for Compound<C> {
    type Ok = C::Ok;
    type Error = C::Error;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        let value = self.of_tuple(value);
        self.to.serialize_element(&value)
    }
    fn end(self) -> Result<C::Ok, C::Error> {
        self.to.end()
    }
}

impl<C: ser::SerializeTupleStruct> ser::SerializeTupleStruct for Compound<C> {
    type Ok = C::Ok;
    type Error = C::Error;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        let value = self.item(value);
        self.to.serialize_field(&value)
    }
    fn end(self) -> Result<C::Ok, C::Error> {
        self.to.end()
    }
}

impl<C: ser::SerializeTupleVariant> ser::SerializeTupleVariant for Compound<C> {
    type Ok = C::Ok;
    type Error = C::Error;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        let value = self.item(value);
        self.to.serialize_field(&value)
    }
    fn end(self) -> Result<C::Ok, C::Error> {
        self.to.end()
    }
}

impl<C: ser::SerializeMap> ser::SerializeMap for Compound<C> {
    type Ok = C::Ok;
    type Error = C::Error;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        if policy::looks_at_keys(self.cx.rule) {
            self.entry = policy::of_entry(self.cx.rule, &Text(key).to_string());
        }
        let cx = self.cx.with(Rule::Show);
        self.to.serialize_key(&Redacted { value: key, cx })
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        let cx = self.cx.with(self.entry);
        self.to.serialize_value(&Redacted { value, cx })
    }
    fn end(self) -> Result<C::Ok, C::Error> {
        self.to.end()
    }
}

impl<C: ser::SerializeStruct> ser::SerializeStruct for Compound<C> {
    type Ok = C::Ok;
    type Error = C::Error;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), C::Error> {
        let value = self.field(name, value);
        self.to.serialize_field(name, &value)
    }
    fn skip_field(&mut self, name: &'static str) -> Result<(), C::Error> {
        self.to.skip_field(name)
    }
    fn end(self) -> Result<C::Ok, C::Error> {
        self.to.end()
    }
}

impl<C: ser::SerializeStructVariant> ser::SerializeStructVariant for Compound<C> {
    type Ok = C::Ok;
    type Error = C::Error;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), C::Error> {
        let value = self.field(name, value);
        self.to.serialize_field(name, &value)
    }
    fn end(self) -> Result<C::Ok, C::Error> {
        self.to.end()
    }
}

/// A map's key as text.
struct Text<'a, T: ?Sized>(&'a T);

impl<T: Serialize + ?Sized> fmt::Display for Text<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}
