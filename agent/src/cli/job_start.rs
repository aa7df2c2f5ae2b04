//! `drover job start`: a stopped job is submitted again as it was.

use hyper::Method;
use serde_json::{Value, json};

use super::args::OfJobArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup::{self, job_path};
use super::monitor;
use crate::http::dto::{Registered, SubmissionDto};

/// Runs the command.
///
/// # Errors
/// The job cannot be found or is not stopped, or the agent refuses.
pub(super) async fn run(cx: &mut Context, args: OfJobArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let mut whole: Value = cx.client.get(&job_path(&job, ""), &namespace).await?;
    if !job.stop {
        let id = &job.id;
        let words = format!(
            "Job \"{id}\" has not been stopped and has following status: {}",
            job.status
        );
        return Err(Failure::new(words));
    }
    let version = super::job_history::number(&whole).to_string();
    let query = [namespace[0], ("version", version.as_str())];
    let path = job_path(&job, "/submission");
    let submission = match cx.client.get::<SubmissionDto>(&path, &query).await {
        Ok(submission) => Some(submission),
        Err(failure) if failure.status == Some(404) => None,
        Err(failure) => return Err(failure),
    };
    if let Some(fields) = whole.as_object_mut() {
        fields.insert("Stop".to_owned(), json!(false));
    }
    let mut body = json!({ "Job": whole });
    if let (Some(submission), Some(fields)) = (submission, body.as_object_mut()) {
        fields.insert("Submission".to_owned(), json!(submission));
    }
    let sent = cx
        .client
        .change::<Registered>(Method::PUT, "/v1/jobs", &namespace, Some(&body));
    let registered = sent
        .await
        .map_err(|failure| failure.within("Error starting job"))?;
    if args.detach || registered.eval_id.is_empty() {
        cx.screen.print_line("Job start successful")?;
        if !registered.eval_id.is_empty() {
            cx.screen
                .print_line(&format!("Evaluation ID: {}", registered.eval_id))?;
        }
        return Ok(0);
    }
    monitor::eval(cx, &registered.eval_id, args.verbose).await
}
