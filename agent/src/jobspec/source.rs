//! A text with a name, and the way from a byte offset to what a person can find in it.

use core::ops::Range;

use super::bounds::MAX_SOURCE;
use super::error::Issue;

/// A position in a file, counted from 1 as editors do; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// Where something stands in a source: byte offsets, none where nobody knows.
pub(crate) type At = Option<Range<usize>>;

/// Longest part of a source line that an error shows.
const SHOWN: usize = 160;

/// A named text.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    text: String,
    /// Byte offset of each line's start.
    lines: Vec<usize>,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Source {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Source {
            name: name.to_owned(),
            text: text.to_owned(),
            lines: core::iter::once(0)
                .chain(starts.map(|(at, _)| at + 1))
                .collect(),
        }
    }

    /// A source, unless it is larger than anybody writes.
    pub(crate) fn bounded(name: &str, text: &str) -> Result<Source, Box<Issue>> {
        if text.len() <= MAX_SOURCE {
            return Ok(Source::new(name, text));
        }
        let message = format!("the file has {} MiB", text.len() >> 20);
        let issue = Source::new(name, "").issue(&None, message);
        Err(issue.help(format!("At most {} MiB are read.", MAX_SOURCE >> 20)))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text of a range; empty where the range is none of this text.
    pub(crate) fn slice(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or("")
    }

    /// Line and column of a byte offset.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let column = match self.text.get(start..offset) {
            Some(before) => before.chars().count() + 1,
            None => 1,
        };
        Position { line, column }
    }

    /// A mistake at a place of this text.
    pub(crate) fn issue(&self, at: &At, message: impl Into<String>) -> Box<Issue> {
        let position = at.as_ref().map(|range| self.position(range.start));
        Box::new(Issue {
            file: self.name.clone(),
            line: position.map_or(0, |position| position.line),
            column: position.map_or(0, |position| position.column),
            source_line: position.map_or_else(String::new, |position| self.shown_line(position)),
            message: message.into(),
            help: None,
        })
    }

    /// The line of a place, unless the place is too far right to show it.
    fn shown_line(&self, position: Position) -> String {
        if position.column > SHOWN {
            return String::new();
        }
        let line = self.text.lines().nth(position.line - 1).unwrap_or("");
        line.chars().take(SHOWN).collect()
    }
}
