//! Reading short texts of Nomad's expression language, a character at a time.

use core::fmt;

/// How deep types and literals may be nested.
pub const MAX_DEPTH: usize = 32;

/// A text that has no sense.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Malformed {}

/// A place in a text.
pub(super) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { rest: text.trim() }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// The next character as it is.
    pub(super) fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    pub(super) fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Whether this character comes next, after space; it is passed then.
    pub(super) fn eat(&mut self, wanted: char) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    pub(super) fn expect(&mut self, wanted: char) -> Result<(), Malformed> {
        if self.eat(wanted) {
            Ok(())
        } else {
            Err(self.wrong(&format!("expected {wanted:?}")))
        }
    }

    /// As many characters as `of` likes, after space; maybe none.
    pub(super) fn word(&mut self, of: impl Fn(char) -> bool) -> &'a str {
        self.skip_space();
        let end = self.rest.find(|c| !of(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        word
    }

    /// A name: letters, digits, `_` and `-`.
    pub(super) fn name(&mut self) -> Result<&'a str, Malformed> {
        let name = self.word(|c| c.is_alphanumeric() || c == '_' || c == '-');
        if name.is_empty() {
            return Err(self.wrong("expected a name"));
        }
        Ok(name)
    }

    /// Nothing may follow.
    pub(super) fn end(&mut self) -> Result<(), Malformed> {
        self.skip_space();
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.wrong("expected nothing more"))
        }
    }

    pub(super) fn wrong(&self, what: &str) -> Malformed {
        let near: String = self.rest.chars().take(20).collect();
        Malformed(format!("{what} before {near:?}"))
    }
}
