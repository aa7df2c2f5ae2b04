//! How the effects of a step are compared: a word for people and a fingerprint for each.
//!
//! A fingerprint covers everything of an effect but what [`super::redact`] hides: kinds, ids,
//! operations, launches, names of tasks and of variables, records with their states, counters,
//! times and indices, the order. It does not cover the values of variables and of drivers'
//! configurations, and not the words of events and of failures, into which such values may have
//! been mixed.

use serde::{Deserialize, Serialize};

use super::brief;
use super::digest::{Digest, Fnv};
use super::redact::{How, Redacted};
use crate::effect::Effect;

/// What is kept of one effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// What it is, for people.
    #[serde(rename = "is")]
    pub brief: String,
    /// The fingerprint, in hexadecimal digits.
    #[serde(rename = "fp")]
    pub fingerprint: String,
}

impl Mark {
    /// The mark of an effect.
    pub fn of(effect: &Effect) -> Mark {
        Mark {
            brief: brief::effect(effect),
            fingerprint: format!("{:016x}", fingerprint(effect)),
        }
    }
}

/// The FNV-1a hash of what is not hidden of an effect, or of a whole agent.
pub fn fingerprint<T: Serialize>(effect: &T) -> u64 {
    let mut hash = Fnv::default();
    let shown = Redacted::new(effect, How::Omit);
    // Hashing cannot fail; if a value refuses to be written, what came before it is compared.
    let _ = shown.serialize(Digest(&mut hash));
    hash.finish()
}
