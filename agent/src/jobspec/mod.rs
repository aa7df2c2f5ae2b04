//! Reading job files.
//!
//! [`parse`] reads the native form (HCL2), its JSON form (`{"job": {…}}`) and the job API's JSON
//! (`{"Job": {…}}`, or a job alone). [`from_api_json`] reads the latter only, for servers. The
//! way back to JSON is the model's own serialisation.
//!
//! What is read is what was written: neither defaults are filled in (see
//! [`drover_core::model::canonical`]) nor is the job validated.
//!
//! # Where this differs from Nomad's parser
//!
//! - Applying a function, an operator, a condition or a `for` to a reference that is resolved at
//!   run time (`attr.…`, `meta.…`, `node.…`, `env.…`, `device.…`, `NOMAD_…`) is an error.
//!   Functions that only move their arguments or put them together take such references:
//!   `chunklist`, `coalesce`, `coalescelist`, `compact`, `concat`, `element`, `flatten`,
//!   `format` and `formatlist` (with plain `%s` and `%v`), `join`, `jsonencode`, `keys`,
//!   `length`, `lookup`, `merge`, `reverse`, `setproduct`, `slice`, `values`, `yamlencode`,
//!   `zipmap`.
//! - Durations that are numbers below a millisecond are warned of: they are nanoseconds.
//! - All shorthands of `constraint` work, also `is_set`, `is_not_set`, `set_contains_all` and
//!   `set_contains_any`. A group's secrets are added to its tasks' own.
//! - Numbers are exact up to 64 bits and have the precision of an `f64` beyond that and in
//!   fractions.
//! - `bcrypt` and `rsadecrypt` are not supported.
//!
//! # Why an evaluator of our own
//!
//! [`hcl-edit`](https://docs.rs/hcl-edit) keeps places, so every mistake has a line and a column.
//! hcl-rs's own evaluator has no places for its errors, puts heredocs with directives together
//! differently, and knows no references that are resolved at run time.
//!
//! A job file is bounded in size, depth and work ([`bounds`]). One that comes over HTTP cannot read
//! files of the agent. What a job may contain is bounded by `core/src/validate/mod.rs`.

mod api;
mod blocks;
mod bounds;
mod error;
mod eval;
pub mod format;
mod functions;
mod hcl_json;
mod json_text;
mod locals;
pub mod positions;
mod source;
mod syntax;
mod variables;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]
mod tests;

use core::cell::RefCell;
use std::path::PathBuf;

use drover_core::model::job::Job;
use drover_core::model::value::Value;
use hcl_edit::Span;
use hcl_edit::structure::{Block, Body, Structure};

pub use api::from_api_json;
pub use error::{Errors, Issue};
pub use positions::{Position, Positions};

use blocks::decode::{Context, Decoder};
use blocks::items::labels;
use bounds::Budget;
use error::{Issues, did_you_mean};
use eval::scope::Scope;
use eval::{Evaluator, Globals};
use hcl_json::Level;
use source::Source;

/// What the reading of a job file depends on besides the file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Values of variables, as `-var name=value` gives them; later ones replace earlier ones.
    pub vars: Vec<(String, String)>,
    /// Files of values, as `-var-file` names them; later ones replace earlier ones.
    pub var_files: Vec<VarFile>,
    /// The environment, of which `NOMAD_VAR_<name>` and `DROVER_VAR_<name>` are looked at.
    pub env: Vec<(String, String)>,
    /// Whether values of variables that the file does not declare are warned of only.
    pub lenient_variables: bool,
    /// The directory from which functions may read files; none where they must not.
    pub files: Option<PathBuf>,
}

/// A file of values of variables, already read.
#[derive(Clone, Debug)]
pub struct VarFile {
    /// Its name, for errors.
    pub name: String,
    /// What it contains, in HCL or JSON.
    pub text: String,
}

/// A job file that could be read.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The job as it was written.
    pub job: Job,
    /// Where its parts were written; empty for the job API's JSON.
    pub positions: Positions,
    /// What is likely a mistake.
    pub warnings: Vec<Issue>,
}

/// What all expressions of one file share.
struct Session<'a> {
    source: &'a Source,
    budget: &'a Budget,
    warnings: &'a RefCell<Vec<Issue>>,
    options: &'a Options,
}

impl Session<'_> {
    fn evaluator<'e>(&'e self, globals: &'e Globals) -> Evaluator<'e> {
        self.evaluator_of(self.source, globals)
    }

    /// An evaluator for expressions of another text.
    fn evaluator_of<'e>(&'e self, source: &'e Source, globals: &'e Globals) -> Evaluator<'e> {
        Evaluator {
            source,
            globals,
            budget: self.budget,
            files: self.options.files.as_deref(),
            warnings: self.warnings,
        }
    }
}

/// Reads a job file. Nothing is read from the disk unless [`Options::files`] allows it.
///
/// # Errors
///
/// All mistakes that could be found in one go, each with its place.
pub fn parse(source: &str, file_name: &str, options: &Options) -> Result<Parsed, Errors> {
    let text = source.strip_prefix('\u{feff}').unwrap_or(source);
    let source = Source::bounded(file_name, text)?;
    if hcl_json::is_json(text) {
        return parse_json(&source, file_name, options);
    }
    let body = hcl_json::read_body(&source, Some(Level::File))?;
    parse_body(&source, &body, options)
}

fn parse_json(plain: &Source, file_name: &str, options: &Options) -> Result<Parsed, Errors> {
    let json: serde_json::Value = serde_json::from_str(plain.text()).map_err(|error| {
        let mut issue = plain.issue(&None, format!("this is no JSON: {error}"));
        (issue.line, issue.column) = (error.line(), error.column());
        issue
    })?;
    if json.get("job").is_some() || (json.get("Job").is_none() && json.get("ID").is_none()) {
        let source = Source::new(file_name, &json_text::as_hcl(plain.text()));
        let body = hcl_json::read_body(&source, Some(Level::File))?;
        return parse_body(&source, &body, options);
    }
    let job = api::job_of(json).map_err(|mut issue| {
        file_name.clone_into(&mut issue.file);
        issue
    })?;
    Ok(Parsed {
        job,
        positions: Positions::default(),
        warnings: Vec::new(),
    })
}

fn parse_body(source: &Source, body: &Body, options: &Options) -> Result<Parsed, Errors> {
    let budget = Budget::new();
    let warnings = RefCell::new(Vec::new());
    let session = Session {
        source,
        budget: &budget,
        warnings: &warnings,
        options,
    };
    let mut issues = Issues::default();
    let job_block = find_job_block(source, body, &mut issues);
    let mut globals = Globals {
        vars: variables::read(&session, body, options, &mut issues),
        ..Globals::default()
    };
    if issues.is_empty() {
        locals::read(&session, body, &mut globals, &mut issues);
    }
    // Without its variables and locals, the job would only repeat their mistakes.
    let Some(block) = job_block.filter(|_| issues.is_empty()) else {
        return Err(issues.into());
    };
    let (job, positions) = read_job(&session, block, &globals)?;
    drop(globals);
    Ok(Parsed {
        job,
        positions,
        warnings: warnings.into_inner(),
    })
}

/// Reads a file that describes a host volume, as the API takes it. What runs on this node is not known here:
/// references stay as they are written.
///
/// # Errors
///
/// All mistakes that could be found in one go, each with its place.
pub fn parse_volume(text: &str, file_name: &str) -> Result<serde_json::Value, Errors> {
    parse_spec(text, file_name, &blocks::VOLUME_SPEC, "volume")
}

/// Reads a file that describes a namespace, as the API takes it.
///
/// # Errors
///
/// All mistakes that could be found in one go, each with its place.
pub fn parse_namespace(text: &str, file_name: &str) -> Result<serde_json::Value, Errors> {
    parse_spec(text, file_name, &blocks::NAMESPACE_SPEC, "namespace")
}

/// Reads a policy of access control: the rules of each kind, as they are written.
///
/// # Errors
///
/// All mistakes that could be found in one go, each with its place.
pub(crate) fn parse_policy(text: &str, file_name: &str) -> Result<serde_json::Value, Errors> {
    parse_spec(text, file_name, &blocks::POLICY_SPEC, "policy")
}

/// Reads a file whose whole body is one block.
fn parse_spec(
    text: &str,
    file_name: &str,
    block: &'static blocks::Block,
    what: &str,
) -> Result<serde_json::Value, Errors> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut source = Source::bounded(file_name, text)?;
    if hcl_json::is_json(text) {
        source = Source::new(file_name, &json_text::as_hcl(text));
    }
    let body = hcl_json::read_body(&source, Some(Level::Table(block)))?;
    let (budget, warnings) = (Budget::new(), RefCell::new(Vec::new()));
    let (options, globals) = (Options::default(), Globals::default());
    let session = Session {
        source: &source,
        budget: &budget,
        warnings: &warnings,
        options: &options,
    };
    let on = session.evaluator(&globals);
    let mut decoder = Decoder {
        on: &on,
        positions: Positions::default(),
        issues: Issues::default(),
    };
    let fields = decoder.block(
        block,
        &Context {
            what: format!("the {what}"),
            path: what.to_owned(),
            at: None,
            body: &body,
            scope: Scope::default(),
        },
    );
    if !decoder.issues.is_empty() {
        return Err(decoder.issues.into());
    }
    serde_json::to_value(Value::Map(fields)).map_err(|error| {
        on.fault(&None, format!("the {what} cannot be written: {error}"))
            .into()
    })
}

/// Checks what stands in a file besides the job, and finds the job.
fn find_job_block<'b>(source: &Source, body: &'b Body, issues: &mut Issues) -> Option<&'b Block> {
    const KNOWN: [&str; 4] = ["job", "variable", "variables", "locals"];
    let mut job = None;
    for structure in body {
        let (name, at) = match structure {
            Structure::Attribute(attribute) => (attribute.key.as_str(), attribute.key.span()),
            Structure::Block(block) => (block.ident.as_str(), block.ident.span()),
        };
        match structure {
            Structure::Block(block) if name == "job" => {
                if job.is_some() {
                    let issue = source.issue(&at, "a file holds one job only");
                    issues.push(issue.help("Put the other job into a file of its own."));
                }
                job = job.or(Some(block));
            }
            Structure::Block(_) if KNOWN.contains(&name) => {}
            _ => {
                let message = format!("\"{name}\" cannot stand at the top of a job file");
                let help = did_you_mean(name, KNOWN);
                let list = || "Known names are job, variable, variables and locals.".to_owned();
                issues.push(source.issue(&at, message).help(help.unwrap_or_else(list)));
            }
        }
    }
    if job.is_none() && issues.is_empty() {
        let issue = source.issue(&None, "the file holds no job");
        issues.push(issue.help("Write job \"name\" { … }."));
    }
    job
}

fn read_job(
    session: &Session<'_>,
    block: &Block,
    globals: &Globals,
) -> Result<(Job, Positions), Errors> {
    let on = session.evaluator(globals);
    let at = block.ident.span();
    let names = labels(block);
    let [id] = names.as_slice() else {
        let issue = on.fault(&at, "a job block needs exactly one label, its id");
        return Err(issue.help("Write job \"name\" { … }.").into());
    };
    let mut decoder = Decoder {
        on: &on,
        positions: Positions::default(),
        issues: Issues::default(),
    };
    if let Some(range) = &at {
        decoder
            .positions
            .insert(positions::JOB.to_owned(), on.source.position(range.start));
    }
    let mut fields = decoder.block(
        &blocks::JOB,
        &Context {
            what: format!("job \"{id}\""),
            path: positions::JOB.to_owned(),
            at: at.clone(),
            body: &block.body,
            scope: Scope::default(),
        },
    );
    if !decoder.issues.is_empty() {
        return Err(decoder.issues.into());
    }
    let id = fields
        .entry("ID".to_owned())
        .or_insert_with(|| Value::from(id.as_str()))
        .clone();
    fields.entry("Name".to_owned()).or_insert(id);
    let json = serde_json::to_value(Value::Map(fields))
        .map_err(|error| on.fault(&at, format!("the job cannot be written: {error}")))?;
    let job = api::job_of(json).map_err(|issue| on.fault(&at, issue.message))?;
    Ok((job, decoder.positions))
}
