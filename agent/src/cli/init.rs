//! `drover job init` and `drover var init`: files to begin with.

use std::path::Path;

use drover_io_real::http_client::encoded;

use super::args::{JobInitArgs, VarInitArgs};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::files;
use crate::http::dto::{VariableDto, VariableStub};

/// Below which path variables have texts for job files to begin with, and in which item.
const TEMPLATES: &str = "nomad/job-templates";
const ITEM: &str = "template";

const JOB: &str = include_str!("init/job.nomad.hcl");
const SHORT_JOB: &str = include_str!("init/short.nomad.hcl");
const VARIABLE: &str = include_str!("init/variable.hcl");
const VARIABLE_JSON: &str = include_str!("init/variable.json");

/// Runs `job init`.
///
/// # Errors
/// There is such a file already, or it cannot be written; the agent has no such template, or does not answer.
pub(super) async fn job(cx: &mut Context, args: &JobInitArgs) -> Outcome {
    if args.list_templates {
        return list_templates(cx).await;
    }
    let name = args
        .file
        .as_deref()
        .unwrap_or(Path::new("example.nomad.hcl"));
    let text = match &args.template {
        Some(template) => template_text(cx, template).await?,
        None if args.short => SHORT_JOB.to_owned(),
        None => JOB.to_owned(),
    };
    files::create(name, &text)?;
    let words = format!("Example job file written to {}", name.display());
    cx.screen.print_line(&words)?;
    Ok(0)
}

/// The text that a variable has for job files to begin with.
async fn template_text(cx: &Context, name: &str) -> Result<String, Failure> {
    let path = format!("/v1/var/{TEMPLATES}/{}", encoded(name));
    let answer: Result<VariableDto, Failure> = cx.client.get(&path, &[]).await;
    let variable = answer.map_err(|failure| match failure.status {
        Some(404) => Failure::new(format!(
            "there is no variable {TEMPLATES}/{name}; -list-templates shows which there are"
        )),
        _ => failure,
    })?;
    let text = variable.items.unwrap_or_default().remove(ITEM);
    text.ok_or_else(|| {
        Failure::new(format!(
            "the variable {TEMPLATES}/{name} has no item \"{ITEM}\""
        ))
    })
}

async fn list_templates(cx: &mut Context) -> Outcome {
    let prefix = format!("{TEMPLATES}/");
    let all: Vec<VariableStub> = cx.client.get("/v1/vars", &[("prefix", &prefix)]).await?;
    let names = all.iter().filter_map(|one| one.path.strip_prefix(&prefix));
    let names: Vec<&str> = names.collect();
    cx.screen.print_line(&match names.as_slice() {
        [] => format!("No templates found: there are no variables below {TEMPLATES}"),
        names => names.join("\n"),
    })?;
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
    if !args.quiet {
        let words = format!(
            "Example variable specification written to {}",
            name.display()
        );
        cx.screen.print_line(&words)?;
    }
    Ok(0)
}
