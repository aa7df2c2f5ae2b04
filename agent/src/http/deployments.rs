//! Roll-outs.

use axum::extract::{Path, State};
use drover_core::ids::DeploymentId;
use drover_core::store::record::AllocRecord;

use super::Api;
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::DeploymentDto;
use super::errors::ApiError;
use super::params::{Params, check_prefix, uuid};
use super::{allocations, records};

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    check_prefix("deployment", params.prefix())?;
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let wanted = view.deployments().filter(|deployment| {
            asked.includes(&deployment.job.namespace) && asked.is_prefix_of(deployment.id)
        });
        let mut list: Vec<_> = wanted.map(|d| DeploymentDto::of(view, d)).collect();
        list.sort_by(|a, b| (a.create_index, &a.id).cmp(&(b.create_index, &b.id)));
        Indexed::whole(view, list)
    })
    .await?;
    let token = |d: &DeploymentDto| format!("{}.{}", d.create_index, d.id);
    answer::list(params, seen, token, DeploymentDto::clone).await
}

pub(super) async fn one(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let id: DeploymentId = uuid("deployment", &id)?;
    let seen = blocking_query(&api, &params, move |view| match view.deployment(id) {
        Some(deployment) => {
            let shape = DeploymentDto::of(view, deployment);
            Indexed {
                index: shape.modify_index,
                value: Some(shape),
            }
        }
        None => Indexed::whole(view, None),
    })
    .await?;
    match seen.value {
        Some(deployment) => answer::read(&params, seen.index, &deployment),
        None => Err(ApiError::not_found("deployment not found").at(seen.index)),
    }
}

pub(super) async fn allocations(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let id: DeploymentId = uuid("deployment", &id)?;
    let wanted = move |alloc: &AllocRecord| alloc.deployment == Some(id);
    let seen = records::allocs(&api, &params, wanted).await?;
    allocations::stubs(&api, &params, &seen)
}
