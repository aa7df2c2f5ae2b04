//! Roll-outs.

use axum::extract::{Path, State};
use drover_core::ids::DeploymentId;

use super::Api;
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{AllocStub, DeploymentDto};
use super::errors::ApiError;
use super::jobs::page;
use super::params::{Params, check_prefix, has_prefix, uuid};

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    check_prefix("deployment", params.prefix())?;
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let wanted = view.deployments().filter(|deployment| {
            asked.includes(&deployment.job.namespace)
                && has_prefix(&deployment.id.to_string(), asked.prefix())
        });
        let mut list: Vec<_> = wanted.map(|d| DeploymentDto::of(view, d)).collect();
        list.sort_by(|a, b| (a.create_index, &a.id).cmp(&(b.create_index, &b.id)));
        let token = |d: &DeploymentDto| format!("{}.{}", d.create_index, d.id);
        Indexed::whole(view, list.into_iter().map(|d| (token(&d), d)).collect())
    })
    .await?;
    page(&params, seen)
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
    let seen = blocking_query(&api, &params, move |view| {
        let wanted = view
            .shown_allocs()
            .filter(|alloc| alloc.record().deployment == Some(id));
        Indexed::whole(
            view,
            wanted.map(|a| AllocStub::of(view, a)).collect::<Vec<_>>(),
        )
    })
    .await?;
    answer::read(&params, seen.index, &seen.value)
}
