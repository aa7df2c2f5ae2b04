//! Allocations: list, show, stop.

use axum::extract::{Path, State};
use drover_core::agent::requests::StopAlloc;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::AllocId;
use serde_json::json;

use super::Api;
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{Alloc, AllocStub};
use super::errors::ApiError;
use super::jobs::page;
use super::params::{Params, check_prefix, has_prefix, uuid};

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    check_prefix("alloc", params.prefix())?;
    let asked = params.clone();
    let mut seen: Indexed<Vec<(String, AllocStub)>> = blocking_query(&api, &params, move |view| {
        let wanted = view.shown_allocs().filter(|alloc| {
            let record = alloc.record();
            asked.includes(&record.job.namespace)
                && has_prefix(&record.id.to_string(), asked.prefix())
        });
        let mut stubs: Vec<_> = wanted.map(|alloc| AllocStub::of(view, alloc)).collect();
        stubs.sort_by(|a, b| (a.create_index, &a.id).cmp(&(b.create_index, &b.id)));
        let token = |stub: &AllocStub| format!("{}.{}", stub.create_index, stub.id);
        Indexed::whole(
            view,
            stubs.into_iter().map(|stub| (token(&stub), stub)).collect(),
        )
    })
    .await?;
    for (_, stub) in &mut seen.value {
        stub.is_told(&api.settings.transfers);
    }
    page(&params, seen)
}

pub(super) async fn one(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let id: AllocId = uuid("alloc", &id)?;
    let seen = blocking_query(&api, &params, move |view| {
        Indexed::whole(
            view,
            view.shown_alloc(id).map(|alloc| Alloc::of(view, alloc)),
        )
    })
    .await?;
    match seen.value {
        Some(mut alloc) => {
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
