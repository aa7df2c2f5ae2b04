//! Texts that nobody may read but those whom they are for.

use core::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A secret text, such as a token. Whoever prints it sees that there is one, and nothing of it; nothing is decided
/// by what it says.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(Arc<str>);

impl Secret {
    /// The text, for whom it is meant.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for Secret {
    fn from(text: T) -> Secret {
        Secret(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn secret_prints_nothing_of_itself() {
        let secret = Secret::from("s3cret");
        assert!(!format!("{secret:?} {:?}", Some(&secret)).contains("s3cret"));
        assert_eq!(secret.expose(), "s3cret");
    }
}
