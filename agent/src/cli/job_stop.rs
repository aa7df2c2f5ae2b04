//! `drover job stop`: stops jobs and follows their evaluations.

use hyper::Method;

use super::args::StopArgs;
use super::context::{Context, Outcome};
use super::lookup::{self, job_path};
use super::{confirm, monitor};
use crate::http::dto::Stopped;

/// Runs the command. The exit code is that of the first job that went wrong.
///
/// # Errors
/// A job cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: StopArgs) -> Outcome {
    let mut code = 0;
    for id in &args.jobs {
        let stopped = stop(cx, &args, id).await?;
        code = if code == 0 { stopped } else { code };
    }
    Ok(code)
}

async fn stop(cx: &mut Context, args: &StopArgs, id: &str) -> Outcome {
    let job = lookup::job(cx, id).await?;
    // A part of a name may stand for another job than the user thinks.
    let question = format!("Are you sure you want to stop job \"{}\"? [y/N]", job.id);
    if job.id != *id && !args.yes && !confirm::ask(cx, &question).await? {
        cx.screen.print_line("Cancelling job stop")?;
        return Ok(0);
    }
    let purge = if args.purge { "true" } else { "false" };
    let mut query = vec![("purge", purge), ("namespace", job.namespace.as_str())];
    query.extend((args.no_shutdown_delay).then_some(("no_shutdown_delay", "true")));
    let path = job_path(&job, "");
    let stopped: Stopped = cx
        .client
        .change(Method::DELETE, &path, &query, None)
        .await?;
    if stopped.eval_id.is_empty() {
        return Ok(0);
    }
    if args.detach {
        cx.screen.print_line(&stopped.eval_id)?;
        return Ok(0);
    }
    // A purged job's evaluation may be gone with it before it can be read.
    match monitor::eval_only(cx, &stopped.eval_id, args.verbose).await {
        Err(failure) if args.purge && failure.status == Some(404) => Ok(0),
        other => other,
    }
}
