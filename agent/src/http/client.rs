//! Requests about the tasks of an allocation: restart, signal.

use axum::extract::{Path, Request, State};
use drover_core::agent::requests::{self, CollectAlloc, Restart, RestartScope, Signal};
use drover_core::effect::Reply;
use drover_core::ids::{AllocId, TaskName};
use serde::Deserialize;
use serde_json::json;

use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::{Params, uuid};
use super::{Api, body, stats};

/// The body of a restart.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct RestartRequest {
    task_name: String,
    all_tasks: bool,
}

/// The body of a signal.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct SignalRequest {
    signal: String,
    task: String,
}

pub(super) async fn act(
    State(api): State<Api>,
    Path((id, action)): Path<(String, String)>,
    params: Params,
    request: Request,
) -> Answer {
    if !matches!(action.as_str(), "restart" | "signal" | "gc") {
        return Err(stats::unknown_action(&id, &action));
    }
    let alloc: AllocId = uuid("alloc", &id)?;
    let input = match action.as_str() {
        "restart" => restart(alloc, body::decode_or_default(request).await?)?.into(),
        "signal" => signal(alloc, request).await?.into(),
        "gc" => requests::Request::from(CollectAlloc { alloc }),
        _ => return Err(ApiError::not_found("resource not found")),
    };
    match api.agent_handle.request(input).await? {
        Reply::Done { .. } => answer::json(&params, &json!({ "Index": 0 })),
        other => Err(ApiError::unexpected(other)),
    }
}

fn restart(alloc: AllocId, asked: RestartRequest) -> Result<Restart, ApiError> {
    let tasks = match (asked.task_name.as_str(), asked.all_tasks) {
        ("", true) => RestartScope::All,
        ("", false) => RestartScope::Running,
        (name, false) => RestartScope::Task(TaskName::from(name)),
        (_, true) => {
            let words = "a restart of one task cannot be one of all tasks";
            return Err(ApiError::bad(words));
        }
    };
    Ok(Restart { alloc, tasks })
}

async fn signal(alloc: AllocId, request: Request) -> Result<Signal, ApiError> {
    let asked: Result<SignalRequest, ApiError> = body::decode(request).await;
    let asked = asked.map_err(|mut error| {
        error.message = format!("Failed to decode body: {}", error.message);
        error
    })?;
    let task = Some(asked.task).filter(|task| !task.is_empty());
    Ok(Signal {
        alloc,
        task: task.map(TaskName::from),
        signal: asked.signal,
    })
}
