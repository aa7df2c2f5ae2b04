//! What may stand in a job file: tables of blocks and attributes with the keys that they have in
//! the JSON of the job API. [`decode`] reads a body by such a table into that JSON; a block's
//! `finish` step does what a table cannot say.

pub(super) mod decode;
mod group;
pub(super) mod items;
mod job;
mod namespace;
mod policy;
mod service;
mod task;
mod values;
mod volume;

use std::collections::BTreeMap;

use drover_core::model::value::Value;

use super::error::Issues;
use super::eval::Evaluator;
use super::source::At;

pub(super) use job::JOB;
pub(super) use namespace::NAMESPACE_SPEC;
pub(super) use policy::POLICY_SPEC;
pub(super) use volume::VOLUME_SPEC;

/// A block as JSON.
pub(super) type Fields = BTreeMap<String, Value>;

/// What an attribute holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Text,
    Bool,
    Int,
    /// A duration; nanoseconds in JSON.
    Span,
    Texts,
    /// Names with texts, written as a map or as a block.
    Pairs,
    /// Names with lists of texts, written as a map or as a block.
    TextLists,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A list of some of these texts.
    Choices(&'static [&'static str]),
    /// Of no effect; the reason is shown as a warning.
    Ignored(&'static str),
}

/// An attribute: its name, its key in JSON, what it holds.
pub(super) struct Attr {
    pub(super) name: &'static str,
    pub(super) key: &'static str,
    pub(super) kind: Kind,
}

/// How often a block may stand in another, and what becomes of its labels.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Once at most.
    One,
    /// Once at most, in a list.
    OneInList,
    /// In a list, without a label.
    Many,
    /// In a list, with a label that is kept under this key.
    Labelled(&'static str),
    /// In a map by label, which is kept under this key too.
    ByLabel(&'static str),
}

/// A block within another.
pub(super) struct Child {
    pub(super) name: &'static str,
    /// Its key in JSON; empty where it has no effect. Keys that begin with `@` are for `finish`.
    pub(super) key: &'static str,
    pub(super) shape: Shape,
    pub(super) body: &'static Block,
}

/// Which names a block takes besides those of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    Refused,
    /// Any, kept as they are; nested blocks become lists, as drivers expect their configuration.
    Free,
    /// Any, renamed to the style of JSON; for parts that are passed on without being understood.
    Renamed,
}

/// A block's description.
pub(super) struct Block {
    pub(super) attrs: &'static [Attr],
    pub(super) blocks: &'static [Child],
    pub(super) others: Others,
    pub(super) finish: fn(&mut Finish<'_>),
}

impl Block {
    pub(super) const fn new(attrs: &'static [Attr], blocks: &'static [Child]) -> Block {
        Block {
            attrs,
            blocks,
            others: Others::Refused,
            finish: |_| {},
        }
    }

    pub(super) const fn finished_by(self, finish: fn(&mut Finish<'_>)) -> Block {
        Block { finish, ..self }
    }

    pub(super) const fn open(others: Others) -> Block {
        Block {
            others,
            ..Block::new(&[], &[])
        }
    }

    /// How many labels a nested block has; none where nobody knows.
    pub(super) fn labels_of(&self, name: &str) -> Option<usize> {
        let child = self.blocks.iter().find(|child| child.name == name)?;
        Some(match child.shape {
            Shape::Labelled(_) | Shape::ByLabel(_) => 1,
            _ => 0,
        })
    }
}

/// A configuration that is passed on as it is.
pub(super) const FREE: Block = Block::open(Others::Free);
/// A part that is passed on with its names in the style of JSON.
pub(super) const RENAMED: Block = Block::open(Others::Renamed);

pub(super) const fn attr(name: &'static str, key: &'static str, kind: Kind) -> Attr {
    Attr { name, key, kind }
}

pub(super) const fn one(name: &'static str, key: &'static str, body: &'static Block) -> Child {
    Child {
        name,
        key,
        shape: Shape::One,
        body,
    }
}

pub(super) const fn many(name: &'static str, key: &'static str, body: &'static Block) -> Child {
    Child {
        name,
        key,
        shape: Shape::Many,
        body,
    }
}

pub(super) const fn labelled(
    name: &'static str,
    key: &'static str,
    label: &'static str,
    body: &'static Block,
) -> Child {
    Child {
        name,
        key,
        shape: Shape::Labelled(label),
        body,
    }
}

/// A block that was read by its table, for the last step.
pub(super) struct Finish<'a> {
    pub(super) fields: &'a mut Fields,
    pub(super) on: &'a Evaluator<'a>,
    /// Where the block stands.
    pub(super) at: &'a At,
    pub(super) issues: &'a mut Issues,
}

impl Finish<'_> {
    pub(super) fn error(&mut self, message: impl Into<String>, help: &str) {
        let issue = self.on.fault(self.at, message);
        self.issues.push(issue.help(help));
    }

    /// Takes a list out of the fields.
    pub(super) fn take_list(&mut self, key: &str) -> Vec<Value> {
        match self.fields.remove(key) {
            Some(Value::List(items)) => items,
            _ => Vec::new(),
        }
    }

    /// Sets a field unless it has a value.
    pub(super) fn default(&mut self, key: &str, value: impl Into<Value>) {
        self.fields.entry(key.to_owned()).or_insert(value.into());
    }
}
