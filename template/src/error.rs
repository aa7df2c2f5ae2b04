//! What is wrong with a template, and where.

use std::fmt;

/// A place in a template's text, in bytes from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position(pub(crate) usize);

impl Position {
    /// Line and column, both from one; columns count characters.
    fn in_text(self, text: &str) -> (usize, usize) {
        let before = text.get(..self.0).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        (line, column)
    }
}

/// What sort of mistake it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// It cannot be read as a template.
    Syntax,
    /// It asks for something that is not offered here: a function of another service, say.
    Refused,
    /// It failed while it was rendered.
    Failed,
    /// It wants more than the limits allow.
    Limit,
}

/// What is wrong with a template, where, and what to do about it.
///
/// Messages show the template's own words and names of types, never data that was asked for: that
/// may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    line: usize,
    column: usize,
    message: String,
}

impl Error {
    /// What sort of mistake it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The character of the line, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, .. } = self;
        write!(f, "line {line}, column {column}: {}", self.message)
    }
}

impl std::error::Error for Error {}

/// A mistake on its way out, to which a place is given where one is known.
///
/// Boxed, because it is in every result.
#[derive(Debug)]
pub(crate) struct Fault(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    position: Option<Position>,
    message: String,
}

impl Fault {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        let position = None;
        Self(Box::new(Inner {
            kind,
            position,
            message,
        }))
    }

    pub(crate) fn syntax(position: Position, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Syntax, message).at(position)
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// Gives it a place, unless it has one: the innermost is the nearest.
    pub(crate) fn at(mut self, position: Position) -> Self {
        self.0.position.get_or_insert(position);
        self
    }

    /// Says who met it.
    pub(crate) fn of(mut self, who: &str) -> Self {
        self.0.message = format!("{who}: {}", self.0.message);
        self
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    pub(crate) fn in_text(self, text: &str) -> Error {
        let (line, column) = self.0.position.unwrap_or_default().in_text(text);
        Error {
            kind: self.0.kind,
            line,
            column,
            message: self.0.message,
        }
    }
}
