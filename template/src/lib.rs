//! Go's template syntax with the functions that templates of jobs use: text in, text out.
//!
//! This crate does no I/O, reads no clock and draws no random number. What a template asks of the
//! world is a [`Need`]; whoever renders answers it ([`Source`]) and renders again, until nothing
//! is missing:
//!
//! ```
//! use drover_template::{Answer, Answers, Need, Options, Rendering, Template};
//!
//! let template = Template::parse("{{ file \"motd\" | toUpper }}", Options::default())?;
//! let mut answers = Answers::default();
//! let need = Need::File("motd".into());
//! let Rendering::Waiting { missing, .. } = template.render(&answers)? else { panic!() };
//! assert!(missing.contains(&need));
//!
//! answers.known.insert(need, Answer::Text(b"hello".into()));
//! let Rendering::Done { text, .. } = template.render(&answers)? else { panic!() };
//! assert_eq!(text, b"HELLO");
//! # Ok::<(), drover_template::Error>(())
//! ```
//!
//! A template is a stranger's: whatever it says, reading and rendering end, within [`Limits`], and
//! at worst with an [`Error`] that has a line and a column.
//!
//! What is offered, and what differs from Go, is listed by [`page`].
//!
//! The way of a template: `lex`, `literal` and `parse` read the text into a tree (`ast`); `eval` goes
//! through it, and `eval::cx` counts steps and bytes and asks for what is needed; `value` has the
//! values, `format` shows them as Go does, `encode` writes JSON, YAML and TOML; `functions` is the
//! table of functions, from which [`page`] makes `docs/templates.md`. Only what was answered goes in,
//! so the same answers give the same text.
//!
//! The engine is our own because `gtmpl` is old and lacks half of the syntax, and `gotmpl` (0.6) has
//! the syntax, but no places for errors while rendering, texts that must be UTF-8, no objects with
//! methods, and no bound on memory. `tests/cases.json` holds ours to what Go and Nomad's functions
//! say of our templates.

#![forbid(unsafe_code)]

mod ast;
mod dialect;
mod encode;
mod error;
mod eval;
mod format;
mod functions;
mod lex;
mod literal;
mod need;
mod options;
mod page;
mod parse;
mod time;
mod value;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use error::{Error, ErrorKind};
pub use need::{Answer, Answers, Instance, Need, Service, Source, Variable, VariableMeta};
pub use options::{Limits, Options};
pub use page::page;

/// A template that was read.
#[derive(Clone, Debug)]
pub struct Template {
    text: Arc<str>,
    options: Options,
    parsed: Arc<parse::Parsed>,
}

/// What came of rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendering {
    /// Everything was known.
    Done {
        /// What was rendered; it need not be UTF-8.
        text: Vec<u8>,
        /// All that was asked: if one of the answers changes, so may the text.
        asked: BTreeSet<Need>,
    },
    /// Some things are not known yet. With their answers more may come to be asked.
    Waiting {
        /// What is not known, or is known not to be there yet.
        missing: BTreeSet<Need>,
        /// All that was asked, with what is missing.
        asked: BTreeSet<Need>,
    },
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// If it is too long, its syntax is wrong, or it names a function or variable that is not
    /// there.
    pub fn parse(text: &str, options: Options) -> Result<Self, Error> {
        let parsed = match text.len() > options.limits.input {
            true => Err(too_long(options.limits.input)),
            false => parse::parse(text, &options),
        };
        let parsed = Arc::new(parsed.map_err(|fault| fault.in_text(text))?);
        let text = text.into();
        Ok(Self {
            text,
            options,
            parsed,
        })
    }

    /// Renders it with what is known now. The same answers give the same text.
    ///
    /// # Errors
    /// If something in it fails while nothing is missing, is refused, or reaches a limit. What
    /// fails while something is missing may fail for that reason, and waits too.
    pub fn render(&self, source: &dyn Source) -> Result<Rendering, Error> {
        self.render_data(None, source)
    }

    /// As [`Template::render`], with data, which are `.` and `$` at its beginning.
    ///
    /// # Errors
    /// As [`Template::render`]; also if the data are larger than [`Limits::memory`], or too deep.
    pub fn render_with(
        &self,
        data: &serde_json::Value,
        source: &dyn Source,
    ) -> Result<Rendering, Error> {
        self.render_data(Some(data), source)
    }

    fn render_data(
        &self,
        data: Option<&serde_json::Value>,
        source: &dyn Source,
    ) -> Result<Rendering, Error> {
        let outcome = eval::render(&self.text, &self.parsed, &self.options, data, source);
        let outcome = outcome.map_err(|fault| fault.in_text(&self.text))?;
        let (asked, missing) = (outcome.asked, outcome.missing);
        Ok(match missing.is_empty() {
            true => Rendering::Done {
                text: outcome.text,
                asked,
            },
            false => Rendering::Waiting { missing, asked },
        })
    }
}

fn too_long(limit: usize) -> error::Fault {
    error::Fault::limit(format!(
        "the template is longer than {limit} bytes: make it shorter"
    ))
}
