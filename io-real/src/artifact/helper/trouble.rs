//! Why something cannot be fetched.

use std::io;

/// The longest reason, in letters.
const LONGEST: usize = 400;

/// A reason, and whether another try may help.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) why: String,
    pub(super) again: bool,
}

impl Trouble {
    /// Another try may help.
    pub(super) fn passing(why: impl Into<String>) -> Trouble {
        Trouble::new(why.into(), true)
    }

    /// Another try meets the same.
    pub(super) fn lasting(why: impl Into<String>) -> Trouble {
        Trouble::new(why.into(), false)
    }

    /// The disk says no.
    pub(super) fn disk(error: impl Into<io::Error>) -> Trouble {
        Trouble::passing(format!("cannot write: {}", error.into()))
    }

    fn new(why: String, again: bool) -> Trouble {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let why = why.chars().take(LONGEST).map(plain).collect();
        Trouble { why, again }
    }
}
