//! What can go wrong with a plugin.

use std::fmt;
use std::io;
use std::time::Duration;

use drover_core::op::Failure;
use tonic::Code;

use super::handshake::HandshakeError;
use super::process::Exit;
use super::program::ProgramError;

/// What went wrong with a plugin.
#[derive(Debug)]
pub enum PluginError {
    /// Its program is none that is run.
    Program(ProgramError),
    /// The machine did not start it, or does not let us speak to it.
    Io(io::Error),
    /// It ended before it said where it listens: how, and what it said last.
    ExitedEarly {
        /// How it ended.
        exit: Exit,
        /// The last lines of its standard error.
        reported: String,
    },
    /// What it said is no handshake.
    Handshake(HandshakeError),
    /// It did not say in this time where it listens.
    StartTimeout(Duration),
    /// Its socket is not its own.
    Stranger(String),
    /// It is gone, or its connection is.
    Lost(String),
    /// It did not answer this call in this time.
    Timeout {
        /// Which call.
        call: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// It refused a call.
    Refused(Refusal),
    /// What it said has no sense.
    Invalid(String),
    /// It sent more messages in a second than so many.
    Flood(u32),
}

/// What a plugin said when it refused a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which call.
    pub call: &'static str,
    /// Its code.
    pub code: Code,
    /// Its words.
    pub message: String,
    /// Whether it says that trying again may help.
    pub recoverable: bool,
}

impl PluginError {
    /// Whether the plugin does not know this call, which some may.
    pub fn is_unimplemented(&self) -> bool {
        matches!(self, PluginError::Refused(refusal) if refusal.code == Code::Unimplemented)
    }

    /// Whether a driver says that it has no such task. It is told by the words alone.
    pub fn is_unknown_task(&self) -> bool {
        const WORDS: &str = "task not found for given id";
        matches!(self, PluginError::Refused(refusal) if refusal.message.contains(WORDS))
    }

    /// Whether nobody is there any more to be asked.
    pub fn is_lost(&self) -> bool {
        matches!(self, PluginError::Lost(_))
    }
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::ExitedEarly { exit, reported } if reported.is_empty() => {
                write!(f, "it ended ({exit}) before it could be spoken to")
            }
            Self::ExitedEarly { exit, reported } => {
                write!(
                    f,
                    "it ended ({exit}) before its handshake; it wrote {reported:?}"
                )
            }
            Self::Handshake(error) => error.fmt(f),
            Self::StartTimeout(after) => {
                write!(f, "it sent no handshake within {after:?}")
            }
            Self::Stranger(why) => write!(f, "its socket is not its own: {why}"),
            Self::Lost(why) => write!(f, "it is gone: {why}"),
            Self::Timeout { call, after } => write!(f, "no answer to {call} within {after:?}"),
            Self::Refused(refusal) => write!(f, "{}: {}", refusal.call, refusal.message),
            Self::Invalid(what) => write!(f, "it sent an invalid answer: {what}"),
            Self::Flood(limit) => write!(f, "it sends more than {limit} messages in a second"),
        }
    }
}

impl std::error::Error for PluginError {}

impl From<io::Error> for PluginError {
    fn from(error: io::Error) -> PluginError {
        PluginError::Io(error)
    }
}

impl From<ProgramError> for PluginError {
    fn from(error: ProgramError) -> PluginError {
        PluginError::Program(error)
    }
}

impl From<HandshakeError> for PluginError {
    fn from(error: HandshakeError) -> PluginError {
        PluginError::Handshake(error)
    }
}

impl From<PluginError> for Failure {
    /// A plugin that is gone or silent may be back for another try; what it refused it refuses
    /// again, unless it says otherwise.
    fn from(error: PluginError) -> Failure {
        let message = error.to_string();
        match error {
            PluginError::Refused(Refusal { recoverable, .. }) => Failure {
                message,
                recoverable,
            },
            PluginError::Io(_)
            | PluginError::Lost(_)
            | PluginError::Timeout { .. }
            | PluginError::StartTimeout(_)
            | PluginError::ExitedEarly { .. } => Failure::recoverable(message),
            PluginError::Program(_)
            | PluginError::Handshake(_)
            | PluginError::Stranger(_)
            | PluginError::Invalid(_)
            | PluginError::Flood(_) => Failure::fatal(message),
        }
    }
}
