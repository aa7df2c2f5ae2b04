//! Tokens, which are never printed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A token, which `{:?}` does not print.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The token.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(token: String) -> Secret {
        Secret(token)
    }
}

impl From<&str> for Secret {
    fn from(token: &str) -> Secret {
        Secret(token.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() {
            "no token"
        } else {
            "a token"
        })
    }
}
