//! `drover job init` and `drover var init`: files to begin with.

use std::path::Path;

use super::args::{JobInitArgs, VarInitArgs};
use super::context::{Context, Outcome};
use super::failure::Failure;
use super::files;

const JOB: &str = include_str!("init/job.nomad.hcl");
const SHORT_JOB: &str = include_str!("init/short.nomad.hcl");
const VARIABLE: &str = include_str!("init/variable.hcl");
const VARIABLE_JSON: &str = include_str!("init/variable.json");

/// Runs `job init`.
///
/// # Errors
/// There is such a file already, or it cannot be written.
pub(super) fn job(cx: &mut Context, args: &JobInitArgs) -> Outcome {
    let name = args
        .file
        .as_deref()
        .unwrap_or(Path::new("example.nomad.hcl"));
    let text = if args.short { SHORT_JOB } else { JOB };
    files::create(name, text)?;
    let words = format!("Example job file written to {}", name.display());
    cx.screen.print_line(&words)?;
    Ok(0)
}

/// Runs `var init`.
///
/// # Errors
/// There is such a file already, it cannot be written, or the format is unknown.
pub(super) fn variable(cx: &mut Context, args: &VarInitArgs) -> Outcome {
    let (name, text) = match args.out.as_str() {
        "hcl" => ("spec.nsv.hcl", VARIABLE),
        "json" => ("spec.nsv.json", VARIABLE_JSON),
        other => {
            let words = format!("-out={other} is not supported; supported are hcl and json");
            return Err(Failure::new(words));
        }
    };
    let name = args.file.as_deref().unwrap_or(Path::new(name));
    files::create(name, text)?;
    let words = format!(
        "Example variable specification written to {}",
        name.display()
    );
    cx.screen.print_line(&words)?;
    Ok(0)
}
