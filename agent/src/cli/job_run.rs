//! `drover job run`: submits a job and follows what becomes of it.

use drover_core::cron::schedule::{Next, Schedule};
use drover_core::model::job::Job;
use drover_core::store::periodic::{moment_of, second_of};
use drover_io_real::zones;
use hyper::Method;
use serde_json::json;

use super::args::RunArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::{jobfile, monitor};
use crate::http::dto::Registered;
use crate::times;

/// Runs the command.
///
/// # Errors
/// The file, the agent or the job is at fault.
pub(super) async fn run(cx: &mut Context, args: RunArgs) -> Outcome {
    let (admitted, submission) =
        jobfile::admit_with_text(&mut cx.screen, &args.file, &args.variables, args.json)?;
    let job = admitted.job;
    let waits = job.is_template();
    let next = next_launch(&job);
    let job = serde_json::to_value(&job);
    let job = job.map_err(|error| Failure::new(format!("cannot encode the job: {error}")))?;
    if args.output {
        return cx.print_json(&json!({ "Job": job }));
    }
    let mut body = json!({
        "Job": job,
        "Submission": submission,
        "PreserveCounts": args.preserve_counts,
        "PreserveResources": args.preserve_resources,
    });
    if let (Some(index), Some(fields)) = (args.check_index, body.as_object_mut()) {
        fields.insert("EnforceIndex".to_owned(), json!(true));
        fields.insert("JobModifyIndex".to_owned(), json!(index));
    }
    let sent = cx
        .client
        .change::<Registered>(Method::PUT, "/v1/jobs", &[], Some(&body))
        .await;
    let registered = sent.map_err(|failure| failure.answered_within("Error submitting job"))?;
    if !registered.warnings.is_empty() {
        cx.screen
            .print_line(&format!("Job Warnings:\n{}\n", registered.warnings))?;
    }
    if args.detach || waits || registered.eval_id.is_empty() {
        cx.screen.print_line("Job registration successful")?;
        if let Some(next) = next {
            cx.screen.print_line(&next)?;
        }
        if !registered.eval_id.is_empty() {
            cx.screen
                .print_line(&format!("Evaluation ID: {}", registered.eval_id))?;
        }
        return Ok(0);
    }
    monitor::eval(cx, &registered.eval_id, args.verbose).await
}

/// When a periodic job is launched first.
fn next_launch(job: &Job) -> Option<String> {
    let periodic = job.schedule()?;
    let now = times::now();
    let second = second_of(now);
    let zone = zones::around(&periodic.time_zone, second).ok()?;
    let Next::At(at) = Schedule::of(periodic).ok()?.next(&zone, second) else {
        return None;
    };
    let at = moment_of(at);
    let (left, at) = (times::rough(at - now), times::to_seconds(at));
    Some(format!(
        "Approximate next launch time: {at} ({left} from now)"
    ))
}
