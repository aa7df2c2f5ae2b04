//! What can go wrong between the agent and an engine.

use std::fmt;
use std::io;

use bollard::errors::Error;
use drover_core::op::Failure;

use crate::http_client::whole_reason;

/// Why an engine did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It does not answer: it is gone, or hangs.
    Silent(String),
    /// It does not know what was asked for.
    Unknown(String),
    /// It cannot be done as things are: it is done already, or a name is taken.
    Conflict(String),
    /// It refuses.
    Refused(String),
    /// It failed by itself.
    Failed(String),
}

impl Trouble {
    /// What an answer with this status means.
    pub(super) fn of_answer(status: u16, message: String) -> Trouble {
        match status {
            404 => Trouble::Unknown(message),
            304 | 409 => Trouble::Conflict(message),
            400..500 => Trouble::Refused(message),
            _ => Trouble::Failed(message),
        }
    }

    /// What the engine said, or what there is instead.
    pub(super) fn message(&self) -> &str {
        match self {
            Trouble::Silent(why)
            | Trouble::Unknown(why)
            | Trouble::Conflict(why)
            | Trouble::Refused(why)
            | Trouble::Failed(why) => why,
        }
    }

    /// As the core wants to hear of it: what the engine refuses it refuses again.
    pub(super) fn failure(&self, what: &str) -> Failure {
        let message = format!("{what}: {self}");
        match self {
            Trouble::Silent(_) | Trouble::Conflict(_) | Trouble::Failed(_) => {
                Failure::recoverable(message)
            }
            Trouble::Unknown(_) | Trouble::Refused(_) => Failure::fatal(message),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Silent(why) => write!(f, "the engine does not answer: {why}"),
            Trouble::Unknown(_)
            | Trouble::Conflict(_)
            | Trouble::Refused(_)
            | Trouble::Failed(_) => f.write_str(self.message().trim()),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        match error {
            Error::DockerResponseServerError {
                status_code,
                message,
            } => Trouble::of_answer(status_code, message),
            Error::DockerStreamError { error } => Trouble::Failed(error),
            Error::IOError { err } => err.into(),
            Error::RequestTimeoutError => Trouble::Silent("it took too long".to_owned()),
            error @ Error::HyperResponseError { .. } => Trouble::Silent(whole_reason(&error)),
            error => Trouble::Failed(whole_reason(&error)),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Silent(error.to_string())
    }
}
