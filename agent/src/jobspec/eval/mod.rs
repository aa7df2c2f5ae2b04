//! What expressions mean.
//!
//! References whose first name is unknown (`attr`, `meta`, `node`, `env`, `device`, `NOMAD_…`)
//! are resolved on the node when the task starts, so they are put back as the text `${…}` and
//! marked. Marked text may be moved around (into lists, maps, templates), but whatever would
//! look at it or change it is an error: its value is not known yet.

pub(crate) mod convert;
pub(crate) mod expr;
pub(crate) mod ops;
pub(crate) mod scope;
pub(crate) mod template;
pub(crate) mod traversal;
pub(crate) mod types;
pub(crate) mod value;

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use super::bounds::{Budget, Exhausted, ITEM};
use super::error::Issue;
use super::source::{At, Source};
use value::Val;

/// A mistake in an expression.
pub(crate) type Fault = Box<Issue>;

/// Values that expressions may refer to.
#[derive(Debug, Default)]
pub(crate) struct Globals {
    /// `var.<name>`.
    pub(crate) vars: BTreeMap<String, Val>,
    /// `local.<name>`.
    pub(crate) locals: BTreeMap<String, Val>,
    /// What is said instead where neither may be used, such as in a variable's default.
    pub(crate) refused: Option<&'static str>,
}

/// Everything that evaluation needs besides the expression and the names around it.
pub(crate) struct Evaluator<'a> {
    /// The text in which the expressions stand.
    pub(crate) source: &'a Source,
    pub(crate) globals: &'a Globals,
    pub(crate) budget: &'a Budget,
    /// Where functions may read files, if they may.
    pub(crate) files: Option<&'a Path>,
    /// What is likely a mistake.
    pub(crate) warnings: &'a RefCell<Vec<Issue>>,
}

impl Evaluator<'_> {
    pub(crate) fn fault(&self, at: &At, message: impl Into<String>) -> Fault {
        self.source.issue(at, message)
    }

    pub(crate) fn exhausted(&self, at: &At) -> Fault {
        let fault = self.fault(at, Exhausted::MESSAGE);
        fault.help(Exhausted::HELP)
    }

    pub(crate) fn spend(&self, at: &At, work: usize) -> Result<(), Fault> {
        self.budget
            .spend(work)
            .map_err(|Exhausted| self.exhausted(at))
    }

    #[expect(
        clippy::boxed_local,
        reason = "issues come boxed, as errors of small results"
    )]
    pub(crate) fn warn(&self, issue: Box<Issue>) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < super::error::MAX_ISSUES {
            warnings.push(*issue);
        }
    }

    pub(crate) fn list(&self, at: &At, items: Vec<Val>) -> Result<Val, Fault> {
        self.spend(at, items.len() * ITEM)?;
        Val::list(items).map_err(|Exhausted| self.exhausted(at))
    }

    pub(crate) fn map(&self, at: &At, entries: BTreeMap<String, Val>) -> Result<Val, Fault> {
        self.spend(at, entries.len() * ITEM)?;
        Val::map(entries).map_err(|Exhausted| self.exhausted(at))
    }

    /// Refuses to look into what is known at run time only.
    pub(crate) fn known(&self, at: &At, val: &Val, what: &str) -> Result<(), Fault> {
        if !val.has_runtime() {
            return Ok(());
        }
        let shown = match val {
            Val::Text(text) => text.text.chars().take(80).collect(),
            other => other.kind().to_owned(),
        };
        let fault = self.fault(
            at,
            format!("{what} cannot be applied to {shown}, whose value is known at run time only"),
        );
        Err(fault.help(
            "References to the node, the environment or the allocation are filled in when the \
             task starts. Use the reference itself, or compute the value in the task.",
        ))
    }
}
