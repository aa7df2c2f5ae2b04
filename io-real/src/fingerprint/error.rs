//! Why a probe could not find something out.

use std::fmt;

use drover_core::op::Failure;

/// Why a probe could not find something out, for a person to read. What is not there is no error:
/// then there is nothing to say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// A file or a call of the kernel that is there and does not answer.
    Unreadable {
        /// The file or the call.
        what: String,
        /// What the kernel said.
        why: String,
    },
    /// A file or a directory that holds more than anybody needs.
    TooLarge {
        /// The file or directory.
        what: String,
        /// How many bytes or names are read at most.
        limit: usize,
    },
    /// A setting that does not fit this machine.
    Setting {
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A service of the network that does not answer as it should.
    Service {
        /// Its address.
        what: String,
        /// What it did instead.
        why: String,
    },
}

impl ProbeError {
    pub(super) fn unreadable(what: impl Into<String>, why: impl fmt::Display) -> ProbeError {
        ProbeError::Unreadable {
            what: what.into(),
            why: why.to_string(),
        }
    }
}

impl fmt::Display for ProbeError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::Unreadable { what, why } => write!(
                to,
                "cannot read {what}: {why}; let the agent's user read it, or deny this probe"
            ),
            ProbeError::TooLarge { what, limit } => write!(
                to,
                "{what} holds more than {limit} bytes or names, which is not believed; \
                 find out what it is, or deny this probe"
            ),
            ProbeError::Setting { name, why } => write!(to, "{name}: {why}; change it"),
            ProbeError::Service { what, why } => write!(
                to,
                "no sensible answer from {what}: {why}; \
                 enable this probe only on machines of that cloud"
            ),
        }
    }
}

impl std::error::Error for ProbeError {}

impl From<ProbeError> for Failure {
    /// Another try may always help: machines and their settings change.
    fn from(error: ProbeError) -> Failure {
        Failure::recoverable(error.to_string())
    }
}
