//! What the hunt prints.

use super::NOTHING_PLANTED;
use super::seek::Found;

/// The names of the columns.
pub(super) const HEAD: &str = "bug                                        found by             runs  seconds  schedule  property";

/// One bug, and how it was found.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    pub(super) found: Found,
}

impl Row<'_> {
    /// Whether a planted bug was found, or none where none is planted.
    pub(super) fn is_well(&self) -> bool {
        self.found.found == (self.name != NOTHING_PLANTED)
    }

    /// For people.
    pub(super) fn line(&self) -> String {
        let found = &self.found;
        let by = match (found.found, self.is_well()) {
            (true, _) => &*found.search,
            (false, true) => "nothing, rightly",
            (false, false) => "NOT FOUND",
        };
        let len = found
            .schedule_len
            .map_or("-".to_owned(), |len| len.to_string());
        format!(
            "{:<42} {by:<16} {:>8} {:>8.1} {len:>9}  {}",
            self.name, found.runs, found.seconds, found.property
        )
    }

    /// For programs: one line.
    pub(super) fn json(&self) -> String {
        let found = &self.found;
        let len = found
            .schedule_len
            .map_or("null".to_owned(), |len| len.to_string());
        format!(
            "{{\"bug\":{:?},\"found\":{},\"search\":{:?},\"runs\":{},\"seconds\":{:.3},\"schedule_len\":{len},\"property\":{:?}}}",
            self.name, found.found, found.search, found.runs, found.seconds, found.property
        )
    }
}
