//! `drover job inspect`: a job as the agent keeps it, as JSON.

use serde_json::{Value, json};

use super::args::{InspectArgs, Shape};
use super::context::{Context, Outcome};
use super::failure::Failure;
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
        return text(cx, &job, args.version).await;
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

/// The job file that a version was made from.
async fn text(cx: &mut Context, job: &JobStub, version: Option<u64>) -> Outcome {
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
    let mut text = submission.source.as_str();
    text = text.strip_suffix('\n').unwrap_or(text);
    cx.screen.print_line(text)?;
    Ok(0)
}
