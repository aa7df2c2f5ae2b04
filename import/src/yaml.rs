//! YAML as a tree of which every value knows its place.
//!
//! Anchors and merge keys are resolved, and what they may grow to is bounded. Numbers and texts keep apart what
//! YAML keeps apart; only `true` and `false` are truth values, as they are for compose.

use core::fmt;
use std::collections::BTreeSet;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Location, Spanned};

use crate::error::{Mistake, Place, Result, quote};

/// How deep lists and maps may lie in each other.
const MAX_DEPTH: usize = 40;
/// How many values a file may have, and how many its aliases may add.
const MAX_VALUES: usize = 200_000;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub at: Place,
    pub kind: Kind,
}

/// The kinds of values.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    /// A number as one writes it.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// The name of a value in a map, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub name: String,
    pub at: Place,
}

/// Reads a text.
pub(crate) fn read(text: &str) -> Result<Node> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_events: MAX_VALUES * 2,
            max_nodes: MAX_VALUES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_VALUES,
            max_replay_stack_depth: MAX_DEPTH,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        // As compose reads permissions.
        legacy_octal_numbers: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let read: core::result::Result<Node, _> = serde_saphyr::from_str_with_options(text, options);
    read.map_err(|error| {
        let place = error.location().map(place).unwrap_or_default();
        // The place is said already, before the message.
        let words = error.without_snippet().to_string();
        // What a programmer could do is no help to whoever has the file.
        let words = words.replace(", set DuplicateKeyPolicy in Options if acceptable", "");
        let words = match words.split_once(" at line ") {
            Some((before, _)) if place.line > 0 => before.to_owned(),
            _ => words,
        };
        Mistake::new(
            place,
            format!("this is no YAML that can be read: {}", words.trim()),
        )
    })
}

fn place(at: Location) -> Place {
    let number = |n: u64| usize::try_from(n).unwrap_or(0);
    Place {
        line: number(at.line()),
        column: number(at.column()),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> core::result::Result<Node, D::Error> {
        let spanned = Spanned::<Kind>::deserialize(deserializer)?;
        Ok(Node {
            at: place(spanned.defined),
            kind: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> core::result::Result<Kind, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> core::result::Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_none<E>(self) -> core::result::Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> core::result::Result<Kind, D::Error> {
        Kind::deserialize(inner)
    }

    fn visit_bool<E>(self, value: bool) -> core::result::Result<Kind, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> core::result::Result<Kind, E> {
        Ok(Kind::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> core::result::Result<Kind, E> {
        Ok(Kind::Number(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> core::result::Result<Kind, E> {
        Ok(Kind::Number(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> core::result::Result<Kind, E> {
        Ok(Kind::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> core::result::Result<Kind, E> {
        Ok(Kind::Number(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> core::result::Result<Kind, E> {
        Ok(Kind::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> core::result::Result<Kind, E> {
        Ok(Kind::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> core::result::Result<Kind, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = seq.next_element()? {
            list.push(node);
        }
        Ok(Kind::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> core::result::Result<Kind, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let at = place(key.defined);
            let name = key.value;
            pairs.push((Key { name, at }, map.next_value()?));
        }
        Ok(Kind::Map(pairs))
    }
}

impl Node {
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    pub(crate) fn line(&self) -> usize {
        self.at.line
    }

    /// A single value as a text.
    pub(crate) fn scalar(&self) -> Option<String> {
        match &self.kind {
            Kind::Text(text) | Kind::Number(text) => Some(text.clone()),
            Kind::Bool(value) => Some(value.to_string()),
            Kind::Null | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// The values of a list.
    pub(crate) fn list(&self, what: &str) -> Result<&[Node]> {
        match &self.kind {
            Kind::List(list) => Ok(list),
            Kind::Null => Ok(&[]),
            _ => Err(self.mistake(format!("{what} must be a list"))),
        }
    }

    /// The values of a map.
    pub(crate) fn map(&self, what: &str) -> Result<&[(Key, Node)]> {
        match &self.kind {
            Kind::Map(map) => Ok(map),
            Kind::Null => Ok(&[]),
            _ => Err(self.mistake(format!("{what} must be a map of names and values"))),
        }
    }

    /// The values of a map, of which each must be taken.
    pub(crate) fn fields(&self, what: &str) -> Result<Fields<'_>> {
        let map = self.map(what)?;
        let taken = BTreeSet::new();
        Ok(Fields { map, taken })
    }

    /// Something is wrong with this value.
    pub(crate) fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake::new(self.at, message)
    }

    /// A truth value.
    pub(crate) fn flag(&self, what: &str) -> Result<bool> {
        match self.scalar().as_deref() {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => {
                let message = format!("{what} must be true or false, not {}", quote(other));
                Err(self.mistake(message))
            }
            None => Err(self.mistake(format!("{what} must be true or false"))),
        }
    }

    /// No text in the tree may contain what no text of a job may.
    pub(crate) fn check(&self) -> Result<()> {
        let nul = |at, text: &str| match text.contains('\0') {
            true => Err(Mistake::new(at, "a text must not contain a NUL character")),
            false => Ok(()),
        };
        match &self.kind {
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => Ok(()),
            Kind::Text(text) => nul(self.at, text),
            Kind::List(list) => list.iter().try_for_each(Node::check),
            Kind::Map(map) => map.iter().try_for_each(|(key, node)| {
                nul(key.at, &key.name)?;
                node.check()
            }),
        }
    }
}

/// A map of which is known what was taken from it, so that nothing is forgotten.
pub(crate) struct Fields<'a> {
    map: &'a [(Key, Node)],
    taken: BTreeSet<usize>,
}

impl<'a> Fields<'a> {
    /// The value of this name, if there is one.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a Node> {
        let at = self.map.iter().position(|(key, _)| key.name == name)?;
        self.taken.insert(at);
        let (_, node) = self.map.get(at)?;
        (!node.is_null()).then_some(node)
    }

    /// All that was not taken.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &'a (Key, Node)> + '_ {
        let left = |(at, pair)| (!self.taken.contains(&at)).then_some(pair);
        self.map.iter().enumerate().filter_map(left)
    }
}
