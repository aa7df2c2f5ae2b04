//! References in text: `${NOMAD_PORT_http}`, `${attr.kernel.name}`, `${env["my-key"]}`.
//!
//! One pass, no nesting, as in Nomad: what a reference stands for is not checked again. A
//! reference is `${` with a name of letters, digits, `_`, `-` and `.`, then `}`; anything else
//! that begins with `${`, such as a shell's `${HOME:-/root}`, is plain text.
//!
//! Names are looked up in the environment first, then among the node's: `node.unique.id`,
//! `node.unique.name`, `node.datacenter`, `node.region`, `node.class`, `node.pool`,
//! `attr.<name>`, `meta.<name>` (also with `node.` before them) and `env.<name>`.

use core::fmt;
use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::model::artifact::Artifact;
use crate::model::node::Node;
use crate::model::value::Value;

/// The longest text that a driver's configuration may become, in bytes. References multiply, and
/// a job must not be able to fill the agent's memory with a few lines.
pub const MAX_EXPANDED: usize = 4 << 20;

/// Prefixes of the variables whose names are made of an author's labels and keys.
const CLEANED: &[&str] = &[
    "NOMAD_ADDR_",
    "NOMAD_IP_",
    "NOMAD_PORT_",
    "NOMAD_HOST_PORT_",
    "NOMAD_META_",
    // Ours: Nomad has no such variables.
    "NOMAD_VOLUME_",
];

/// The name under which a task sees a variable: in `NOMAD_ADDR_`, `NOMAD_IP_`, `NOMAD_PORT_`,
/// `NOMAD_HOST_PORT_`, `NOMAD_META_` and `NOMAD_VOLUME_`, letters other than `A-Z`, `a-z`, `0-9`, `_` and `.`
/// become `_`. Every other name stays as it is, as in Nomad.
pub fn clean_key(key: &str) -> String {
    if !CLEANED.iter().any(|prefix| key.starts_with(prefix)) {
        return key.to_owned();
    }
    key.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') {
                c
            } else {
                '_'
            }
        })
        .collect()
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text that stands for itself.
    Text(&'a str),
    /// `$${`, which stands for `${` in a driver's configuration.
    Escape,
    /// A reference.
    Reference {
        /// All of it, as written.
        whole: &'a str,
        /// The name inside.
        name: &'a str,
        /// Whether it was written as `env["name"]`, and so means the environment only.
        env_only: bool,
    },
}

/// The pieces of `text`, in order, without escapes: as the environment is read.
pub fn pieces(text: &str) -> Pieces<'_> {
    Pieces {
        rest: text,
        escapes: false,
    }
}

/// The pieces of `text`, in order, with `$${` as an escape: as a driver's configuration is read.
pub fn config_pieces(text: &str) -> Pieces<'_> {
    Pieces {
        rest: text,
        escapes: true,
    }
}

/// The pieces of a text, in order.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    rest: &'a str,
    escapes: bool,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        if self.escapes
            && let Some(after) = self.rest.strip_prefix("$${")
        {
            self.rest = after;
            return Some(Piece::Escape);
        }
        if let Some((reference, after)) = reference(self.rest) {
            self.rest = after;
            return Some(reference);
        }
        // Plain text up to the next `$` that is not the one we stand on.
        let end = self
            .rest
            .char_indices()
            .skip(1)
            .find(|(_, c)| *c == '$')
            .map_or(self.rest.len(), |(at, _)| at);
        let (text, after) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = after;
        Some(Piece::Text(text))
    }
}

/// The reference that `text` begins with, and what follows it.
fn reference(text: &str) -> Option<(Piece<'_>, &str)> {
    let inside = text.strip_prefix("${")?;
    let (name, env_only, length) = match inside.strip_prefix("env[\"") {
        Some(key) => {
            let end = key.find(['"', '}', '\n'])?;
            let (name, after) = key.split_at_checked(end)?;
            after.strip_prefix("\"]}")?;
            (name, true, 2 + 5 + end + 3)
        }
        None => {
            let end = inside.find(|c: char| !is_name_letter(c))?;
            let (name, after) = inside.split_at_checked(end)?;
            after.strip_prefix('}')?;
            (name, false, 2 + end + 1)
        }
    };
    if name.is_empty() {
        return None;
    }
    let (whole, after) = text.split_at_checked(length)?;
    Some((
        Piece::Reference {
            whole,
            name,
            env_only,
        },
        after,
    ))
}

fn is_name_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Whether a text of a driver's configuration holds a reference, known or not.
pub fn has_reference(text: &str) -> bool {
    config_pieces(text).any(|piece| matches!(piece, Piece::Reference { .. }))
}

/// Where names are looked up.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The task's environment.
    pub env: &'a BTreeMap<String, String>,
    /// This node.
    pub node: &'a Node,
}

impl<'a> Names<'a> {
    /// What `name` stands for; none if nobody knows it.
    pub fn lookup(&self, name: &str) -> Option<Cow<'a, str>> {
        self.variable(name)
            .or_else(|| self.of_node(name))
            .or_else(|| name.strip_prefix("env.").and_then(|key| self.variable(key)))
    }

    /// The environment variable of this name, or of the name that it got when its letters were
    /// cleaned.
    fn variable(&self, name: &str) -> Option<Cow<'a, str>> {
        self.env
            .get(name)
            .or_else(|| self.env.get(&clean_key(name)))
            .map(|value| Cow::Borrowed(value.as_str()))
    }

    fn of_node(&self, name: &str) -> Option<Cow<'a, str>> {
        let node = self.node;
        Some(match name {
            "node.unique.id" => Cow::Owned(node.id.to_string()),
            "node.unique.name" => Cow::Borrowed(node.name.as_str()),
            "node.datacenter" => Cow::Borrowed(node.datacenter.as_str()),
            "node.region" => Cow::Borrowed(node.region.as_str()),
            "node.class" => Cow::Borrowed(node.class.as_str()),
            "node.pool" => Cow::Borrowed(node.pool.as_str()),
            _ => {
                let key = name.strip_prefix("node.").unwrap_or(name);
                let found = match (key.strip_prefix("attr."), key.strip_prefix("meta.")) {
                    (Some(key), _) => node.attributes.get(key),
                    (None, Some(key)) => node.meta.get(key),
                    (None, None) => None,
                };
                Cow::Borrowed(found?.as_str())
            }
        })
    }

    pub(super) fn resolve(&self, name: &str, env_only: bool) -> Option<Cow<'a, str>> {
        if env_only {
            self.variable(name)
        } else {
            self.lookup(name)
        }
    }
}

/// `text` with its references replaced by what they stand for. Unknown names, and references
/// that would make the text longer than [`MAX_EXPANDED`], stay as they are written.
pub fn interpolate(text: &str, names: &Names<'_>) -> String {
    replace(text, MAX_EXPANDED, |name, env_only| {
        names.resolve(name, env_only)
    })
}

/// `text` with the references replaced that `lookup` knows, as long as the whole stays within
/// `limit` bytes; the others stay as they are written.
pub(crate) fn replace<'a>(
    text: &str,
    limit: usize,
    lookup: impl Fn(&str, bool) -> Option<Cow<'a, str>>,
) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(plain) => out.push_str(plain),
            Piece::Escape => out.push_str("$${"),
            Piece::Reference {
                whole,
                name,
                env_only,
            } => match lookup(name, env_only) {
                Some(value) if out.len().saturating_add(value.len()) <= limit => {
                    out.push_str(&value);
                }
                Some(_) | None => out.push_str(whole),
            },
        }
    }
    out
}

/// A reference in a driver's configuration that stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BadReference {
    /// The field, such as `args[2]`.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for BadReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl core::error::Error for BadReference {}

/// A value of a driver's configuration with the references in its texts replaced. Other than in
/// the environment, `$${` stands for `${`. Keys are left alone.
///
/// # Errors
/// The first reference to a name that nobody knows, with the field it is in (`path` and below).
pub fn interpolate_value(
    value: &Value,
    path: &str,
    names: &Names<'_>,
) -> Result<Value, BadReference> {
    Ok(match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => value.clone(),
        Value::String(text) => Value::String(interpolate_strictly(text, path, names)?),
        Value::List(list) => {
            let mut out = Vec::with_capacity(list.len());
            for (at, item) in list.iter().enumerate() {
                out.push(interpolate_value(item, &format!("{path}[{at}]"), names)?);
            }
            Value::List(out)
        }
        Value::Map(map) => {
            let mut out = BTreeMap::new();
            for (key, item) in map {
                let below = interpolate_value(item, &format!("{path}.{key}"), names)?;
                out.insert(key.clone(), below);
            }
            Value::Map(out)
        }
    })
}

/// A driver's configuration with all its references replaced, as [`interpolate_value`] does.
///
/// # Errors
/// One for each field that refers to what nobody knows.
pub fn interpolate_config(
    config: &BTreeMap<String, Value>,
    names: &Names<'_>,
) -> Result<BTreeMap<String, Value>, Vec<BadReference>> {
    let mut out = BTreeMap::new();
    let mut problems = Vec::new();
    for (key, value) in config {
        match interpolate_value(value, key, names) {
            Ok(value) => {
                out.insert(key.clone(), value);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        Ok(out)
    } else {
        Err(problems)
    }
}

/// An artifact with the references in its texts replaced, as [`interpolate`] does.
pub fn interpolate_artifact(artifact: &Artifact, names: &Names<'_>) -> Artifact {
    let pairs = |pairs: &BTreeMap<String, String>| {
        let pairs = pairs.iter();
        let replaced =
            pairs.map(|(key, value)| (interpolate(key, names), interpolate(value, names)));
        replaced.collect()
    };
    Artifact {
        getter_source: interpolate(&artifact.getter_source, names),
        getter_options: pairs(&artifact.getter_options),
        getter_headers: pairs(&artifact.getter_headers),
        relative_dest: interpolate(&artifact.relative_dest, names),
        ..artifact.clone()
    }
}

fn interpolate_strictly(text: &str, path: &str, names: &Names<'_>) -> Result<String, BadReference> {
    let bad = |message: String| BadReference {
        path: path.to_owned(),
        message,
    };
    let mut out = String::with_capacity(text.len());
    for piece in config_pieces(text) {
        match piece {
            Piece::Text(plain) => out.push_str(plain),
            Piece::Escape => out.push_str("${"),
            Piece::Reference {
                whole,
                name,
                env_only,
            } => match names.resolve(name, env_only) {
                Some(value) => out.push_str(&value),
                None => return Err(bad(format!("unknown variable in {whole:?}"))),
            },
        }
        if out.len() > MAX_EXPANDED {
            return Err(bad(format!("longer than {MAX_EXPANDED} bytes")));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
