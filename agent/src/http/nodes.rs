//! This node.

use axum::extract::{Path, State};
use drover_core::agent::ShownAlloc;
use drover_core::ids::NodeId;
use serde_json::Value;

use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{Alloc, NodeDto};
use super::errors::ApiError;
use super::params::{Params, check_prefix, has_prefix, uuid};
use super::{Api, missing};

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    check_prefix("node", params.prefix())?;
    let settings = api.settings.clone();
    let prefix = params.prefix().to_owned();
    let (with_resources, with_os) = (params.flag("resources"), params.flag("os"));
    let seen = blocking_query(&api, &params, move |view| {
        let node = NodeDto::of(view, &settings);
        let wanted = has_prefix(&node.id, &prefix);
        let list: Vec<Value> = wanted
            .then(|| node.stub(with_resources, with_os))
            .into_iter()
            .collect();
        Indexed::whole(view, list)
    })
    .await?;
    answer::read(&params, seen.index, &seen.value)
}

pub(super) async fn one(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let path = format!("/v1/node/{id}");
    if let Some(what) = missing::offered_by_nomad(&path) {
        return Err(missing::not_offered(what, &path));
    }
    let id: NodeId = uuid("node", &id)?;
    let settings = api.settings.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let node = (view.node().id == id).then(|| NodeDto::of(view, &settings).full());
        Indexed::whole(view, node)
    })
    .await?;
    match seen.value {
        Some(node) => answer::read(&params, seen.index, &node),
        None => Err(ApiError::not_found("node not found").at(seen.index)),
    }
}

pub(super) async fn allocations(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let id: NodeId = uuid("node", &id)?;
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let wanted = view.allocs().filter(|alloc| {
            view.node().id == id && asked.includes_all_by_default(&alloc.record().job.namespace)
        });
        Indexed::whole(
            view,
            wanted
                .map(|a| Alloc::of(view, ShownAlloc::Here(a)))
                .collect::<Vec<_>>(),
        )
    })
    .await?;
    answer::read(&params, seen.index, &seen.value)
}
