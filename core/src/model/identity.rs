//! Workload identities: by what a task proves to others who it is. Whoever issues them signs a
//! token for each; none of them is ever told to the core.

use serde::{Deserialize, Serialize};

use super::value::Value;
use crate::time::Span;

/// The name of the identity that needs none.
pub const DEFAULT: &str = "default";

/// One identity of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Identity {
    /// Unique in its task; empty is `default`.
    pub name: String,
    /// For whom its tokens are.
    pub audience: Vec<String>,
    /// What happens to the task when it gets a new token.
    pub change_mode: RenewMode,
    /// The signal of [`RenewMode::Signal`].
    pub change_signal: String,
    /// Whether the task has the token as a variable.
    pub env: bool,
    /// Whether the task has it as a file.
    pub file: bool,
    /// Which file; one in `secrets` that bears the name if empty.
    pub filepath: String,
    /// How long a token is good; for ever if zero.
    #[serde(rename = "TTL")]
    pub ttl: Span,
    /// More to say of the task; refused.
    pub extra_claims: Option<Value>,
}

/// What happens to a task that gets a new token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RenewMode {
    /// Nothing.
    #[default]
    #[serde(alias = "")]
    Noop,
    /// It is started again.
    Restart,
    /// It is sent a signal.
    Signal,
}

impl Identity {
    /// Its name, also where none is written.
    pub fn name(&self) -> &str {
        if self.name.is_empty() {
            DEFAULT
        } else {
            &self.name
        }
    }

    /// Whether the task has its token in any way.
    pub fn is_wanted(&self) -> bool {
        self.env || self.file
    }

    /// The file for its token, as a job names files.
    pub fn path(&self) -> String {
        match (self.filepath.as_str(), self.name()) {
            ("", DEFAULT) => "secrets/nomad_token".to_owned(),
            ("", name) => format!("secrets/nomad_{name}.jwt"),
            (path, _) => path.to_owned(),
        }
    }

    /// The variable for its token.
    pub fn variable(&self) -> String {
        match self.name() {
            DEFAULT => "NOMAD_TOKEN".to_owned(),
            name => format!("NOMAD_TOKEN_{name}"),
        }
    }

    /// How long after a token was issued the next one is.
    pub fn renewal(&self) -> Option<Span> {
        (self.ttl.0 > 0).then_some(Span(self.ttl.0 / 2))
    }
}
