//! Why a roll-out failed: of its allocations that are not healthy the last events, the last lines of standard
//! error, the checks that do not pass, and what to ask next.

use hyper::Method;

use super::alloc_checks;
use super::alloc_status::event_table;
use super::client::whole;
use super::context::Context;
use super::failure::Failure;
use super::screen::clean;
use super::table::{short, table};
use crate::http::dto::{AllocStub, TaskStateDto};

/// Of so many allocations it is said; the others failed for the same reason more often than not.
const ALLOCS: usize = 2;
/// So many events of a task are shown.
const EVENTS: usize = 4;
/// So many lines of its standard error,
const LINES: usize = 10;
/// of so many bytes at its end.
const BYTES: &str = "4096";

/// Shows it.
///
/// # Errors
/// The agent does not answer any more.
pub(super) async fn show(cx: &mut Context, deployment: &str, verbose: bool) -> Result<(), Failure> {
    let path = format!("/v1/deployment/allocations/{deployment}");
    let allocs: Vec<AllocStub> = cx.client.get(&path, &[]).await?;
    let unhealthy = allocs.iter().filter(|alloc| is_unhealthy(alloc));
    for alloc in unhealthy.take(ALLOCS) {
        for (task, state) in to_blame(alloc) {
            show_task(cx, alloc, task, state, verbose).await?;
        }
        show_checks(cx, alloc, verbose).await?;
    }
    Ok(())
}

/// The tasks that failed or were started again; where there are none, all: they wait, or their checks do not pass.
fn to_blame(alloc: &AllocStub) -> Vec<(&String, &TaskStateDto)> {
    let tasks = || alloc.task_states.iter();
    let failing = tasks().filter(|(_, state)| state.failed || state.restarts > 0);
    let failing: Vec<_> = failing.collect();
    match failing.is_empty() {
        true => tasks().collect(),
        false => failing,
    }
}

/// The checks of an allocation that do not pass. Those of one that is gone are not known any more.
async fn show_checks(cx: &mut Context, alloc: &AllocStub, verbose: bool) -> Result<(), Failure> {
    let checks = alloc_checks::of_alloc(cx, &alloc.id).await;
    let checks = checks.unwrap_or_default();
    let mut failing = checks
        .iter()
        .filter(|check| check.status != "success")
        .peekable();
    if failing.peek().is_none() {
        return Ok(());
    }
    let id = short(&alloc.id, verbose);
    let title = format!("\nChecks of allocation \"{id}\" that do not pass");
    cx.screen.title(&title)?;
    let rows = failing.map(|check| {
        let (service, name) = (check.service.clone(), check.check.clone());
        let output = clean(check.output.lines().next().unwrap_or_default());
        [service, name, check.status.clone(), output]
    });
    let shown = table(["Service", "Check", "Status", "Output"], rows);
    cx.screen.print_line(&shown)?;
    cx.screen
        .print_line(&format!("\nSee also: drover alloc checks {id}"))
}

fn is_unhealthy(alloc: &AllocStub) -> bool {
    let health = alloc.deployment_status.as_ref();
    let health = health.and_then(|status| status.healthy);
    health != Some(true)
}

async fn show_task(
    cx: &mut Context,
    alloc: &AllocStub,
    task: &str,
    state: &TaskStateDto,
    verbose: bool,
) -> Result<(), Failure> {
    let id = short(&alloc.id, verbose);
    let restarts = match state.restarts {
        0 => String::new(),
        1 => ", restarted once".to_owned(),
        count => format!(", restarted {count} times"),
    };
    cx.screen.title(&format!(
        "\nTask \"{}\" of allocation \"{id}\" ({}) is {}{}{restarts}",
        clean(task),
        clean(&alloc.name),
        state.state,
        if state.failed { " and failed" } else { "" },
    ))?;
    let first = state.events.len().saturating_sub(EVENTS);
    let events = event_table(state.events.iter().skip(first));
    cx.screen.print_line(&events)?;
    let lines = last_lines(cx, alloc, task).await;
    if !lines.is_empty() {
        cx.screen.print_line("\nThe end of its standard error:")?;
        for line in lines {
            cx.screen.print_line(&format!("  {}", clean(&line)))?;
        }
    }
    cx.screen.print_line(&format!(
        "\nSee also: drover alloc logs {id} {0}, drover explain {id} {0}",
        clean(task)
    ))
}

/// The last lines that a task wrote to its standard error; none where they cannot be read any more.
async fn last_lines(cx: &Context, alloc: &AllocStub, task: &str) -> Vec<String> {
    let path = format!("/v1/client/fs/logs/{}", alloc.id);
    let query = [
        ("task", task),
        ("type", "stderr"),
        ("origin", "end"),
        ("offset", BYTES),
        ("plain", "true"),
    ];
    let Ok(answer) = cx.client.send(Method::GET, &path, &query, None).await else {
        return Vec::new();
    };
    let bytes = whole(answer).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(LINES);
    lines
        .iter()
        .skip(first)
        .map(|line| (*line).to_owned())
        .collect()
}
