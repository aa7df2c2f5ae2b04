//! `drover job periodic force`: launches a periodic job now and follows its launch.

use hyper::Method;
use serde_json::Value;

use super::args::PeriodicForceArgs;
use super::context::{Context, Outcome};
use super::lookup::{self, job_path};
use super::monitor;
use crate::http::dto::Forced;

/// Runs the command.
///
/// # Errors
/// The job cannot be found or is not periodic, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: PeriodicForceArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let query = [("namespace", job.namespace.as_str())];
    let path = job_path(&job, "/periodic/force");
    let sent = cx
        .client
        .change::<Forced>(Method::PUT, &path, &query, None::<&Value>);
    let forced = sent.await.map_err(|failure| {
        failure.answered_within(&format!("Error forcing periodic job \"{}\"", job.id))
    })?;
    if args.detach || forced.eval_id.is_empty() {
        cx.screen.print_line("Force periodic successful")?;
        cx.screen
            .print_line(&format!("Evaluation ID: {}", forced.eval_id))?;
        return Ok(0);
    }
    monitor::eval(cx, &forced.eval_id, args.verbose).await
}
