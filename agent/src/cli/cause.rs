//! Why a roll-out failed: of its allocations that are not healthy the last events, the last lines of standard
//! error, the checks that do not pass, and what to ask next. Where it went back in place, its allocations are those of
//! another version by now; why they were unhealthy stands in their events.

use drover_core::model::event::EventType;
use hyper::Method;

use super::alloc_checks;
use super::alloc_status::event_table;
use super::client::whole;
use super::context::Context;
use super::exit_code::Failure;
use super::lookup::job_part;
use super::screen::clean;
use super::table::{short, table};
use crate::http::dto::{AllocStub, DeploymentDto, TaskStateDto};

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
    let mut unhealthy = allocs.iter().filter(|alloc| is_unhealthy(alloc)).peekable();
    if unhealthy.peek().is_none() {
        return show_moved_on(cx, deployment, verbose).await;
    }
    for alloc in unhealthy.take(ALLOCS) {
        for (task, state) in failing_tasks(alloc) {
            show_task(cx, alloc, task, state, verbose).await?;
        }
        show_checks(cx, alloc, |status| status != "success", verbose).await?;
    }
    Ok(())
}

/// The same of a roll-out that has no allocations any more: they took another version in place.
async fn show_moved_on(cx: &mut Context, id: &str, verbose: bool) -> Result<(), Failure> {
    let deployment: DeploymentDto = cx.client.get(&format!("/v1/deployment/{id}"), &[]).await?;
    let job = clean(&deployment.job_id);
    cx.screen.title(&format!(
        "\nVersion {} of job \"{job}\": {}",
        deployment.job_version,
        clean(&deployment.status_description)
    ))?;
    let path = job_part(&deployment.job_id, "/allocations");
    let query = [("namespace", deployment.namespace.as_str())];
    let allocs: Vec<AllocStub> = cx.client.get(&path, &query).await?;
    let unhealthy = |alloc| Some((alloc, why_unhealthy(alloc, &deployment)?));
    for (alloc, why) in allocs.iter().filter_map(unhealthy).take(ALLOCS) {
        cx.screen.print_line(&format!(
            "Allocation \"{}\" ({}), which runs version {} now: {}",
            short(&alloc.id, verbose),
            clean(&alloc.name),
            alloc.job_version,
            clean(&why)
        ))?;
        for (task, state) in failing_tasks(alloc) {
            show_task(cx, alloc, task, state, verbose).await?;
        }
        // Those of the version that came back begin as pending, which says nothing of the one that failed.
        let fails = |status: &str| matches!(status, "failure" | "warning");
        show_checks(cx, alloc, fails, verbose).await?;
    }
    cx.screen.print_line(&format!(
        "\nSee also: drover explain {job}, drover job history -p {job}"
    ))
}

/// Why an allocation was found to be unhealthy during a roll-out, if it was: which check failed, and its last output.
fn why_unhealthy(alloc: &AllocStub, rollout: &DeploymentDto) -> Option<String> {
    let events = alloc.task_states.values().flat_map(|state| &state.events);
    let events = events.map(|event| event.fields());
    let during = rollout.create_time..=rollout.modify_time;
    let unhealthy_events = events.filter(|event| {
        event.kind == EventType::AllocUnhealthy.as_str() && during.contains(&event.time)
    });
    let last = unhealthy_events.max_by_key(|event| event.time)?;
    Some(last.display_message.into_owned())
}

/// The tasks that failed or were started again; where there are none, all: they wait, or their checks do not pass.
fn failing_tasks(alloc: &AllocStub) -> Vec<(&String, &TaskStateDto)> {
    let tasks = || alloc.task_states.iter();
    let failing = tasks().filter(|(_, state)| state.failed || state.restarts > 0);
    let failing: Vec<_> = failing.collect();
    match failing.is_empty() {
        true => tasks().collect(),
        false => failing,
    }
}

/// The checks of an allocation that do not pass, by their status. Those of one that is gone are not known any more.
async fn show_checks(
    cx: &mut Context,
    alloc: &AllocStub,
    fails: impl Fn(&str) -> bool,
    verbose: bool,
) -> Result<(), Failure> {
    let checks = alloc_checks::of_alloc(cx, &alloc.id).await;
    let checks = checks.unwrap_or_default();
    let mut failing = checks
        .iter()
        .filter(|check| fails(&check.status))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::{StatusCode, Uri};
    use axum::{Json, Router};
    use drover_core::model::event::TaskEvent;
    use drover_core::time::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::args::Connection;
    use crate::cli::client::Client;
    use crate::cli::screen::Screen;
    use crate::http::dto::{CheckDto, TaskEventDto};
    use crate::testing::{BEGAN, Captured};

    const ALLOC: &str = "7d42c423-0000-0000-0000-000000000000";

    fn event(kind: EventType, time: i64, message: &str) -> TaskEventDto {
        TaskEventDto::Shared(Arc::new(TaskEvent::new(kind, Timestamp(time), message)))
    }

    /// An allocation that was unhealthy in version 1, and went back to what version 2 says in place.
    fn gone_back() -> AllocStub {
        let why = "Unhealthy after 20s: Service \"front\" check \"alive\" failing: HTTP status 404, no such page";
        let state = TaskStateDto {
            state: "running".to_owned(),
            events: vec![
                event(EventType::AllocUnhealthy, 3, "of an older version"),
                event(EventType::Started, 4, "Task started by client"),
                event(EventType::AllocUnhealthy, 9, why),
            ],
            ..TaskStateDto::default()
        };
        AllocStub {
            id: ALLOC.to_owned(),
            name: "web.g[0]".to_owned(),
            job_version: 2,
            task_states: [("main".to_owned(), state)].into(),
            ..AllocStub::default()
        }
    }

    /// What an agent answers whose job `web` went back in place.
    fn answer(path: &str) -> Option<Value> {
        let checks = [("alive", "pending"), ("deep", "failure")].map(|(name, status)| {
            let check = CheckDto {
                service: "front".to_owned(),
                check: name.to_owned(),
                status: status.to_owned(),
                output: "too deep\nto see".to_owned(),
                ..CheckDto::default()
            };
            (name, json!(check))
        });
        let deployment = DeploymentDto {
            job_id: "web".to_owned(),
            namespace: "default".to_owned(),
            job_version: 1,
            status: "failed".to_owned(),
            status_description:
                "Failed due to unhealthy allocations - rolling back to job version 0".to_owned(),
            create_time: 5,
            modify_time: 9,
            ..DeploymentDto::default()
        };
        let checks_path = format!("/v1/client/allocation/{ALLOC}/checks");
        match path {
            "/v1/deployment/allocations/d" => Some(json!([])),
            "/v1/deployment/d" => Some(json!(deployment)),
            "/v1/job/web/allocations" => Some(json!([gone_back()])),
            path if path == checks_path => Some(Value::Object(
                checks
                    .map(|(name, check)| (name.to_owned(), check))
                    .into_iter()
                    .collect(),
            )),
            _ => None,
        }
    }

    async fn shown() -> String {
        let handler = |uri: Uri| async move {
            match answer(uri.path()) {
                Some(body) => (StatusCode::OK, Json(body)),
                None => (StatusCode::NOT_FOUND, Json(Value::Null)),
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connection = Connection {
            address: Some(format!("http://{}", listener.local_addr().unwrap())),
            ..Connection::default()
        };
        let router = Router::new().fallback(handler);
        tokio::spawn(async move { axum::serve(listener, router).await });
        let out = Captured::default();
        let mut cx = Context {
            client: Client::new(&connection, |_| None).unwrap(),
            screen: Screen::plain(Box::new(out.clone()), Box::new(Captured::default())),
            clock: || BEGAN,
        };
        show(&mut cx, "d", false).await.unwrap();
        out.text()
    }

    /// Nothing at all was said where the allocations had gone back to the old version in place.
    #[tokio::test]
    async fn cause_is_shown_of_roll_out_that_went_back_in_place() {
        let out = shown().await;
        let wanted = [
            "\nVersion 1 of job \"web\": Failed due to unhealthy allocations - rolling back to job version 0\n",
            "Allocation \"7d42c423\" (web.g[0]), which runs version 2 now: Unhealthy after 20s: Service \"front\" \
             check \"alive\" failing: HTTP status 404, no such page\n",
            "Task \"main\" of allocation \"7d42c423\" (web.g[0]) is running\n",
            "Started          Task started by client",
            "front    deep   failure  too deep",
            "See also: drover alloc checks 7d42c423\n",
            "See also: drover explain web, drover job history -p web\n",
        ];
        for words in wanted {
            assert!(out.contains(words), "{words} in {out}");
        }
        assert!(!out.contains("pending"), "the old version's check: {out}");
    }
}
