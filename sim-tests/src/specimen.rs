//! Values of any type in which everything is there: every field is set, every collection has something in it,
//! and each enum is each of its variants in turn. For tests that must not depend on what a world happens
//! to bring about.
//!
//! A value is made by deserialising it from nothing: whatever the type asks for, it gets. What a text has to
//! look like no type says, so where one is refused the next of [`TEXTS`] is tried there from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

use serde::Deserializer;
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};

/// What texts are tried, in this order.
const TEXTS: &[&str] = &[
    "somebody's own words",
    "5ec3e7ab-0000-4000-8000-00000000beef",
    "192.0.2.17",
    "1h2m3s",
    "00c0ffee00c0ffee",
    "00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee",
    "service",
    "2001:db8::17",
];

/// Numbers of more than three digits are hidden where secrets are, so they are large.
const NUMBER: u16 = 12_345;

/// Deeper there is nothing but what has to be.
const DEPTH: usize = 40;

/// Makes values.
#[derive(Debug, Default)]
pub struct Specimens {
    /// Which variant comes next, of each enum at each place. What is in `Ok` is at one place for all types, so the
    /// enum's name belongs to it: enums that count together can miss variants for ever.
    turns: BTreeMap<(TaskPath, &'static str), usize>,
    /// The variants that values had, of each enum.
    seen: BTreeMap<Enum, BTreeSet<usize>>,
    /// Which text is taken at a place.
    texts: BTreeMap<TaskPath, usize>,
}

/// A field or variant, as far as it is told from others: its type, its number, and what of a collection it is.
type TaskPath = (&'static str, usize, &'static str);

/// An enum: its name, which others may have too, and its variants.
type Enum = (&'static str, &'static [&'static str]);

impl Specimens {
    /// The next value.
    ///
    /// # Panics
    /// A text is refused whatever it is: [`TEXTS`] lacks one.
    pub fn draw<T: DeserializeOwned>(&mut self) -> T {
        let turns = self.turns.clone();
        loop {
            // Whose variant was in a value that was refused has its turn again.
            self.turns.clone_from(&turns);
            let mut maker = Maker {
                specimens: &mut *self,
                place: ("", 0, ""),
                depth: 0,
                last_text: None,
                variants: Vec::new(),
            };
            let made = T::deserialize(&mut maker);
            let (last_text, variants) = (maker.last_text, maker.variants);
            match made {
                Ok(value) => {
                    for (of, variant) in variants {
                        self.seen.entry(of).or_default().insert(variant);
                    }
                    return value;
                }
                Err(why) => self.another_text(last_text, &why),
            }
        }
    }

    /// The variants that were in no value yet, of enums that were in some, as `Enum::Variant`.
    pub fn unseen(&self) -> Vec<String> {
        let variants = self.seen.iter().flat_map(|((name, variants), seen)| {
            let all = variants.iter().enumerate();
            let missing = all.filter(|(at, _)| !seen.contains(at));
            missing.map(move |(_, variant)| format!("{name}::{variant}"))
        });
        variants.collect()
    }

    fn another_text(&mut self, refused: Option<TaskPath>, why: &Refused) {
        let Some(place) = refused else {
            panic!("no text is to blame: {why}");
        };
        let text = self.texts.entry(place).or_default();
        *text += 1;
        assert!(
            *text < TEXTS.len(),
            "{place:?} takes none of the texts: {why}"
        );
    }
}

/// A type does not take what it asked for.
#[derive(Debug)]
struct Refused(String);

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl de::Error for Refused {
    fn custom<T: Display>(why: T) -> Self {
        Refused(why.to_string())
    }
}

struct Maker<'s> {
    specimens: &'s mut Specimens,
    place: TaskPath,
    depth: usize,
    /// Where the last text was taken: who refuses a value refuses it, for nothing else is looked at.
    last_text: Option<TaskPath>,
    variants: Vec<(Enum, usize)>,
}

impl Maker<'_> {
    fn text(&mut self) -> &'static str {
        self.last_text = Some(self.place);
        let text = self.specimens.texts.get(&self.place).copied();
        TEXTS[text.unwrap_or(0)]
    }

    /// A part of what is made, at its own place.
    fn part<'de, T: DeserializeSeed<'de>>(
        &mut self,
        place: TaskPath,
        seed: T,
    ) -> Result<T::Value, Refused> {
        let outer = std::mem::replace(&mut self.place, place);
        self.depth += 1;
        let made = seed.deserialize(&mut *self);
        self.depth -= 1;
        self.place = outer;
        made
    }

    fn collection(&self, what: &'static str) -> TaskPath {
        (self.place.0, self.place.1, what)
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
            to.$visit(<$type>::try_from(NUMBER).unwrap_or(<$type>::MAX))
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Maker<'_> {
    type Error = Refused;

    numbers!(
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64
    );

    fn deserialize_any<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        const KINDS: usize = 6;
        let turn = self.specimens.turns.entry((self.place, ""));
        let turn = turn.or_default();
        *turn += 1;
        match *turn % KINDS {
            0 if self.depth < DEPTH => self.deserialize_seq(to),
            1 if self.depth < DEPTH => self.deserialize_map(to),
            2 => self.deserialize_i64(to),
            3 => self.deserialize_bool(to),
            4 => self.deserialize_f64(to),
            _ => self.deserialize_str(to),
        }
    }
    fn deserialize_bool<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        to.visit_bool(true)
    }
    fn deserialize_f32<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        to.visit_f32(12_345.5)
    }
    fn deserialize_f64<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        to.visit_f64(12_345.5)
    }
    fn deserialize_char<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        to.visit_char('c')
    }
    fn deserialize_str<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        to.visit_str(self.text())
    }
    fn deserialize_string<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        to.visit_str(self.text())
    }
    fn deserialize_bytes<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        to.visit_bytes(self.text().as_bytes())
    }
    fn deserialize_byte_buf<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        to.visit_bytes(self.text().as_bytes())
    }
    fn deserialize_option<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        if self.depth < DEPTH {
            to.visit_some(self)
        } else {
            to.visit_none()
        }
    }
    fn deserialize_unit<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        to.visit_unit()
    }
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        to: V,
    ) -> Result<V::Value, Refused> {
        to.visit_unit()
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        to: V,
    ) -> Result<V::Value, Refused> {
        to.visit_newtype_struct(self)
    }
    fn deserialize_seq<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        let items = usize::from(self.depth < DEPTH);
        let place = self.collection("item");
        to.visit_seq(Parts::new(self, items, |_| place))
    }
    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, to: V) -> Result<V::Value, Refused> {
        const PARTS: [&str; 4] = ["first", "second", "third", "other"];
        let (name, field, _) = self.place;
        let place = move |at: usize| (name, field, PARTS[at.min(PARTS.len() - 1)]);
        to.visit_seq(Parts::new(self, length, place))
    }
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        to: V,
    ) -> Result<V::Value, Refused> {
        to.visit_seq(Parts::new(self, length, |at| (name, at, "")))
    }
    fn deserialize_map<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        let entries = usize::from(self.depth < DEPTH);
        let places = [self.collection("key"), self.collection("value")];
        // Keys and values in turn.
        to.visit_map(Parts::new(self, 2 * entries, move |at| places[at % 2]))
    }
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        to: V,
    ) -> Result<V::Value, Refused> {
        // In their order and without their names, since some have several.
        to.visit_seq(Parts::new(self, fields.len(), |at| (name, at, "")))
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        to: V,
    ) -> Result<V::Value, Refused> {
        let turn = self.specimens.turns.entry((self.place, name));
        let turn = turn.or_default();
        let at = *turn % variants.len();
        *turn += 1;
        self.variants.push(((name, variants), at));
        to.visit_enum(Variant {
            maker: self,
            name,
            at,
            word: variants[at],
        })
    }
    fn deserialize_identifier<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        self.deserialize_str(to)
    }
    fn deserialize_ignored_any<V: Visitor<'de>>(self, to: V) -> Result<V::Value, Refused> {
        to.visit_unit()
    }
}

/// The parts of a collection.
struct Parts<'m, 's, P> {
    maker: &'m mut Maker<'s>,
    left: usize,
    at: usize,
    place: P,
}

impl<'m, 's, P: Fn(usize) -> TaskPath> Parts<'m, 's, P> {
    fn new(maker: &'m mut Maker<'s>, left: usize, place: P) -> Self {
        Parts {
            maker,
            left,
            at: 0,
            place,
        }
    }

    fn next<'de, T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refused> {
        if self.at == self.left {
            return Ok(None);
        }
        let place = (self.place)(self.at);
        self.at += 1;
        self.maker.part(place, seed).map(Some)
    }
}

impl<'de, P: Fn(usize) -> TaskPath> de::SeqAccess<'de> for Parts<'_, '_, P> {
    type Error = Refused;
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Refused> {
        self.next(seed)
    }
}

impl<'de, P: Fn(usize) -> TaskPath> de::MapAccess<'de> for Parts<'_, '_, P> {
    type Error = Refused;
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Refused> {
        self.next(seed)
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        let value = self.next(seed)?;
        value.ok_or_else(|| Refused("a value was asked for before its key".to_owned()))
    }
}

/// The variant whose turn it is.
struct Variant<'m, 's> {
    maker: &'m mut Maker<'s>,
    name: &'static str,
    at: usize,
    word: &'static str,
}

impl<'de> de::EnumAccess<'de> for Variant<'_, '_> {
    type Error = Refused;
    type Variant = Self;
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Refused> {
        let word: StrDeserializer<'_, Refused> = self.word.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, '_> {
    type Error = Refused;
    fn unit_variant(self) -> Result<(), Refused> {
        Ok(())
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Refused> {
        self.maker.part((self.name, self.at, ""), seed)
    }
    fn tuple_variant<V: Visitor<'de>>(self, length: usize, to: V) -> Result<V::Value, Refused> {
        const PARTS: [&str; 4] = ["first", "second", "third", "other"];
        let (name, variant) = (self.name, self.at);
        let place = move |at: usize| (name, variant, PARTS[at.min(PARTS.len() - 1)]);
        to.visit_seq(Parts::new(self.maker, length, place))
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        to: V,
    ) -> Result<V::Value, Refused> {
        let (word, length) = (self.word, fields.len());
        to.visit_seq(Parts::new(self.maker, length, move |at| (word, at, "")))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use drover_core::ids::AllocId;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    enum Shape {
        Point,
        Line { from: Option<u8>, to: Vec<Ipv4Addr> },
        Pair(AllocId, String),
    }

    #[test]
    fn specimens_cover_every_variant() {
        let mut specimens = Specimens::default();
        let shapes: Vec<Shape> = (0..3).map(|_| specimens.draw()).collect();
        assert_eq!(specimens.unseen(), Vec::<String>::new());
        let mut kinds = BTreeSet::new();
        for shape in shapes {
            kinds.insert(match shape {
                Shape::Point => 0,
                Shape::Line { from, to } => {
                    assert!(from.is_some() && to.len() == 1);
                    1
                }
                Shape::Pair(id, text) => {
                    assert!(id != AllocId(0) && !text.is_empty());
                    2
                }
            });
        }
        assert_eq!(kinds.len(), 3);
    }
}
