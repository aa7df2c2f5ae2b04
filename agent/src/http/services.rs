//! Services: who is registered on this node.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use drover_core::agent::choose;
use drover_core::ids::{AllocId, JobKey};
use serde_json::json;

use super::Api;
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::ServiceInstance;
use super::errors::ApiError;
use super::list;
use super::params::{Params, uuid};
use crate::acl::Capability;

/// The names of services with the tags of their instances, by namespace.
pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let mut all: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        let of = view.services().into_iter();
        for one in of.filter(|one| asked.includes(&one.job.namespace, Capability::ReadJob)) {
            let names = all.entry(one.job.namespace.to_string()).or_default();
            names.entry(one.name).or_default().extend(one.tags);
        }
        Indexed::whole(view, all)
    })
    .await?;
    let namespaces = seen.value.into_iter().map(|(namespace, names)| {
        let names = names.into_iter();
        let services: Vec<_> = names
            .map(|(name, tags)| json!({ "ServiceName": name, "Tags": tags }))
            .collect();
        json!({ "Namespace": namespace, "Services": services })
    });
    let value: Vec<_> = namespaces.collect();
    answer::read(&params, seen.index, &value)
}

/// The instances of one service.
pub(super) async fn one(
    State(api): State<Api>,
    Path(name): Path<String>,
    params: Params,
) -> Answer {
    let few = params.non_empty("choose").map(chosen).transpose()?;
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let all = view.services().into_iter();
        let of = all.filter(|one| {
            one.name == name && asked.includes(&one.job.namespace, Capability::ReadJob)
        });
        Indexed::whole(view, of.collect::<Vec<_>>())
    })
    .await?;
    let found = match few {
        Some((count, key)) => choose(seen.value, count, &key),
        None => seen.value,
    };
    let seen = Indexed {
        index: seen.index,
        value: found.iter().map(ServiceInstance::of).collect(),
    };
    let token = |one: &ServiceInstance| format!("{}.{}", one.create_index, one.id);
    list::list(params, seen, token, ServiceInstance::clone).await
}

/// The instances of one allocation.
pub(super) async fn of_alloc(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let id: AllocId = uuid("alloc", &id)?;
    let seen = blocking_query(&api, &params, move |view| {
        let known = view.shown_alloc(id).is_some();
        Indexed::whole(view, known.then(|| view.services_of(id)))
    })
    .await?;
    match seen.value {
        None => Err(ApiError::not_found("alloc not found").at(seen.index)),
        Some(found) => {
            let dto: Vec<ServiceInstance> = found.iter().map(ServiceInstance::of).collect();
            answer::read(&params, seen.index, &dto)
        }
    }
}

/// The instances of one job.
pub(super) async fn of_job(api: &Api, params: &Params, key: JobKey) -> Answer {
    let seen = blocking_query(api, params, move |view| {
        let allocs = view.allocs_of(&key);
        let found = allocs.flat_map(|alloc| view.services_of(alloc.record().id));
        let dto: Vec<ServiceInstance> = found.map(|one| ServiceInstance::of(&one)).collect();
        Indexed::whole(view, dto)
    })
    .await?;
    answer::read(params, seen.index, &seen.value)
}

/// `N|KEY`: how many, and by what they are chosen.
fn chosen(text: &str) -> Result<(usize, String), ApiError> {
    let (count, key) = text.split_once('|').unwrap_or((text, ""));
    let count = count.parse().ok().filter(|_| !key.is_empty());
    let count = count.ok_or_else(|| ApiError::bad("choose is of the form NUMBER|KEY"))?;
    Ok((count, key.to_owned()))
}

/// Registrations follow from what runs, so there is nothing that could be deleted.
pub(super) async fn delete() -> Answer {
    let words = "a registration lasts as long as its task runs: stop the task instead";
    Err(ApiError::new(StatusCode::NOT_IMPLEMENTED, words))
}
