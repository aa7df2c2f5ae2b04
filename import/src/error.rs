//! Why a file cannot be read.

use core::fmt;

/// A place in a text: line and column, both counted from 1; 0 where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file, as it was named.
    pub file: String,
    /// Where; line 0 if it is about the file as a whole.
    pub place: Place,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        match (line, column) {
            (0, _) => write!(f, "{}: {}", self.file, self.message),
            (line, 0) => write!(f, "{}:{line}: {}", self.file, self.message),
            (line, column) => write!(f, "{}:{line}:{column}: {}", self.file, self.message),
        }
    }
}

impl core::error::Error for Error {}

/// A mistake whose file is known further up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub place: Place,
    pub message: String,
}

impl Mistake {
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Mistake {
        let message = message.into();
        Mistake { place, message }
    }

    pub(crate) fn of(self, file: &str) -> Error {
        Error {
            file: file.to_owned(),
            place: self.place,
            message: self.message,
        }
    }
}

/// What reading a part gives.
pub(crate) type Result<T> = core::result::Result<T, Mistake>;

/// A text from the file in quotes for a message: short, and on one line.
pub(crate) fn quote(text: &str) -> String {
    const LONGEST: usize = 60;
    let short: String = text.chars().take(LONGEST).collect();
    match short.len() < text.len() {
        true => format!("{short:?}…"),
        false => format!("{short:?}"),
    }
}
