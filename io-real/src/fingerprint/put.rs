//! Putting facts into a fingerprint.

use std::fmt::Display;

use drover_core::fingerprint::Fingerprint;

/// How many bytes of a value are kept: they come from files and services, and go to people.
const LONGEST: usize = 512;

/// Puts an attribute, unless it is empty.
pub(super) fn put(found: &mut Fingerprint, name: &str, value: impl Display) {
    let value = plain(&value.to_string());
    if !value.is_empty() {
        found.attributes.insert(plain(name), value);
    }
}

/// Puts a link, unless it is empty.
pub(super) fn link(found: &mut Fingerprint, name: &str, value: impl Display) {
    let value = plain(&value.to_string());
    if !value.is_empty() {
        found.links.insert(name.to_owned(), value);
    }
}

/// A text without what a terminal would obey, and not too long.
pub(super) fn plain(text: &str) -> String {
    let mut kept = String::new();
    for letter in text.trim().chars().filter(|letter| !letter.is_control()) {
        if kept.len() + letter.len_utf8() > LONGEST {
            break;
        }
        kept.push(letter);
    }
    kept
}
