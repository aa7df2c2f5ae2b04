//! The exit codes of commands, and the messages of those that fail.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | failed ([`Failure::new`]); of `job plan`: something would start or end; of `rehearse`: something is bad |
//! | 2 | a placement failed (`monitor.rs`); of `system audit`: something is leaked; of `rehearse`: it cannot be rehearsed |
//! | 255 | of `job plan`: the file, the agent or the job is at fault |
//! | others | of `exec`: the program's own, and 128 and the signal's number for one that a signal ended |

use std::fmt;

/// Why a command failed, for the user, and the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What to say; nothing more if empty.
    pub message: String,
    /// What the process exits with.
    pub code: u8,
    /// The agent's status, if it answered with an error.
    pub status: Option<u16>,
    /// What to do about it, if that is known: a line of its own.
    pub hint: Option<String>,
}

impl Failure {
    /// A message and exit code 1.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            code: 1,
            status: None,
            hint: None,
        }
    }

    /// An exit code; everything is said already.
    pub fn quiet(code: u8) -> Failure {
        Failure {
            message: String::new(),
            code,
            status: None,
            hint: None,
        }
    }

    /// The agent answered with an error.
    pub fn status(status: u16, body: &str) -> Failure {
        let message = format!("Unexpected response code: {status} ({})", body.trim_end());
        Failure {
            message,
            code: 1,
            status: Some(status),
            hint: None,
        }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn or_try(self, hint: Option<String>) -> Failure {
        Failure { hint, ..self }
    }

    /// The same with words in front.
    #[must_use]
    pub fn within(mut self, words: &str) -> Failure {
        if !self.message.is_empty() {
            self.message = format!("{words}: {}", self.message);
        }
        self
    }

    /// The same, if it is what the agent answered: that there is no answer needs no such words.
    #[must_use]
    pub fn answered_within(self, words: &str) -> Failure {
        match self.status {
            Some(_) => self.within(words),
            None => self,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Failure {}
