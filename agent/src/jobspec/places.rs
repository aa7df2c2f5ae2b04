//! Where each part of a job was written.
//!
//! A path names blocks and attributes as the job file does, from the inside of the `job` block:
//!
//! - an attribute or a block of which there is one: its name, as in `type` or `update.canary`;
//! - a block with a label: the label in brackets and quotes, as in `group["web"]` or
//!   `group["web"].task["server"].config.command`;
//! - a block without a label that may be repeated: its number from 0, as in `constraint[1]` or
//!   `group["web"].service[0].check[2].path`.
//!
//! Quotes and backslashes in labels are preceded by a backslash. A task that stands directly in
//! the job has the path of the group that is made of it: `group["x"].task["x"]`.

use std::collections::BTreeMap;

pub use super::source::Place;

/// The places of the parts of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    places: BTreeMap<String, Place>,
}

impl Places {
    /// Where exactly this part stands.
    pub fn get(&self, path: &str) -> Option<Place> {
        self.places.get(path).copied()
    }

    /// Where this part stands, or else the nearest part around it that was written.
    pub fn nearest(&self, path: &str) -> Option<Place> {
        let mut rest = path;
        loop {
            if let Some(place) = self.get(rest) {
                return Some(place);
            }
            rest = parent(rest)?;
        }
    }

    /// All paths with their places, in the order of the paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Place)> {
        self.places
            .iter()
            .map(|(path, place)| (path.as_str(), *place))
    }

    pub(crate) fn insert(&mut self, path: String, place: Place) {
        self.places.entry(path).or_insert(place);
    }
}

/// The path without its last step; the job itself has the empty path.
fn parent(path: &str) -> Option<&str> {
    if path.is_empty() {
        return None;
    }
    let mut quoted = false;
    let mut escaped = false;
    let mut last = 0;
    for (at, c) in path.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '.' if !quoted => last = at,
            _ => {}
        }
    }
    path.get(..last)
}

/// The path of a named part of `parent`.
pub(crate) fn named(parent: &str, name: &str) -> String {
    match parent {
        "" => name.to_owned(),
        parent => format!("{parent}.{name}"),
    }
}

/// The path of a part with a label.
pub(crate) fn labelled(parent: &str, name: &str, label: &str) -> String {
    let label = label.replace('\\', "\\\\").replace('"', "\\\"");
    format!("{}[\"{label}\"]", named(parent, name))
}

/// The path of a part that may be repeated.
pub(crate) fn numbered(parent: &str, name: &str, number: usize) -> String {
    format!("{}[{number}]", named(parent, name))
}
