//! Regular expressions for conditions: a documented part of what Nomad knows, matched in time
//! proportional to the lengths of expression and text, whatever both are.
//!
//! Known are: letters; `.`; classes `[a-z]`, `[^...]` and `[[:alpha:]]`; `*`, `+`, `?`, `{m}`,
//! `{m,}`, `{m,n}` (also with a `?` behind, which changes nothing here); `|`; groups `(...)`,
//! `(?:...)` and `(?P<name>...)`; `^`, `$`, `\A`, `\z`; `\d \D \w \W \s \S \b \B`, of ASCII;
//! `\t \n \r \f \v`; `\` before any other sign that is no letter or digit; and the flags `i` and
//! `s`, as `(?i)` or `(?i:...)`. Anything else, such as `\p{Greek}`, is an error.
//!
//! An expression is found anywhere in the text unless `^` or `$` say otherwise.

use core::fmt;

mod compile;
mod parse;

pub use compile::MAX_PROGRAM;
pub use parse::MAX_LENGTH;

/// What a letter may be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Set {
    ranges: Vec<(char, char)>,
    negated: bool,
    /// Whether upper and lower case are the same.
    fold: bool,
}

impl Set {
    fn has(&self, c: char) -> bool {
        let within = |c: char| {
            self.ranges
                .iter()
                .any(|(from, to)| (*from..=*to).contains(&c))
        };
        let found = within(c)
            || self.fold && (c.to_lowercase().any(within) || c.to_uppercase().any(within));
        found != self.negated
    }
}

/// A condition on a place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    End,
    Boundary,
    NoBoundary,
}

impl Place {
    fn is(self, before: Option<char>, after: Option<char>) -> bool {
        let word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        match self {
            Place::Start => before.is_none(),
            Place::End => after.is_none(),
            Place::Boundary => word(before) != word(after),
            Place::NoBoundary => word(before) == word(after),
        }
    }
}

/// A step of the compiled expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The expression is found.
    Found,
    /// Takes one letter, if it is in the set of this number.
    Take(usize),
    /// Goes on at both.
    Split(usize, usize),
    /// Goes on there.
    Jump(usize),
    /// Goes on if the place is right.
    At(Place),
}

/// A regular expression, ready to be looked for.
#[derive(Clone, PartialEq, Eq)]
pub struct Regexp {
    steps: Vec<Step>,
    sets: Vec<Set>,
}

impl fmt::Debug for Regexp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regexp({} steps)", self.steps.len())
    }
}

impl Regexp {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it, or not known here; or it is too large: more than [`MAX_LENGTH`]
    /// letters, or more than [`MAX_PROGRAM`] steps once its repetitions are written out.
    pub fn new(text: &str) -> Result<Regexp, String> {
        let (tree, sets) = parse::parse(text)?;
        let steps = compile::compile(&tree)?;
        Ok(Regexp { steps, sets })
    }

    /// Whether the expression is found in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        let mut now = Threads::new(self.steps.len());
        let mut next = Threads::new(self.steps.len());
        let mut before = None;
        let mut letters = text.chars();
        loop {
            let letter = letters.next();
            // A match may begin at every place.
            if self.follow(0, &mut now, before, letter) {
                return true;
            }
            let Some(letter) = letter else { return false };
            let after = letters.clone().next();
            next.clear();
            for &at in &now.takes {
                let Some(Step::Take(set)) = self.steps.get(at) else {
                    continue;
                };
                let fits = self.sets.get(*set).is_some_and(|set| set.has(letter));
                if fits && self.follow(at + 1, &mut next, Some(letter), after) {
                    return true;
                }
            }
            core::mem::swap(&mut now, &mut next);
            before = Some(letter);
        }
    }

    /// Adds all that can be reached from a step without taking a letter; whether the end can.
    fn follow(
        &self,
        from: usize,
        threads: &mut Threads,
        before: Option<char>,
        after: Option<char>,
    ) -> bool {
        threads.stack.push(from);
        while let Some(at) = threads.stack.pop() {
            match threads.seen.get_mut(at) {
                Some(seen) if !*seen => *seen = true,
                Some(_) | None => continue,
            }
            match self.steps.get(at) {
                Some(Step::Found) => return true,
                Some(Step::Take(_)) => threads.takes.push(at),
                Some(Step::Split(one, other)) => threads.stack.extend([*other, *one]),
                Some(Step::Jump(to)) => threads.stack.push(*to),
                Some(Step::At(place)) if place.is(before, after) => threads.stack.push(at + 1),
                Some(Step::At(_)) | None => {}
            }
        }
        false
    }
}

/// The steps that wait for the next letter.
struct Threads {
    seen: Vec<bool>,
    takes: Vec<usize>,
    stack: Vec<usize>,
}

impl Threads {
    fn new(steps: usize) -> Threads {
        Threads {
            seen: vec![false; steps],
            takes: Vec::new(),
            stack: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.seen.fill(false);
        self.takes.clear();
        self.stack.clear();
    }
}

#[cfg(test)]
mod tests;
