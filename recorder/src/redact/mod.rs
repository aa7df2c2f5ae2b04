//! What is hidden in a recording.
//!
//! Shown are names, ids, states, times, conditions on the node, facts about the node, settings of
//! policies. Hidden are values of environments, drivers' configurations, `meta`, artifacts, templates,
//! services, payloads and everything else of a job that the core only passes on, the agent's own
//! environment, and whatever drivers and hooks say in words, into which values may be mixed.
//!
//! **Replay does the same.** A secret is replaced by a token that is the same for the same secret, so
//! "changed" and "unchanged" mean what they meant. The core decides by a hidden value in no other
//! way, with two exceptions, for which hiding leaves what is decided by: references (`${...}`), and
//! what a driver's schema wants to be a number, a duration, a truth value or an absolute path.
//!
//! It is done while serialising: a [`Redacted`] value writes itself as the value does, but for what
//! is hidden. So it works for inputs, records and whole agents alike, and costs one pass.
//!
//! A number of a driver's configuration that comes from a variable of more than three digits is the
//! known case in which replay differs; it says where. `sim-tests/tests/redaction.rs` shows in
//! random worlds that hiding changes no decision, and that every field and variant of a line is
//! read again (`sim-tests/src/specimen.rs`). `agent/tests/recording_redaction.rs` plants a secret in
//! every field of a job.

mod policy;
mod serializer;
mod token;

use serde::{Serialize, Serializer};

pub use token::TokenKey;

use policy::Rule;
use serializer::Hiding;

/// What stands for a secret.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// A token, the same for the same secret.
    Token(TokenKey),
    /// Nothing: for hashes. A secret that was mixed from others when it was recorded is mixed
    /// from their tokens when it is replayed, and so cannot be compared.
    Omit,
}

/// A value that is written without its secrets.
#[derive(Debug)]
pub struct Redacted<'a, T: ?Sized> {
    value: &'a T,
    cx: Context,
}

#[derive(Clone, Copy, Debug)]
struct Context {
    how: How,
    rule: Rule,
}

impl<'a, T: Serialize + ?Sized> Redacted<'a, T> {
    /// `value`, to be written without its secrets.
    pub fn new(value: &'a T, how: How) -> Redacted<'a, T> {
        let rule = Rule::HideTexts;
        Redacted {
            value,
            cx: Context { how, rule },
        }
    }
}

impl<T: Serialize + ?Sized> Serialize for Redacted<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Hiding { to, cx: self.cx })
    }
}
