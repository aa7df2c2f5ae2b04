//! What an expression is.

use regex::Regex;

/// An expression.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    /// Any of them holds.
    Or(Vec<Expr>),
    /// All of them hold.
    And(Vec<Expr>),
    /// It does not hold.
    Not(Box<Expr>),
    /// One comparison.
    Match(Match),
    /// A condition on the elements of a list or a map.
    Each(Each),
}

/// One comparison.
#[derive(Clone, Debug)]
pub(super) struct Match {
    pub(super) selector: Selector,
    /// Whether the opposite is asked for.
    pub(super) negated: bool,
    pub(super) test: Test,
}

/// What is asked of a value.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// It is this, in the value's own type.
    Equals(String),
    /// It has this element, key or part.
    Contains(String),
    /// It matches.
    Matches(Regex),
    /// It has no elements, or no characters.
    Empty,
    /// It is not set.
    Nil,
}

/// A condition on elements.
#[derive(Clone, Debug)]
pub(super) struct Each {
    /// Whether all of them must fulfil it, or any.
    pub(super) all: bool,
    pub(super) selector: Selector,
    pub(super) names: Names,
    pub(super) condition: Box<Expr>,
}

/// What an element is called in the condition.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// The key of a map, or the position in a list.
    pub(super) key: Option<String>,
    /// The value.
    pub(super) value: Option<String>,
    /// One name alone: of the keys of a map, or the elements of a list.
    pub(super) only: Option<String>,
}

/// Where a value lies: names of fields and keys, and positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selector(pub(super) Vec<String>);

impl Selector {
    /// As a path, for people.
    pub(super) fn path(&self) -> String {
        self.0.iter().flat_map(|name| ["/", name]).collect()
    }
}
