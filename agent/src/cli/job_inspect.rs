//! `drover job inspect`: a job as the agent keeps it, as JSON.

use serde_json::{Value, json};

use super::args::{InspectArgs, Shape};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup::{self, job_path};
use crate::http::dto::{JobStub, SubmissionDto, Versions};

/// Runs the command.
///
/// # Errors
/// The job cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: InspectArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    if args.hcl {
        return text(cx, &job, args.version, args.with_vars).await;
    }
    let Some(wanted) = args.version else {
        let whole: Value = cx.client.get(&job_path(&job, ""), &namespace).await?;
        return show(cx, &args.shape, whole);
    };
    let versions: Versions = cx
        .client
        .get(&job_path(&job, "/versions"), &namespace)
        .await?;
    let number = |job: &Value| job.get("Version").and_then(Value::as_u64).unwrap_or(0);
    match versions.versions.iter().find(|job| number(job) == wanted) {
        Some(version) => show(cx, &args.shape, version.clone()),
        None => Err(Failure::new(format!(
            "No version {wanted} of job \"{}\" is kept",
            job.id
        ))),
    }
}

/// Who asks for a shape gets the job itself, as Nomad gives it; else it is what can be submitted.
fn show(cx: &mut Context, shape: &Shape, job: Value) -> Outcome {
    match shape.is_asked() {
        true => cx.show(shape, &job),
        false => cx.print_json(&json!({ "Job": job })),
    }
}

/// The job file that a version was made from, and the variables that it was given if they are asked for.
async fn text(cx: &mut Context, job: &JobStub, version: Option<u64>, with_vars: bool) -> Outcome {
    let namespace = [("namespace", job.namespace.as_str())];
    let version = match version {
        Some(version) => version,
        None => {
            let whole: Value = cx.client.get(&job_path(job, ""), &namespace).await?;
            super::job_history::number(&whole)
        }
    };
    let number = version.to_string();
    let query = [namespace[0], ("version", number.as_str())];
    let path = job_path(job, "/submission");
    let sent = cx.client.get::<SubmissionDto>(&path, &query).await;
    let submission = sent.map_err(|failure| match failure.status {
        Some(404) => Failure::new(format!(
            "The job file of version {version} of job \"{}\" is not kept: it came without one, as \
             jobs do that are submitted as JSON",
            job.id
        )),
        _ => failure,
    })?;
    if with_vars && let Some(variables) = variables(&submission) {
        cx.screen.print_line(&variables)?;
    }
    let mut text = submission.source.as_str();
    text = text.strip_suffix('\n').unwrap_or(text);
    cx.screen.print_line(text)?;
    Ok(0)
}

/// The variables of a submission: those of the command line first, then what files said. None if there were none.
fn variables(submission: &SubmissionDto) -> Option<String> {
    let flags = submission.variable_flags.iter().flatten();
    let flags: Vec<String> = flags
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let parts = [
        ("Variables of the command line", flags.join("\n")),
        (
            "Variables of files",
            submission.variables.trim_end().to_owned(),
        ),
    ];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
    let shown: Vec<String> = parts
        .map(|(title, text)| format!("{title}:\n{text}\n"))
        .collect();
    (!shown.is_empty()).then(|| format!("{}\nJob file:", shown.join("\n")))
}
