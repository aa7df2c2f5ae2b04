//! Errors of fetching and unpacking.

use std::io;

/// The longest reason, in letters.
const LONGEST: usize = 400;

/// A reason, and whether another try may help.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) why: String,
    pub(crate) again: bool,
}

impl Trouble {
    /// Another try may help.
    pub(crate) fn passing(why: impl Into<String>) -> Trouble {
        Trouble::new(why.into(), true)
    }

    /// Another try meets the same.
    pub(crate) fn lasting(why: impl Into<String>) -> Trouble {
        Trouble::new(why.into(), false)
    }

    /// The disk says no.
    pub(crate) fn disk(error: impl Into<io::Error>) -> Trouble {
        Trouble::passing(format!("cannot write: {}", error.into()))
    }

    fn new(why: String, again: bool) -> Trouble {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let why = why.chars().take(LONGEST).map(plain).collect();
        Trouble { why, again }
    }
}
