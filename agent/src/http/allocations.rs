//! Allocations: list, show, stop.

use std::sync::Arc;

use axum::extract::{Path, State};
use drover_core::agent::requests::StopAlloc;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::AllocId;
use serde::Serialize;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::Api;
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{Alloc, AllocStub, AllocatedResources, tell_transfers};
use super::errors::ApiError;
use super::params::{Params, check_prefix, uuid};
use super::records::{self, AllocRecords, NodeNames};
use super::rendered::{Form, MOST_OF_LIST, Shown};

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    check_prefix("alloc", params.prefix())?;
    let asked = params.clone();
    let seen = records::allocs(&api, &params, move |record| {
        asked.includes(&record.job.namespace) && asked.is_prefix_of(record.id)
    })
    .await?;
    let with_resources = params.flag("resources");
    let without_tasks = params.get("task_states").is_some() && !params.flag("task_states");
    if !with_resources && !without_tasks && !params.pretty {
        return answer::list_as(params, seen, token, move |allocs| text(&api, allocs)).await;
    }
    answer::list(params, seen, token, move |alloc| {
        let mut stub = stub(&api, alloc);
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

/// The JSON of these as lists show them. It is kept of each, unless they are so many that they would only push others
/// out.
fn text(api: &Api, allocs: &[AllocRecords]) -> Result<Vec<u8>, ApiError> {
    if allocs.len() <= MOST_OF_LIST {
        let stubs: Vec<_> = allocs.iter().map(|alloc| kept_stub(api, alloc)).collect();
        let bytes: usize = stubs.iter().map(|stub| stub.bytes() + 1).sum();
        return answer::encode(false, &stubs, bytes + 1);
    }
    let mut text = Vec::with_capacity(allocs.len() * USUAL_BYTES);
    for alloc in allocs {
        text.push(if text.is_empty() { b'[' } else { b',' });
        let stub = stub(api, alloc);
        stub.write_json(&mut text).map_err(answer::not_encoded)?;
    }
    text.push(b']');
    Ok(text)
}

/// How long the JSON of an allocation with one task is in a list, a little more than less.
const USUAL_BYTES: usize = 3072;

/// An allocation as lists show it.
fn stub(api: &Api, alloc: &AllocRecords) -> AllocStub {
    let mut stub = AllocStub::from(alloc);
    tell_transfers(&mut stub, &api.settings.transfers);
    stub
}

/// The same, by what is kept of it. How much came of what is fetched for one is not in its records.
fn kept_stub(api: &Api, alloc: &AllocRecords) -> Shown<AllocStub> {
    if api.settings.transfers.of(alloc.alloc().id).is_some() {
        return Shown::Made(stub(api, alloc));
    }
    let made = || AllocStub::from(alloc);
    api.rendered.show(Form::Stub, alloc, made, AllocStub::json)
}

/// An allocation with its job. In the form for people nothing is kept.
fn whole(api: &Api, alloc: &AllocRecords, may_keep: bool) -> Shown<Alloc> {
    let transfers = &api.settings.transfers;
    let made = || Alloc::of(alloc);
    if transfers.of(alloc.alloc().id).is_some() {
        let mut whole = made();
        tell_transfers(&mut whole.stub, transfers);
        return Shown::Made(whole);
    }
    match may_keep {
        true => api.rendered.show(Form::Whole, alloc, made, to_raw_value),
        false => Shown::Made(made()),
    }
}

/// All of these allocations, as lists show them.
pub(super) fn stubs(api: &Api, params: &Params, seen: &Indexed<Vec<AllocRecords>>) -> Answer {
    if params.pretty {
        let stubs = seen.value.iter().map(|alloc| stub(api, alloc));
        return answer::read(params, seen.index, &stubs.collect::<Vec<_>>());
    }
    Ok(answer::read_text(seen.index, text(api, &seen.value)?))
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
            let shown = whole(&api, &alloc, !params.pretty);
            answer::read(&params, seen.index, &shown)
        }
        None => Err(ApiError::not_found("alloc not found").at(seen.index)),
    }
}

pub(super) async fn stop(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let alloc: AllocId = uuid("alloc", &id)?;
    let asked = StopAlloc {
        alloc,
        no_shutdown_delay: params.flag("no_shutdown_delay"),
    };
    match api.agent_handle.request(asked).await? {
        Reply::Stopping { eval, index } => {
            let eval = eval.map(|id| id.to_string()).unwrap_or_default();
            answer::written(&params, index, &json!({ "EvalID": eval, "Index": index }))
        }
        Reply::Refused(Refusal::NotFound(_)) => Err(ApiError::not_found("allocation not found")),
        other => Err(ApiError::unexpected(other)),
    }
}
