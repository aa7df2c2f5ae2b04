//! Whether what a tag means is reason for a new version.

use crate::input::ImageDigests;
use crate::store::image::{ImageRecord, Look};

/// What follows from a look at an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// Whether the digest of the tag is to run.
    pub(super) update: bool,
    /// What is remembered.
    pub(super) record: ImageRecord,
}

/// Decides: `named` is the digest that the job names, if it names one.
pub(super) fn decide(known: &ImageRecord, named: &str, found: &ImageDigests) -> Decision {
    let tag = &found.tag;
    let other = found.used.iter().find(|used| *used != tag);
    let moved_on = known.decided != *tag;
    let update = match (named.is_empty(), other) {
        (false, _) => named != tag && moved_on,
        (true, Some(_)) => true,
        // Nothing runs that could be asked: what the tag meant before is all that is known.
        (true, None) => found.used.is_empty() && !known.decided.is_empty() && moved_on,
    };
    let mut record = known.clone();
    if named.is_empty() {
        match other {
            Some(other) => record.ran.clone_from(other),
            None if !update => record.ran.clone_from(tag),
            None => {}
        }
    }
    record.decided.clone_from(tag);
    record.last = match update {
        true => Look::Updated,
        false => Look::Unchanged,
    };
    Decision { update, record }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(decided: &str, ran: &str) -> ImageRecord {
        ImageRecord {
            decided: decided.to_owned(),
            ran: ran.to_owned(),
            ..ImageRecord::default()
        }
    }

    /// Whether an update follows, what was decided about, and what ran.
    fn after(known: &ImageRecord, named: &str, tag: &str, used: &[&str]) -> (bool, String, String) {
        let found = ImageDigests {
            tag: tag.to_owned(),
            used: used.iter().map(|&used| used.to_owned()).collect(),
        };
        let Decision { update, record } = decide(known, named, &found);
        (update, record.decided, record.ran)
    }

    fn is(update: bool, decided: &str, ran: &str) -> (bool, String, String) {
        (update, decided.to_owned(), ran.to_owned())
    }

    #[test]
    fn first_look_compares_with_what_runs() {
        let new = known("", "");
        assert_eq!(after(&new, "", "a", &["a"]), is(false, "a", "a"));
        assert_eq!(after(&new, "", "b", &["a"]), is(true, "b", "a"), "stale");
        assert_eq!(after(&new, "", "b", &["a", "b"]), is(true, "b", "a"));
        assert_eq!(after(&new, "", "a", &[]), is(false, "a", "a"), "unknown");
    }

    #[test]
    fn copies_without_digest_are_compared_with_the_last_look() {
        let seen = known("a", "a");
        assert_eq!(after(&seen, "", "a", &[]), is(false, "a", "a"));
        assert_eq!(after(&seen, "", "b", &[]), is(true, "b", "a"));
        assert_eq!(
            after(&seen, "", "b", &["b"]),
            is(false, "b", "b"),
            "pulled again"
        );
    }

    #[test]
    fn each_digest_is_tried_once() {
        let tried = known("b", "a");
        assert_eq!(after(&tried, "b", "b", &[]), is(false, "b", "a"), "it runs");
        assert_eq!(
            after(&tried, "a", "b", &[]),
            is(false, "b", "a"),
            "reverted"
        );
        assert_eq!(after(&tried, "a", "c", &[]), is(true, "c", "a"), "moved on");
        assert_eq!(
            after(&tried, "a", "a", &[]),
            is(false, "a", "a"),
            "moved back"
        );
    }
}
