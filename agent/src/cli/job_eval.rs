//! `drover job eval`: what a job wants is compared once more with what runs.

use hyper::Method;
use serde_json::json;

use super::args::JobEvalArgs;
use super::context::{Context, Outcome};
use super::lookup::{self, job_path};
use super::monitor;
use super::table::short;
use crate::http::dto::Registered;

/// Runs the command.
///
/// # Errors
/// The job cannot be found, or the agent refuses.
pub(super) async fn run(cx: &mut Context, args: JobEvalArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let body =
        json!({ "JobID": job.id, "EvalOptions": { "ForceReschedule": args.force_reschedule } });
    let path = job_path(&job, "/evaluate");
    let sent = cx
        .client
        .change::<Registered>(Method::PUT, &path, &namespace, Some(&body));
    let evaluated = sent
        .await
        .map_err(|failure| failure.within("Error evaluating job"))?;
    if args.detach {
        let id = short(&evaluated.eval_id, args.verbose);
        cx.screen
            .print_line(&format!("Created eval ID: \"{id}\" "))?;
        return Ok(0);
    }
    monitor::eval(cx, &evaluated.eval_id, args.verbose).await
}
