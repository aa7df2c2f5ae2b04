//! Where something stands in a configuration file.

use hcl_edit::Span;
use hcl_edit::structure::{Block, Body};

/// The text of a file, in which places are looked up.
pub(super) struct Places<'t>(pub(super) &'t str);

impl Places<'_> {
    /// The place of a part of the file, as it stands before a message; nothing where it is not known.
    pub(super) fn of(&self, part: &impl Span) -> String {
        let Some(before) = part.span().and_then(|span| self.0.get(..span.start)) else {
            return String::new();
        };
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        format!("line {line}, column {column}: ")
    }

    /// The place of a setting of a block, or of the block if it is not there.
    pub(super) fn setting(&self, block: &Block, name: &str) -> String {
        match block.body.get_attribute(name) {
            Some(attribute) => self.of(attribute),
            None => self.of(block),
        }
    }

    /// The place of the first setting that is none of these.
    pub(super) fn unknown(&self, body: &Body, known: &[&str]) -> Option<(String, String)> {
        let mut all = body.attributes();
        let found = all.find(|attribute| !known.contains(&attribute.key.as_str()))?;
        Some((found.key.as_str().to_owned(), self.of(found)))
    }
}
