//! Where each part of a job was written.
//!
//! A path names blocks and attributes as the job file does; validation uses the same paths:
//!
//! - `job` is the job itself, `job.priority` one of its attributes, `job.update.canary` one of a
//!   block of which there is one;
//! - `group["web"]` is a group, `group["web"].task["server"].config.command` is within one: labels
//!   are quoted as [`quote`] does;
//! - blocks without a label that may be repeated are counted from 0: `job.constraint[1]`,
//!   `group["web"].service[0].check[2].path`;
//! - entries of `env`, `meta` and other maps of texts are written as `env["KEY"]`.
//!
//! A task that stands directly in the job has the path of the group that is made of it:
//! `group["x"].task["x"]`.

use std::collections::BTreeMap;

use drover_core::text::quote;

pub use super::source::Position;

/// The places of the parts of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    positions: BTreeMap<String, Position>,
}

impl Positions {
    /// Where exactly this part stands.
    pub fn get(&self, path: &str) -> Option<Position> {
        self.positions.get(path).copied()
    }

    /// Where this part stands, or else the nearest part around it that was written.
    pub fn nearest(&self, path: &str) -> Option<Position> {
        let mut rest = path;
        loop {
            // What is said of all blocks of a kind is shown at the first.
            let first = || self.get(&format!("{rest}[0]"));
            if let Some(position) = self.get(rest).or_else(first) {
                return Some(position);
            }
            match parent(rest) {
                "" => return self.get(JOB),
                outer => rest = outer,
            }
        }
    }

    /// All paths with their places, in the order of the paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Position)> {
        self.positions
            .iter()
            .map(|(path, position)| (path.as_str(), *position))
    }

    pub(crate) fn insert(&mut self, path: String, position: Position) {
        self.positions.entry(path).or_insert(position);
    }
}

/// The path of the job.
pub(crate) const JOB: &str = "job";

/// The path without its last step; empty for the outermost.
fn parent(path: &str) -> &str {
    let mut quoted = false;
    let mut escaped = false;
    let mut last = 0;
    for (at, c) in path.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '.' | '[' if !quoted => last = at,
            _ => {}
        }
    }
    path.get(..last).unwrap_or("")
}

/// The path of a named part of `parent`.
pub(crate) fn named(parent: &str, name: &str) -> String {
    format!("{parent}.{name}")
}

/// The path of a part with a label.
pub(crate) fn labelled(parent: &str, name: &str, label: &str) -> String {
    let label = quote(label);
    match (parent, name) {
        // Groups are found without naming the job.
        (JOB, "group") => format!("group[{label}]"),
        _ => format!("{parent}.{name}[{label}]"),
    }
}

/// The path of an entry of a map.
pub(crate) fn entry(parent: &str, key: &str) -> String {
    format!("{parent}[{}]", quote(key))
}

/// The path of a part that may be repeated.
pub(crate) fn numbered(parent: &str, name: &str, number: usize) -> String {
    format!("{}[{number}]", named(parent, name))
}
