//! Variables in values: `$X`, `${X}`, `${X:-default}`, `${X:?message}`, `${X:+instead}` and `$$`.
//!
//! They become variables of the job file, with the same names and the defaults that the file gives. Where a value has
//! to be understood here (a port, a duration), its default is taken instead, and a comment says so.

use std::collections::BTreeMap;

use crate::error::{Mistake, Place, Result, quote};
use crate::job::Variable;
use crate::text::{Part, Text};
use crate::yaml::Node;

/// How deep defaults may lie in defaults.
const MAX_DEPTH: usize = 8;
/// How many variables a file may have.
const MAX_VARIABLES: usize = 1_000;

/// The variables that were seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, Seen>);

#[derive(Clone, Debug)]
struct Seen {
    line: usize,
    default: Option<String>,
    /// Given by the file, and not what compose does without one.
    has_default: bool,
    message: Option<String>,
    is_number: bool,
    others: Vec<String>,
}

/// What follows the name in `${NAME…}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Nothing,
    Default,
    Required,
    Instead,
}

impl Variables {
    /// A value with its variables.
    pub(crate) fn text(&mut self, node: &Node, what: &str) -> Result<Text> {
        let Some(text) = node.scalar() else {
            return Err(node.mistake(format!("{what} must be a single value")));
        };
        self.of(&text, node.at)
    }

    /// A text with its variables.
    pub(crate) fn of(&mut self, text: &str, at: Place) -> Result<Text> {
        self.parse(text, at, 0)
    }

    /// The value that a text has if all its variables have their defaults, and the names of these.
    pub(crate) fn resolved(&mut self, node: &Node, what: &str) -> Result<(String, Vec<String>)> {
        let text = self.text(node, what)?;
        Ok(self.with_defaults(&text))
    }

    /// The same of a text.
    pub(crate) fn with_defaults(&self, text: &Text) -> (String, Vec<String>) {
        let (mut all, mut names) = (String::new(), Vec::new());
        for part in &text.0 {
            match part {
                Part::Plain(text) => all.push_str(text),
                Part::Variable(name) => {
                    all.push_str(self.default(name));
                    names.push(name.clone());
                }
                Part::If(name, then) => {
                    if !self.default(name).is_empty() {
                        all.push_str(then);
                    }
                    names.push(name.clone());
                }
            }
        }
        (all, names)
    }

    fn default(&self, name: &str) -> &str {
        let seen = self.0.get(name).and_then(|seen| seen.default.as_deref());
        seen.unwrap_or_default()
    }

    /// From now on it is a number, if its default is one.
    pub(crate) fn as_port(&mut self, name: &str) -> bool {
        let Some(seen) = self.0.get_mut(name) else {
            return false;
        };
        let port = seen
            .default
            .as_deref()
            .and_then(|it| it.parse::<u16>().ok());
        seen.is_number |=
            port.is_some_and(|port| port > 0 && Some(port.to_string()) == seen.default);
        seen.is_number
    }

    /// Adds one of our own, with a value.
    pub(crate) fn own(&mut self, name: &str, value: &str, comment: &str) {
        let seen = Seen {
            line: 0,
            default: Some(value.to_owned()),
            has_default: true,
            message: Some(comment.to_owned()),
            is_number: false,
            others: Vec::new(),
        };
        self.0.entry(name.to_owned()).or_insert(seen);
    }

    /// The variables of the job file.
    pub(crate) fn declared(self) -> Vec<Variable> {
        let variable = |(name, seen): (String, Seen)| Variable {
            comment: seen.comment(&name),
            name,
            default: seen.default,
            is_number: seen.is_number,
        };
        self.0.into_iter().map(variable).collect()
    }

    fn parse(&mut self, text: &str, at: Place, depth: usize) -> Result<Text> {
        if depth > MAX_DEPTH {
            let message = format!("variables in defaults of variables, more than {MAX_DEPTH} deep");
            return Err(Mistake::new(at, message));
        }
        let mut all = Text::default();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            let (before, behind) = rest.split_at(dollar);
            all.push(before);
            let behind = behind.get(1..).unwrap_or_default();
            if let Some(after) = behind.strip_prefix('$') {
                all.push("$");
                rest = after;
            } else if let Some(inner) = behind.strip_prefix('{') {
                let end = closing(inner).ok_or_else(|| {
                    let text = quote(text);
                    Mistake::new(
                        at,
                        format!("${{ without its }} in {text}; for a dollar sign write $$"),
                    )
                })?;
                let (inner, after) = inner.split_at(end);
                let part = self.braced(inner, at, depth)?;
                all.0.push(part);
                rest = after.get(1..).unwrap_or_default();
            } else {
                let end = name_end(behind);
                if end == 0 {
                    let message = format!("{}: for a dollar sign write $$", quote(text));
                    return Err(Mistake::new(at, message));
                }
                let (name, after) = behind.split_at(end);
                self.see(name, at, None, None)?;
                all.0.push(Part::Variable(name.to_owned()));
                rest = after;
            }
        }
        all.push(rest);
        Ok(all)
    }

    fn braced(&mut self, inner: &str, at: Place, depth: usize) -> Result<Part> {
        let (name, behind) = inner.split_at(name_end(inner));
        let bad = || {
            let inner = quote(inner);
            Mistake::new(
                at,
                format!("{inner} in ${{…}} is no name of a variable with a default"),
            )
        };
        if name.is_empty() {
            return Err(bad());
        }
        let operator = behind.strip_prefix(':').unwrap_or(behind);
        let mut chars = operator.chars();
        let (operator, word) = match chars.next() {
            None if behind.is_empty() => (Operator::Nothing, ""),
            Some('-') => (Operator::Default, chars.as_str()),
            Some('?') => (Operator::Required, chars.as_str()),
            Some('+') => (Operator::Instead, chars.as_str()),
            Some(_) | None => return Err(bad()),
        };
        let word = self.parse(word, at, depth + 1)?;
        let (word, _) = self.with_defaults(&word);
        let name = name.to_owned();
        match operator {
            Operator::Nothing => self.see(&name, at, None, None)?,
            Operator::Default => self.see(&name, at, Some(&word), None)?,
            Operator::Required => self.see(&name, at, None, Some(&word))?,
            Operator::Instead => {
                self.see(&name, at, None, None)?;
                return Ok(Part::If(name, word));
            }
        }
        Ok(Part::Variable(name))
    }

    /// Remembers a variable, with a default or the message that it must be given.
    fn see(
        &mut self,
        name: &str,
        at: Place,
        default: Option<&str>,
        must: Option<&str>,
    ) -> Result<()> {
        if self.0.len() >= MAX_VARIABLES && !self.0.contains_key(name) {
            let message = format!("more than {MAX_VARIABLES} variables");
            return Err(Mistake::new(at, message));
        }
        let seen = self.0.entry(name.to_owned()).or_insert_with(|| Seen {
            line: at.line,
            default: Some(String::new()),
            has_default: false,
            message: None,
            is_number: false,
            others: Vec::new(),
        });
        if let Some(must) = must {
            seen.message = Some(must.to_owned());
            if !seen.has_default {
                seen.default = None;
            }
        }
        let Some(default) = default else {
            return Ok(());
        };
        if !seen.has_default {
            seen.default = Some(default.to_owned());
            seen.has_default = true;
        } else if seen.default.as_deref() != Some(default) && seen.others.len() < 10 {
            seen.others
                .push(format!("{} (line {})", quote(default), at.line));
        }
        Ok(())
    }
}

impl Seen {
    fn comment(&self, name: &str) -> String {
        let line = self.line;
        let given = format!("-var {name}=… or NOMAD_VAR_{name}");
        let mut words = match &self.message {
            Some(message) if line == 0 => return message.clone(),
            Some(message) if self.default.is_none() => {
                let why = if message.is_empty() { "" } else { ": " };
                format!("Line {line}: it must be given, with {given}{why}{message}.")
            }
            _ if self.has_default => format!("Line {line}. Another value is given with {given}."),
            _ => format!(
                "Line {line} gives no default: it is empty unless it is given, with {given}. Compose takes what its \
                 environment or .env says."
            ),
        };
        if !self.others.is_empty() {
            let others = self.others.join(", ");
            words.push_str(&format!(" Elsewhere other defaults are given: {others}."));
        }
        words
    }
}

/// Where the name at the beginning of a text ends.
fn name_end(text: &str) -> usize {
    let fits = |(at, c): (usize, char)| {
        c.is_ascii_alphabetic() || c == '_' || (at > 0 && c.is_ascii_digit())
    };
    let mut chars = text.char_indices();
    chars.find(|it| !fits(*it)).map_or(text.len(), |(at, _)| at)
}

/// Where the brace is that closes the one before this text.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    let mut last = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '{' if last == '$' => open += 1,
            '}' if open == 0 => return Some(at),
            '}' => open -= 1,
            _ => {}
        }
        last = c;
    }
    None
}
