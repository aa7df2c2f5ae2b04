//! `drover job run`: submits a job and follows what becomes of it.

use hyper::Method;
use serde_json::json;

use super::args::RunArgs;
use super::context::{Context, Outcome};
use super::failure::Failure;
use super::{jobfile, monitor};
use crate::http::dto::Registered;

/// Runs the command.
///
/// # Errors
/// The file, the agent or the job is at fault.
pub(super) async fn run(cx: &mut Context, args: RunArgs) -> Outcome {
    let (admitted, submission) =
        jobfile::admit_with_text(&mut cx.screen, &args.file, &args.variables, args.json)?;
    let job = admitted.job;
    let waits = job.periodic.is_some() || job.parameterized_job.is_some();
    let job = serde_json::to_value(&job);
    let job = job.map_err(|error| Failure::new(format!("cannot encode the job: {error}")))?;
    if args.output {
        return cx.print_json(&json!({ "Job": job }));
    }
    let mut body = json!({
        "Job": job,
        "Submission": submission,
        "PreserveCounts": args.preserve_counts,
    });
    if let (Some(index), Some(fields)) = (args.check_index, body.as_object_mut()) {
        fields.insert("EnforceIndex".to_owned(), json!(true));
        fields.insert("JobModifyIndex".to_owned(), json!(index));
    }
    let sent = cx
        .client
        .change::<Registered>(Method::PUT, "/v1/jobs", &[], Some(&body))
        .await;
    let registered = sent.map_err(|failure| match failure.status {
        Some(_) => failure.within("Error submitting job"),
        None => failure,
    })?;
    if !registered.warnings.is_empty() {
        cx.screen
            .print_line(&format!("Job Warnings:\n{}\n", registered.warnings))?;
    }
    if args.detach || waits || registered.eval_id.is_empty() {
        cx.screen.print_line("Job registration successful")?;
        if !registered.eval_id.is_empty() {
            cx.screen
                .print_line(&format!("Evaluation ID: {}", registered.eval_id))?;
        }
        return Ok(0);
    }
    monitor::eval(cx, &registered.eval_id, args.verbose).await
}
