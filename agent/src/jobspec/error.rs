//! What is wrong with a job file, where, and what to do about it.

use core::fmt;

use drover_core::text::nearest;

/// How many mistakes are reported at once; a generated file could have millions.
pub(crate) const MAX_ISSUES: usize = 50;

/// One mistake or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The file, as it was named to the parser.
    pub file: String,
    /// The line from 1; 0 where no place is known.
    pub line: usize,
    /// The column from 1, in characters; 0 where no place is known.
    pub column: usize,
    /// The line's text, empty where no place is known.
    pub source_line: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Issue {
    /// The same issue with advice.
    #[must_use]
    pub(crate) fn help(mut self: Box<Self>, help: impl Into<String>) -> Box<Issue> {
        self.help = Some(help.into());
        self
    }

    /// The same issue, with advice only if there is some.
    #[must_use]
    pub(crate) fn maybe_help(mut self: Box<Self>, help: Option<String>) -> Box<Issue> {
        self.help = help.or(self.help);
        self
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        write!(f, " {}", self.message)?;
        if !self.source_line.is_empty() {
            let margin = " ".repeat(self.line.to_string().len());
            // A tab before the caret keeps it below its character, however wide tabs are shown.
            let pad = self.source_line.chars().take(self.column - 1);
            let pad: String = pad.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            write!(f, "\n  {} | {}", self.line, self.source_line)?;
            write!(f, "\n  {margin} | {pad}^")?;
        }
        match &self.help {
            Some(help) => write!(f, "\n  {help}"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Issue {}

/// Everything that is wrong with a job file, in the order of discovery; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    /// The mistakes.
    pub issues: Vec<Issue>,
    /// How many more there are that are not listed.
    pub more: usize,
}

/// Mistakes while they are being found.
#[derive(Debug, Default)]
pub(crate) struct Issues {
    list: Vec<Issue>,
    more: usize,
}

impl Issues {
    #[expect(
        clippy::boxed_local,
        reason = "issues come boxed, as errors of small results"
    )]
    pub(crate) fn push(&mut self, issue: Box<Issue>) {
        if self.list.len() < MAX_ISSUES {
            self.list.push(*issue);
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether no more are listed, so that there is no use in looking for more.
    pub(crate) fn is_full(&self) -> bool {
        self.more > 0
    }
}

impl From<Issues> for Errors {
    fn from(issues: Issues) -> Errors {
        Errors {
            issues: issues.list,
            more: issues.more,
        }
    }
}

impl From<Box<Issue>> for Errors {
    fn from(issue: Box<Issue>) -> Errors {
        Errors {
            issues: vec![*issue],
            more: 0,
        }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, issue) in self.issues.iter().enumerate() {
            if at > 0 {
                f.write_str("\n\n")?;
            }
            issue.fmt(f)?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\n\n{more} more mistakes are not shown"),
        }
    }
}

impl core::error::Error for Errors {}

/// "Did you mean …?" for a name that is close to a known one.
pub(crate) fn did_you_mean<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(name, known).map(|other| format!("Did you mean \"{other}\"?"))
}
