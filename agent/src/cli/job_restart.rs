//! `drover job restart`: restarts the tasks of a job's allocations, one after the other.

use hyper::Method;
use serde_json::{Value, json};

use super::args::JobRestartArgs;
use super::context::{Context, Outcome};
use super::lookup::{self, job_path};
use super::table::short;
use crate::http::dto::AllocStub;

/// Runs the command.
///
/// # Errors
/// The job cannot be found, or a restart is refused.
pub(super) async fn run(cx: &mut Context, args: JobRestartArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(&job, "/allocations");
    let allocs: Vec<AllocStub> = cx.client.get(&path, &namespace).await?;
    let wanted = |alloc: &&AllocStub| {
        let group = args.group.is_empty() || args.group.contains(&alloc.task_group);
        group && alloc.client_status == "running" && alloc.desired_status == "run"
    };
    let allocs: Vec<&AllocStub> = allocs.iter().filter(wanted).collect();
    let (count, plural) = (allocs.len(), if allocs.len() == 1 { "" } else { "s" });
    if count == 0 {
        cx.screen.print_line("No allocations to restart")?;
        return Ok(0);
    }
    cx.screen.title(&format!(
        "==> {}: Restarting {count} allocation{plural}",
        cx.stamp()
    ))?;
    for alloc in allocs {
        let (id, group) = (short(&alloc.id, args.verbose), &alloc.task_group);
        let what = if args.all_tasks { "all" } else { "running" };
        cx.screen.print_line(&format!(
            "    {}: Restarting {what} tasks in allocation \"{id}\" for group \"{group}\"",
            cx.stamp()
        ))?;
        let body = json!({
            "TaskName": args.task.clone().unwrap_or_default(),
            "AllTasks": args.all_tasks,
        });
        let path = format!("/v1/client/allocation/{}/restart", alloc.id);
        cx.client
            .change::<Value>(Method::PUT, &path, &[], Some(&body))
            .await?;
    }
    cx.screen
        .title(&format!("==> {}: Job restart finished", cx.stamp()))?;
    cx.screen.print_line("\nJob restarted successfully!")?;
    Ok(0)
}
