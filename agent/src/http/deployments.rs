//! Roll-outs.

use axum::extract::{Path, Request, State};
use drover_core::agent::requests::{
    self, FailDeployment, PauseDeployment, PromoteDeployment, SetAllocHealth,
};
use drover_core::effect::Reply;
use drover_core::ids::{AllocId, DeploymentId};
use drover_core::store::record::AllocRecord;

use serde::Deserialize;
use serde_json::json;

use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::DeploymentDto;
use super::errors::ApiError;
use super::list;
use super::params::{Params, check_prefix, uuid};
use super::{Api, allocations, body, records};
use crate::acl::Capability;

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    check_prefix("deployment", params.prefix())?;
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let wanted = view.deployments().filter(|deployment| {
            asked.includes(&deployment.job.namespace, Capability::ReadJob)
                && asked.is_prefix_of(deployment.id)
        });
        let mut list: Vec<_> = wanted.map(|d| DeploymentDto::of(view, d)).collect();
        list.sort_by(|a, b| (a.create_index, &a.id).cmp(&(b.create_index, &b.id)));
        Indexed::whole(view, list)
    })
    .await?;
    let token = |d: &DeploymentDto| format!("{}.{}", d.create_index, d.id);
    list::list(params, seen, token, DeploymentDto::clone).await
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
    allocations::stubs(&api, &params, seen).await
}

/// The bodies of all requests to change a roll-out.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Asked {
    #[serde(rename = "DeploymentID")]
    deployment_id: String,
    all: bool,
    groups: Vec<String>,
    pause: bool,
    #[serde(rename = "HealthyAllocationIDs")]
    healthy: Vec<String>,
    #[serde(rename = "UnhealthyAllocationIDs")]
    unhealthy: Vec<String>,
}

/// The most groups or allocations that one request names.
const MOST_NAMED: usize = 10_000;

pub(super) async fn act(
    State(api): State<Api>,
    Path((action, id)): Path<(String, String)>,
    params: Params,
    request: Request,
) -> Answer {
    let deployment: DeploymentId = uuid("deployment", &id)?;
    let path = request.uri().path().to_owned();
    let asked: Asked = body::decode_or_default(request).await?;
    if !asked.deployment_id.is_empty() && asked.deployment_id != id {
        return Err(ApiError::bad("Deployment ID does not match"));
    }
    if asked.groups.len() + asked.healthy.len() + asked.unhealthy.len() > MOST_NAMED {
        let words = format!("more than {MOST_NAMED} groups or allocations are named");
        return Err(ApiError::bad(words));
    }
    let asked: requests::Request = match action.as_str() {
        "promote" if !asked.all && asked.groups.is_empty() => {
            return Err(ApiError::failed("must specify groups or all groups"));
        }
        "promote" => {
            let groups = asked.groups.iter().filter(|_| !asked.all);
            let groups = groups.map(|group| group.as_str().into()).collect();
            PromoteDeployment { deployment, groups }.into()
        }
        "fail" => FailDeployment { deployment }.into(),
        "pause" => {
            let pause = asked.pause;
            PauseDeployment { deployment, pause }.into()
        }
        "allocation-health" => SetAllocHealth {
            deployment,
            healthy: allocs_of(&asked.healthy)?,
            unhealthy: allocs_of(&asked.unhealthy)?,
        }
        .into(),
        "unblock" => return Err(unblock(&api, deployment).await?),
        _ => {
            let words = format!("no such route: {path}");
            return Err(ApiError::not_found(words));
        }
    };
    match api.agent_handle.request(asked).await? {
        Reply::Deployment {
            eval,
            index,
            reverted,
        } => {
            let eval = eval.map(|id| id.to_string()).unwrap_or_default();
            let answer = json!({
                "EvalID": eval,
                "EvalCreateIndex": index,
                "DeploymentModifyIndex": index,
                "RevertedJobVersion": reverted,
                "Index": index,
                "LastContact": 0,
                "KnownLeader": true,
                "NextToken": "",
            });
            answer::written(&params, index, &answer)
        }
        other => Err(ApiError::unexpected(other)),
    }
}

fn allocs_of(ids: &[String]) -> Result<Vec<AllocId>, ApiError> {
    ids.iter().map(|id| uuid("alloc", id)).collect()
}

/// Nothing is ever blocked here: that is for jobs of several regions.
async fn unblock(api: &Api, id: DeploymentId) -> Result<ApiError, ApiError> {
    let asked = api
        .agent_handle
        .ask(move |view| view.deployment(id).map(|one| one.is_active()));
    Ok(match asked.await? {
        None => ApiError::not_found("deployment not found"),
        Some(false) => ApiError::failed("can't unblock terminal deployment"),
        Some(true) => ApiError::failed("can't unblock running deployment"),
    })
}
