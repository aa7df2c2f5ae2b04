//! Allocations: list, show, stop.

use std::sync::Arc;

use axum::extract::{Path, State};
use drover_core::agent::requests::StopAlloc;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::AllocId;
use serde::Serialize;
use serde_json::json;

use super::Api;
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{Alloc, AllocStub, AllocatedResources};
use super::errors::ApiError;
use super::params::{Params, check_prefix, uuid};
use super::records::{self, AllocRecords, NodeNames};

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    check_prefix("alloc", params.prefix())?;
    let asked = params.clone();
    let seen = records::allocs(&api, &params, move |record| {
        asked.includes(&record.job.namespace) && asked.is_prefix_of(record.id)
    })
    .await?;
    let transfers = api.settings.transfers.clone();
    let with_resources = params.flag("resources");
    let without_tasks = params.get("task_states").is_some() && !params.flag("task_states");
    answer::list(params, seen, token, move |alloc| {
        let mut stub = AllocStub::of(alloc);
        stub.is_told(&transfers);
        if without_tasks {
            stub.task_states.clear();
        }
        match with_resources {
            false => Listed::Plain(stub),
            true => Listed::WithResources {
                allocated_resources: AllocatedResources::of_alloc(alloc),
                stub,
            },
        }
    })
    .await
}

/// An allocation in a list.
#[derive(Serialize)]
#[serde(untagged)]
enum Listed {
    Plain(AllocStub),
    #[serde(rename_all = "PascalCase")]
    WithResources {
        #[serde(flatten)]
        stub: AllocStub,
        allocated_resources: AllocatedResources,
    },
}

/// All of these allocations, as lists show them.
pub(super) fn stubs(api: &Api, params: &Params, seen: &Indexed<Vec<AllocRecords>>) -> Answer {
    let stubs = seen.value.iter().map(|alloc| {
        let mut stub = AllocStub::of(alloc);
        stub.is_told(&api.settings.transfers);
        stub
    });
    answer::read(params, seen.index, &stubs.collect::<Vec<_>>())
}

/// Where a page of allocations may begin.
fn token(alloc: &AllocRecords) -> String {
    let record = alloc.alloc();
    format!("{}.{}", record.create_index, record.id)
}

pub(super) async fn one(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let id: AllocId = uuid("alloc", &id)?;
    let seen = blocking_query(&api, &params, move |view| {
        let node = Arc::new(NodeNames::of(view.node()));
        let alloc = view.shown_alloc(id);
        Indexed::whole(
            view,
            alloc.map(|alloc| AllocRecords::with_job(view, &node, alloc)),
        )
    })
    .await?;
    match seen.value {
        Some(alloc) => {
            let mut alloc = Alloc::of(&alloc);
            alloc.stub.is_told(&api.settings.transfers);
            answer::read(&params, seen.index, &alloc)
        }
        None => Err(ApiError::not_found("alloc not found").at(seen.index)),
    }
}

pub(super) async fn stop(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let alloc: AllocId = uuid("alloc", &id)?;
    match api.agent_handle.request(StopAlloc { alloc }).await? {
        Reply::Stopping { eval, index } => {
            let eval = eval.map(|id| id.to_string()).unwrap_or_default();
            answer::written(&params, index, &json!({ "EvalID": eval, "Index": index }))
        }
        Reply::Refused(Refusal::NotFound(_)) => Err(ApiError::not_found("allocation not found")),
        other => Err(ApiError::unexpected(other)),
    }
}
