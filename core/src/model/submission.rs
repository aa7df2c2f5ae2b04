//! What a version of a job was made from: the text as somebody handed it in, and its variables.
//!
//! Job files hold passwords, and so do their variables. Whoever prints a submission sees how much it is, and
//! nothing of it; in recordings its texts are hidden, keys of variables too.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How many bytes the texts of one submission may have together. A job is taken in without a larger one.
pub const MAX_BYTES: usize = 1024 * 1024;

/// The text that a version of a job was made from.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Submission {
    /// The job file.
    pub source: Arc<str>,
    /// `hcl2` or `json`.
    pub format: Arc<str>,
    /// Variables that the command line gave, by name.
    #[serde(with = "crate::pairs")]
    pub variable_flags: BTreeMap<String, String>,
    /// The texts of files of variables.
    pub variables: Arc<str>,
}

impl Submission {
    /// How many bytes its texts have.
    pub fn bytes(&self) -> usize {
        let flags = self.variable_flags.iter();
        let flags: usize = flags.map(|(name, value)| name.len() + value.len()).sum();
        flags + self.source.len() + self.format.len() + self.variables.len()
    }
}

impl fmt::Debug for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a submission of {} bytes", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submission_debug_output_shows_no_text() {
        let submission = Submission {
            source: "env { PASSWORD = \"hunter2\" }".into(),
            variable_flags: BTreeMap::from([("secret".to_owned(), "hunter2".to_owned())]),
            ..Submission::default()
        };
        assert_eq!(format!("{submission:?}"), "a submission of 41 bytes");
    }
}
