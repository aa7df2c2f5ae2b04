//! What may stand in a task's `config` block, as data, and the check against it.
//!
//! A driver's schema is a list of fields. Whatever is not in the list is an error that names
//! Nomad and the nearest known name: a mistyped option must never be ignored in silence.
//!
//! Coercions are those of Nomad's job language: numbers and booleans where text is wanted,
//! text that reads as a number or a boolean where one of these is wanted. A block that may stand
//! once or as an object is a map or a list of maps. `null` is the same as leaving a field out.

use core::fmt;
use std::collections::BTreeMap;

use super::capabilities::Capabilities;
use super::coerce::{blocks_of, bool_of, port_pair, span_of, text_of, whole_of};
use crate::interpolate::has_reference;
use crate::model::value::Value;
use crate::text::{nearest, quote};

/// No more than so many problems of one configuration are told.
pub const MAX_PROBLEMS: usize = 50;

/// How many blocks of one name may be given.
const MAX_BLOCKS: usize = 256;

/// What a driver's task configuration may hold.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// The driver's name.
    pub driver: &'static str,
    /// The fields.
    pub fields: &'static [Field],
    /// Pairs of fields of which only one may be given.
    pub exclusive: &'static [(&'static str, &'static str)],
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in job files.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it must be given.
    pub required: bool,
    /// What else its value must be.
    pub rule: Rule,
}

impl Field {
    /// A field that may be left out and whose value may be anything of its kind.
    pub const fn optional(name: &'static str, kind: Kind) -> Field {
        Field {
            name,
            kind,
            required: false,
            rule: Rule::None,
        }
    }

    /// The same field with a rule.
    #[must_use]
    pub const fn with(mut self, rule: Rule) -> Field {
        self.rule = rule;
        self
    }

    /// The same field, not to be left out.
    #[must_use]
    pub const fn required(mut self) -> Field {
        self.required = true;
        self
    }
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Text.
    String,
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Number,
    /// A list of texts.
    ListOfString,
    /// Texts by name: one block, several blocks or an object, merged into one.
    MapOfString,
    /// One block with fields of its own.
    Block(&'static [Field]),
    /// Any number of blocks, each with these fields.
    Blocks(&'static [Field]),
    /// Nothing: Nomad has this option, and here it is refused. What to do instead.
    Refused(&'static str),
    /// A length of time such as `1m30s`, zero or more.
    Duration,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::String => "a string",
            Kind::Bool => "a bool",
            Kind::Number => "a whole number",
            Kind::ListOfString => "a list of strings",
            Kind::MapOfString => "a map of strings",
            Kind::Block(_) => "a block",
            Kind::Blocks(_) => "blocks",
            Kind::Refused(_) => "nothing",
            Kind::Duration => "a duration",
        }
    }
}

/// What a field's value must be besides being of its kind.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Anything.
    None,
    /// Not empty, without control characters.
    Command,
    /// A path that begins with `/`; empty is the same as not given.
    AbsolutePath,
    /// One of these; empty is the same as not given.
    OneOf(&'static [&'static str]),
    /// A list of names of capabilities.
    Capabilities,
    /// Anything; what the agent allows decides about it. No place for secrets: recordings show it.
    Allowed,
    /// A number from the first to the second.
    Range(i64, i64),
    /// `label:port`; empty is the same as not given.
    PortPair,
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConfigProblem {
    /// Where: `command`, `args[2]`, `exec_command.run_for`.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// The known name that was probably meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)?;
        match &self.suggestion {
            Some(name) => write!(f, " (did you mean {name:?}?)"),
            None => Ok(()),
        }
    }
}

/// Checks a configuration as it stands in a job, where a text with references such as `${...}`
/// may become anything and so passes for any kind of value. Empty when all is well.
pub fn validate(schema: &Schema, config: &BTreeMap<String, Value>) -> Vec<ConfigProblem> {
    check(schema, config, false)
}

/// Checks a configuration whose references are replaced already. Empty when all is well.
pub fn validate_resolved(schema: &Schema, config: &BTreeMap<String, Value>) -> Vec<ConfigProblem> {
    check(schema, config, true)
}

fn check(schema: &Schema, config: &BTreeMap<String, Value>, resolved: bool) -> Vec<ConfigProblem> {
    let mut checker = Checker {
        resolved,
        problems: Vec::new(),
    };
    checker.fields(schema.fields, config, "");
    for (one, other) in schema.exclusive {
        let given = |name: &str| config.get(name).is_some_and(|value| !is_empty(value));
        if given(one) && given(other) {
            checker.problem(
                one.to_string(),
                format!("only one of {one} and {other} may be given"),
            );
        }
    }
    checker.problems
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::List(list) => list.iter().all(is_empty),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => false,
    }
}

struct Checker {
    resolved: bool,
    problems: Vec<ConfigProblem>,
}

impl Checker {
    fn problem(&mut self, path: String, message: String) {
        self.push(path, message, None);
    }

    fn push(&mut self, path: String, message: String, suggestion: Option<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(ConfigProblem {
                path,
                message,
                suggestion,
            });
        }
    }

    fn fields(&mut self, fields: &[Field], given: &BTreeMap<String, Value>, above: &str) {
        let names = || fields.iter().map(|field| field.name);
        let unknown = given
            .keys()
            .filter(|name| !names().any(|known| known == *name));
        // What is missing is often there under a wrong name, and then is no mistake of its own.
        let mut meant = Vec::new();
        for name in unknown.take(MAX_PROBLEMS) {
            let near = nearest(name, names());
            let message = format!("unknown option {}", quote(name));
            self.push(format!("{above}{name}"), message, near.map(str::to_owned));
            meant.extend(near);
        }
        for field in fields {
            let value = given.get(field.name).filter(|v| **v != Value::Null);
            let path = format!("{above}{}", field.name);
            match value {
                Some(value) => self.value(field, value, path),
                None if field.required && !meant.contains(&field.name) => {
                    self.problem(path, "must be given".to_owned());
                }
                None => {}
            }
        }
    }

    fn value(&mut self, field: &Field, value: &Value, path: String) {
        if let Kind::Refused(instead) = field.kind {
            if !is_empty(value) {
                self.problem(path, format!("is not supported: {instead}"));
            }
            return;
        }
        if self.may_become_anything(value) {
            return;
        }
        let fits = match field.kind {
            Kind::String => text_of(value).map(|text| self.text_rule(field.rule, &text, &path)),
            Kind::Bool => bool_of(value).map(|_| ()),
            Kind::Number => whole_of(value).map(|n| self.number_rule(field.rule, n, &path)),
            Kind::Duration => text_of(value).map(|text| self.duration(&text, &path)),
            Kind::ListOfString => value.as_list().map(|items| {
                let items = items.iter().enumerate();
                self.texts(field.rule, items.map(|(i, v)| (format!("{path}[{i}]"), v)));
            }),
            Kind::MapOfString => blocks_of(value).map(|blocks| {
                let entries = blocks.into_iter().flatten();
                self.texts(
                    Rule::None,
                    entries.map(|(k, v)| (format!("{path}[{}]", quote(k)), v)),
                );
            }),
            Kind::Block(fields) => {
                blocks_of(value).map(|blocks| self.block(fields, &blocks, &path))
            }
            Kind::Blocks(fields) => {
                blocks_of(value).map(|blocks| self.blocks(fields, &blocks, &path))
            }
            Kind::Refused(_) => Some(()),
        };
        if fits.is_none() {
            self.type_mismatch(path, field.kind.name(), value);
        }
    }

    fn block(&mut self, fields: &[Field], blocks: &[&BTreeMap<String, Value>], path: &str) {
        if blocks.len() > 1 {
            self.problem(path.to_owned(), "only one block may be given".to_owned());
        }
        for block in blocks.iter().take(1) {
            self.fields(fields, block, &format!("{path}."));
        }
    }

    fn blocks(&mut self, fields: &[Field], blocks: &[&BTreeMap<String, Value>], path: &str) {
        for (index, block) in blocks.iter().enumerate().take(MAX_BLOCKS) {
            self.fields(fields, block, &format!("{path}[{index}]."));
        }
        if blocks.len() > MAX_BLOCKS {
            let message = format!("no more than {MAX_BLOCKS} blocks may be given");
            self.problem(path.to_owned(), message);
        }
    }

    fn may_become_anything(&self, value: &Value) -> bool {
        !self.resolved && value.as_str().is_some_and(has_reference)
    }

    /// Whether a problem may name what it is about: what a reference was replaced by may be a secret.
    fn may_show(&self) -> bool {
        !self.resolved
    }

    fn type_mismatch(&mut self, path: String, expected: &str, found: &Value) {
        let found = match found {
            Value::String(text) if self.may_show() => format!("the string {}", quote(text)),
            Value::Float(bits) if self.may_show() => {
                format!("the number {}", f64::from_bits(*bits))
            }
            Value::String(_) => "a string".to_owned(),
            Value::Float(_) => "a number".to_owned(),
            Value::Null => "null".to_owned(),
            Value::Bool(_) | Value::Int(_) | Value::List(_) | Value::Map(_) => {
                format!("a {}", found.kind())
            }
        };
        self.problem(path, format!("expected {expected}, found {found}"));
    }

    fn texts<'a>(&mut self, rule: Rule, items: impl Iterator<Item = (String, &'a Value)>) {
        for (path, item) in items {
            match text_of(item) {
                // What it will be is seen when its references are replaced.
                Some(_) if self.may_become_anything(item) => {}
                Some(text) => self.text_rule(rule, &text, &path),
                None => self.type_mismatch(path, "a string", item),
            }
        }
    }

    fn duration(&mut self, text: &str, path: &str) {
        match span_of(text) {
            Ok(span) if span.0 < 0 => {
                self.problem(path.to_owned(), "must not be negative".to_owned());
            }
            Ok(_) => {}
            Err(why) => {
                let message = match self.may_show() {
                    true => format!("expected a duration, found {}: {why}", quote(text)),
                    false => "expected a duration, such as 30s".to_owned(),
                };
                self.problem(path.to_owned(), message);
            }
        }
    }

    fn text_rule(&mut self, rule: Rule, text: &str, path: &str) {
        let broken = match rule {
            Rule::Command if text.trim().is_empty() => "must not be empty",
            Rule::Command if text.contains(char::is_control) => {
                "must not contain control characters"
            }
            Rule::AbsolutePath if !text.is_empty() && !text.starts_with('/') => {
                "must be an absolute path"
            }
            Rule::OneOf(known) if !text.is_empty() && !known.contains(&text) => {
                let mut message = format!("must be {}", known.join(" or "));
                if self.may_show() {
                    message.push_str(&format!(", is {}", quote(text)));
                }
                return self.problem(path.to_owned(), message);
            }
            Rule::Capabilities => {
                if let Err(why) = Capabilities::named([text]) {
                    let message = match self.may_show() {
                        true => why,
                        false => "must be the name of a capability".to_owned(),
                    };
                    self.problem(path.to_owned(), message);
                }
                return;
            }
            Rule::PortPair if !text.is_empty() && port_pair(text).is_none() => {
                "must be a label and a port number, such as http:8080"
            }
            Rule::None
            | Rule::Command
            | Rule::AbsolutePath
            | Rule::OneOf(_)
            | Rule::Allowed
            | Rule::PortPair
            | Rule::Range(..) => {
                if !text.contains('\0') {
                    return;
                }
                "must not contain NUL"
            }
        };
        self.problem(path.to_owned(), broken.to_owned());
    }

    fn number_rule(&mut self, rule: Rule, number: i64, path: &str) {
        match rule {
            Rule::Range(from, to) if !(from..=to).contains(&number) => {
                let mut message = format!("must be from {from} to {to}");
                if self.may_show() {
                    message.push_str(&format!(", is {number}"));
                }
                self.problem(path.to_owned(), message);
            }
            Rule::None
            | Rule::Command
            | Rule::AbsolutePath
            | Rule::OneOf(_)
            | Rule::Capabilities
            | Rule::Allowed
            | Rule::Range(..)
            | Rule::PortPair => {}
        }
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
