//! Allocations: list, show, stop.

use std::sync::Arc;

use axum::extract::{Path, State};
use drover_core::agent::requests::StopAlloc;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::AllocId;
use drover_core::model::alloc::ClientStatus;
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::Api;
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{Alloc, AllocStub, AllocatedResources, how_far};
use super::errors::ApiError;
use super::list;
use super::params::{Params, check_prefix, uuid};
use super::records::{self, AllocRecords, NodeNames};
use super::rendered::{Form, MOST_OF_LIST, Shown};
use crate::acl::Capability;

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    check_prefix("alloc", params.prefix())?;
    let asked = params.clone();
    let seen = records::allocs(&api, &params, move |record| {
        asked.includes(&record.job.namespace, Capability::ReadJob) && asked.is_prefix_of(record.id)
    })
    .await?;
    let with_resources = params.flag("resources");
    let without_tasks = params.get("task_states").is_some() && !params.flag("task_states");
    if !with_resources && !without_tasks && !params.pretty {
        return list::list_as(params, seen, token, move |count| written(api, count)).await;
    }
    list::list(params, seen, token, move |alloc| {
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

/// How so many are written in a list. The JSON of each is kept, unless they are so many that they would only push
/// others out.
fn written(
    api: Api,
    count: usize,
) -> impl Fn(&AllocRecords, &mut Vec<u8>) -> serde_json::Result<()> + Send + Sync {
    let may_keep = count <= MOST_OF_LIST;
    move |alloc, text| {
        match may_keep {
            true => write_kept(&api, alloc, text),
            false => write(&api, alloc, text),
        }
        Ok(())
    }
}

/// Its JSON at the end of a text.
fn write(api: &Api, alloc: &AllocRecords, text: &mut Vec<u8>) {
    let fetched = fetched(api, alloc);
    let description = fetched.as_deref();
    alloc.write_stub(description.unwrap_or(alloc.description()), text);
}

/// The same, by what is kept of it.
fn write_kept(api: &Api, alloc: &AllocRecords, text: &mut Vec<u8>) {
    // How much came of what is fetched for one is not in its records.
    if let Some(description) = fetched(api, alloc) {
        return alloc.write_stub(&description, text);
    }
    if let Some(json) = api.rendered.kept(Form::Stub, alloc) {
        return text.extend_from_slice(json.get().as_bytes());
    }
    let mut own = Vec::new();
    alloc.write_stub(alloc.description(), &mut own);
    text.extend_from_slice(&own);
    let json = String::from_utf8(own).ok();
    if let Some(json) = json.and_then(|json| RawValue::from_string(json).ok()) {
        api.rendered.keep(Form::Stub, alloc, json);
    }
}

/// What is said of an allocation's status while something is fetched for it: how much of that came.
fn fetched(api: &Api, alloc: &AllocRecords) -> Option<String> {
    let how_far = how_far(api.settings.transfers.of(alloc.alloc().id)?);
    Some(match (alloc.alloc().status, alloc.description()) {
        (ClientStatus::Pending, NOT_STARTED) => {
            format!("Fetching what its tasks need: {how_far}")
        }
        (_, description) => format!("{description}: {how_far}"),
    })
}

/// What is said of an allocation of which nothing more is known.
const NOT_STARTED: &str = "No tasks have started";

/// An allocation as lists show it.
fn stub(api: &Api, alloc: &AllocRecords) -> AllocStub {
    let mut stub = AllocStub::from(alloc);
    if let Some(description) = fetched(api, alloc) {
        stub.client_description = description;
    }
    stub
}

/// An allocation with its job. In the form for people nothing is kept.
fn whole(api: &Api, alloc: &AllocRecords, may_keep: bool) -> Shown<Alloc> {
    let made = || Alloc::of(alloc);
    if let Some(description) = fetched(api, alloc) {
        let mut whole = made();
        whole.stub.client_description = description;
        return Shown::Made(whole);
    }
    match may_keep {
        true => api.rendered.show(Form::Whole, alloc, made, to_raw_value),
        false => Shown::Made(made()),
    }
}

/// All of these allocations, as lists show them.
pub(super) async fn stubs(api: &Api, params: &Params, seen: Indexed<Vec<AllocRecords>>) -> Answer {
    if params.pretty {
        let stubs = seen.value.iter().map(|alloc| stub(api, alloc));
        return answer::read(params, seen.index, &stubs.collect::<Vec<_>>());
    }
    let count = seen.value.len();
    list::whole(seen.index, seen.value, written(api.clone(), count)).await
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
