//! `drover alloc stop`, `restart`, `signal` and `gc`.

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{AllocGcArgs, AllocRestartArgs, AllocSignalArgs, AllocStopArgs};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::{lookup, monitor};
use crate::http::dto::AllocStub;

/// The answer to a stop.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StopAnswer {
    #[serde(rename = "EvalID")]
    eval_id: String,
}

/// Runs `alloc stop`.
///
/// # Errors
/// The allocation cannot be found, or the agent refuses.
pub(super) async fn stop(cx: &mut Context, args: AllocStopArgs) -> Outcome {
    let alloc = lookup::alloc(&cx.client, &args.alloc).await?;
    let path = format!("/v1/allocation/{}/stop", alloc.id);
    let query = args
        .no_shutdown_delay
        .then_some(("no_shutdown_delay", "true"));
    let query = query.as_slice();
    let answer: StopAnswer = cx.client.change(Method::PUT, &path, query, None).await?;
    if args.detach || answer.eval_id.is_empty() {
        cx.screen.print_line(&answer.eval_id)?;
        return Ok(0);
    }
    monitor::eval(cx, &answer.eval_id, args.verbose).await
}

/// Runs `alloc restart`.
///
/// # Errors
/// The allocation or task cannot be found, or the agent refuses.
pub(super) async fn restart(cx: &mut Context, args: AllocRestartArgs) -> Outcome {
    let alloc = lookup::alloc(&cx.client, &args.alloc).await?;
    let task = args.task_name.or(args.task);
    check_task(&alloc, task.as_deref())?;
    if task.is_some() && args.all_tasks {
        return Err(Failure::new(
            "-all-tasks cannot be used together with a task",
        ));
    }
    let body = json!({ "TaskName": task.unwrap_or_default(), "AllTasks": args.all_tasks });
    act(cx, &alloc, "restart", &body).await
}

/// Runs `alloc signal`.
///
/// # Errors
/// The allocation or task cannot be found, or the agent refuses.
pub(super) async fn signal(cx: &mut Context, args: AllocSignalArgs) -> Outcome {
    let alloc = lookup::alloc(&cx.client, &args.alloc).await?;
    let task = args.task_name.or(args.task);
    check_task(&alloc, task.as_deref())?;
    let body = json!({ "Signal": args.signal, "Task": task.unwrap_or_default() });
    act(cx, &alloc, "signal", &body).await
}

/// Runs `alloc gc`.
///
/// # Errors
/// The allocation cannot be found, is not over, or is still needed.
pub(super) async fn gc(cx: &mut Context, args: AllocGcArgs) -> Outcome {
    let alloc = lookup::alloc(&cx.client, &args.alloc).await?;
    let path = format!("/v1/client/allocation/{}/gc", alloc.id);
    cx.client.send(Method::PUT, &path, &[], None).await?;
    Ok(0)
}

async fn act(cx: &mut Context, alloc: &AllocStub, action: &str, body: &Value) -> Outcome {
    let path = format!("/v1/client/allocation/{}/{action}", alloc.id);
    cx.client
        .change::<Value>(Method::PUT, &path, &[], Some(body))
        .await?;
    Ok(0)
}

/// Fails for a task that the allocation does not have.
///
/// # Errors
/// The names of those that it has.
pub(super) fn check_task(alloc: &AllocStub, task: Option<&str>) -> Result<(), Failure> {
    match task {
        Some(task) if !alloc.task_states.contains_key(task) => {
            let known: Vec<&str> = alloc.task_states.keys().map(String::as_str).collect();
            let known = known.join(", ");
            Err(Failure::new(format!(
                "Could not find task named: {task}, found: {known}"
            )))
        }
        Some(_) | None => Ok(()),
    }
}
