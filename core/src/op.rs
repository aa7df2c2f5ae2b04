//! Operations: work that the core asked somebody else to do.

use serde::{Deserialize, Serialize};

/// The number of one request to the outside. Its answer bears the same number; an answer whose
/// number nobody waits for is late or doubled, and is dropped and counted.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Op(pub u64);

/// Why an operation did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Failure {
    /// What happened, to what, and what to do, for a person to read.
    pub message: String,
    /// Whether trying again may help. Plain errors are not recoverable; only what is marked is.
    pub recoverable: bool,
}

impl Failure {
    /// A failure that another try does not mend.
    pub fn fatal(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            recoverable: false,
        }
    }

    /// A failure that another try may mend.
    pub fn recoverable(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            recoverable: true,
        }
    }
}
