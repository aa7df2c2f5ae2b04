//! Requests about the tasks of an allocation: restart, signal. And about what is left of all that ended here.

use axum::extract::{Path, Request, State};
use drover_core::agent::requests::{self, CollectAlloc, Restart, RestartScope, Signal};
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{AllocId, TaskName};
use futures::{StreamExt, stream};
use serde::Deserialize;
use serde_json::json;

use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::{Params, uuid};
use super::{Api, body, stats};
use crate::agent_handle::AgentHandle;

/// How many allocations are removed at a time.
const AT_ONCE: usize = 32;

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
    if !matches!(action.as_str(), "restart" | "signal") {
        return Err(stats::unknown_action(&id, &action));
    }
    let alloc: AllocId = uuid("alloc", &id)?;
    let input: requests::Request = match action.as_str() {
        "restart" => {
            let asked: RestartRequest = body::decode_or_default(request).await?;
            restart(alloc, &asked.task_name, asked.all_tasks)?.into()
        }
        "signal" => {
            let asked = signal_request(request).await?;
            signal(alloc, &asked.task, asked.signal).into()
        }
        _ => return Err(ApiError::not_found("resource not found")),
    };
    carry_out(&api.agent_handle, input).await?;
    answer::json(&params, &json!({ "Index": 0 }))
}

/// Removes what lies here of one allocation that ended.
pub(super) async fn collect_alloc(State(api): State<Api>, Path(id): Path<String>) -> Answer {
    let alloc: AllocId = uuid("alloc", &id)?;
    carry_out(&api.agent_handle, CollectAlloc { alloc }).await?;
    answer::empty()
}

pub(super) async fn collect(State(api): State<Api>) -> Answer {
    collect_ended(&api.agent_handle).await?;
    answer::empty()
}

/// Removes what lies here of allocations that ended. That they were stays known, as jobs and evaluations do: those
/// are for the whole system to collect. What servers of a cluster placed stays until they know that it ended.
///
/// # Errors
/// The core is gone.
pub(crate) async fn collect_ended(agent_handle: &AgentHandle) -> Result<(), ApiError> {
    let ended = agent_handle.ask(|view| {
        let records = view.allocs().map(|alloc| alloc.record());
        let ended = records.filter(|record| record.finished);
        ended.map(|record| record.id).collect::<Vec<_>>()
    });
    let remove = |alloc| agent_handle.request(CollectAlloc { alloc });
    let mut replies = (stream::iter(ended.await?).map(remove)).buffer_unordered(AT_ONCE);
    while let Some(reply) = replies.next().await {
        match reply? {
            // What is needed still, or gone by now, is none of what was asked for.
            Reply::Done { .. } | Reply::Refused(Refusal::Conflict(_) | Refusal::NotFound(_)) => {}
            other => return Err(ApiError::unexpected(other)),
        }
    }
    Ok(())
}

/// Has the core do what is asked, which has no answer but that it is done.
///
/// # Errors
/// It is not done.
pub(crate) async fn carry_out(
    agent_handle: &AgentHandle,
    asked: impl Into<requests::Request>,
) -> Result<(), ApiError> {
    match agent_handle.request(asked).await? {
        Reply::Done { .. } => Ok(()),
        other => Err(ApiError::unexpected(other)),
    }
}

/// The restart of one task, of those that run where none is named, or of all.
///
/// # Errors
/// One of all is asked for, and one of one.
pub(crate) fn restart(alloc: AllocId, task: &str, all: bool) -> Result<Restart, ApiError> {
    let tasks = match (task, all) {
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

/// A signal for one task, or for all that run where none is named.
pub(crate) fn signal(alloc: AllocId, task: &str, signal: String) -> Signal {
    let task = Some(task).filter(|task| !task.is_empty());
    Signal {
        alloc,
        task: task.map(TaskName::from),
        signal,
    }
}

async fn signal_request(request: Request) -> Result<SignalRequest, ApiError> {
    let asked: Result<SignalRequest, ApiError> = body::decode(request).await;
    asked.map_err(|mut error| {
        error.message = format!("Failed to decode body: {}", error.message);
        error
    })
}
