//! Which container is that of a launch: never one that only looks like it.
//!
//! Names and labels can be copied by people. The word of a record cannot be guessed, but engines hand labels on: who
//! makes an image of our container, and a container of that image, has the word in both. So it must also be the one that
//! was made, by its id; or, where nobody remembers that, have the name that only one has.

use std::collections::HashMap;

use super::records::Ours;
use super::{create, join};

/// What an engine says of a container.
pub(super) struct Claimed<'a> {
    pub(super) id: &'a str,
    /// With or without the slash that engines put before it.
    pub(super) name: &'a str,
    pub(super) labels: Option<&'a HashMap<String, String>>,
}

impl Claimed<'_> {
    /// Whether it is the task's container of this record.
    pub(super) fn is_task_of(&self, ours: &Ours) -> bool {
        let is_that = match ours.container.as_deref() {
            None | Some("") => self.name() == ours.name,
            Some(id) => self.id == id,
        };
        is_that && self.bears(create::TOKEN_LABEL, ours)
    }

    /// Whether it is the container that led the task's into its network.
    pub(super) fn is_way_of(&self, ours: &Ours) -> bool {
        self.name() == join::name(ours) && self.bears(join::TOKEN_LABEL, ours)
    }

    pub(super) fn is_of(&self, ours: &Ours) -> bool {
        self.is_task_of(ours) || self.is_way_of(ours)
    }

    fn name(&self) -> &str {
        self.name.trim_start_matches('/')
    }

    fn bears(&self, label: &str, ours: &Ours) -> bool {
        let labels = self.labels;
        labels.and_then(|labels| labels.get(label)) == Some(&ours.token)
    }
}
