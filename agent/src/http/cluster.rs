//! What a cluster of one machine has: two node pools, one server that leads, schedulers that are always there.
//! Programs of Nomad ask for it before they do anything else.

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Api;
use super::access::require;
use super::answer::{self, Answer};
use super::blocking::Indexed;
use super::dto::AclTokenDto;
use super::errors::ApiError;
use super::jobs;
use super::list;
use super::missing;
use super::nodes::{self, NodeRow};
use super::params::Params;
use crate::acl::PoolCapability;

/// The pools that there always are, with what they are for.
pub(super) const POOLS: [(&str, &str); 2] = [
    ("all", "Node pool with all nodes in the cluster."),
    ("default", "Default node pool."),
];
/// The schedulers of Nomad.
const SCHEDULERS: [&str; 5] = ["service", "batch", "system", "sysbatch", "_core"];
/// How long the identity of a node lasts, in nanoseconds.
const IDENTITY_TTL: i64 = 86_400_000_000_000;

/// Settings never change while the agent runs.
fn fixed<T>(value: T) -> Indexed<T> {
    Indexed { index: 1, value }
}

fn pool(name: &str, description: &str) -> Value {
    json!({
        "Name": name,
        "Description": description,
        "Meta": null,
        "NodeIdentityTTL": IDENTITY_TTL,
        "SchedulerConfiguration": null,
        "Hash": null,
        "CreateIndex": 1,
        "ModifyIndex": 1,
    })
}

/// All pools: the node's own too.
async fn pools(api: &Api) -> Result<Vec<(String, String)>, ApiError> {
    let own = api
        .agent_handle
        .ask(|view| view.node().pool.clone())
        .await?;
    let mut pools: Vec<(String, String)> = (POOLS.iter())
        .map(|(name, description)| ((*name).to_owned(), (*description).to_owned()))
        .collect();
    if pools.iter().all(|(name, _)| *name != own) {
        pools.push((own, String::new()));
    }
    pools.sort();
    Ok(pools)
}

pub(super) async fn list_pools(State(api): State<Api>, params: Params) -> Answer {
    let rights = params.principal.rights();
    require(rights.may_any_pool(PoolCapability::Read))?;
    let pools = pools(&api).await?.into_iter();
    let list: Vec<Value> = pools
        .filter(|(name, _)| name.starts_with(params.prefix()))
        .filter(|(name, _)| rights.may_pool(name, PoolCapability::Read))
        .map(|(name, description)| pool(&name, &description))
        .collect();
    let token = |one: &Value| one["Name"].as_str().unwrap_or_default().to_owned();
    list::list(params, fixed(list), token, Value::clone).await
}

pub(super) async fn one_pool(
    State(api): State<Api>,
    Path(name): Path<String>,
    params: Params,
) -> Answer {
    let (name, description) = known_pool(&api, &name).await?;
    answer::read(&params, 1, &pool(&name, &description))
}

/// The pool of this name, with its description.
async fn known_pool(api: &Api, name: &str) -> Result<(String, String), ApiError> {
    let mut pools = pools(api).await?.into_iter();
    let known = pools.find(|(own, _)| own == name);
    known.ok_or_else(|| ApiError::not_found("node pool not found").at(1))
}

/// Pools come from the configuration of nodes alone: one that was made here would have no node.
pub(super) async fn no_more_pools(uri: Uri) -> Answer {
    let words = "node pools besides default, all and the node_pool of the agent's configuration";
    Err(missing::not_offered(words, uri.path()))
}

pub(super) async fn nodes_of_pool(
    State(api): State<Api>,
    Path(name): Path<String>,
    params: Params,
) -> Answer {
    known_pool(&api, &name).await?;
    let mut seen = nodes::nodes(&api, &params).await?;
    seen.value
        .retain(|node| name == "all" || node.0.node_pool == name);
    let stub = |node: &NodeRow| node.0.stub(false, false);
    list::list(params, seen, |node| node.0.id.clone(), stub).await
}

pub(super) async fn jobs_of_pool(
    State(api): State<Api>,
    Path(name): Path<String>,
    params: Params,
) -> Answer {
    known_pool(&api, &name).await?;
    jobs::list_of(&api, params, move |job| job.node_pool == name).await
}

pub(super) async fn servers(State(api): State<Api>, params: Params) -> Answer {
    answer::json(&params, &[&api.settings.http_addr])
}

/// The agent is its own server: it can be told so, and nothing else.
pub(super) async fn set_servers(State(api): State<Api>, params: Params) -> Answer {
    let mut wanted = params.all("address").peekable();
    if wanted.peek().is_none() {
        return Err(ApiError::bad("missing server address"));
    }
    match wanted.find(|address| *address != api.settings.http_addr) {
        None => answer::empty(),
        Some(other) => {
            let words = format!("this agent is its own server, and cannot be given {other:?}");
            Err(ApiError::new(StatusCode::NOT_IMPLEMENTED, words))
        }
    }
}

/// The name of the server that this agent is, as members have it.
pub(super) async fn server(api: &Api) -> Result<(String, String), ApiError> {
    let named = api.agent_handle.ask(|view| {
        let node = view.node();
        (
            format!("{}.{}", node.name, node.region),
            node.id.to_string(),
        )
    });
    Ok(named.await?)
}

pub(super) async fn schedulers(State(api): State<Api>, params: Params) -> Answer {
    let (name, id) = server(&api).await?;
    let value = json!({
        "server_id": name,
        "schedulers": [{
            "id": id,
            "enabled_schedulers": SCHEDULERS,
            "started": Value::Null,
            "status": "Started",
            "workload_status": "WaitingToDequeue",
        }],
    });
    answer::json(&params, &value)
}

pub(super) async fn scheduler_config(State(api): State<Api>, params: Params) -> Answer {
    let (name, _) = server(&api).await?;
    let value = json!({
        "server_id": name,
        "num_schedulers": 1,
        "enabled_schedulers": SCHEDULERS,
    });
    answer::json(&params, &value)
}

pub(super) async fn raft_configuration(State(api): State<Api>, params: Params) -> Answer {
    let (name, id) = server(&api).await?;
    let value = json!({
        "Index": 0,
        "Servers": [{
            "ID": id,
            "Node": name,
            "Address": api.settings.http_addr,
            "Leader": true,
            "Voter": true,
            "RaftProtocol": "3",
        }],
    });
    answer::json(&params, &value)
}

pub(super) async fn autopilot(params: Params) -> Answer {
    let value = json!({
        "CleanupDeadServers": true,
        "LastContactThreshold": "200ms",
        "MaxTrailingLogs": 250,
        "MinQuorum": 0,
        "ServerStabilizationTime": "10s",
        "EnableRedundancyZones": false,
        "DisableUpgradeMigration": false,
        "EnableCustomUpgrades": false,
        "CreateIndex": 1,
        "ModifyIndex": 1,
    });
    answer::json(&params, &value)
}

pub(super) async fn autopilot_health(State(api): State<Api>, params: Params) -> Answer {
    let (name, id) = server(&api).await?;
    let index = api.agent_handle.ask(|view| view.index()).await?;
    let value = json!({
        "Healthy": true,
        "FailureTolerance": 0,
        "Leader": id,
        "Voters": [id],
        "Servers": [{
            "ID": id,
            "Name": name,
            "Address": api.settings.http_addr,
            "Version": api.settings.nomad_version,
            "SerfStatus": "alive",
            "LastContact": "0s",
            "LastTerm": 1,
            "LastIndex": index,
            "Healthy": true,
            "Leader": true,
            "Voter": true,
            "StableSince": "0001-01-01T00:00:00Z",
        }],
    });
    answer::json(&params, &value)
}

/// Nothing of this kind is ever here.
pub(super) async fn none_of_them(State(api): State<Api>, params: Params) -> Answer {
    let index = api.agent_handle.ask(|view| view.index()).await?;
    answer::read(&params, index, &Vec::<Value>::new())
}

/// Summaries are counted when they are asked for, so that they are always right.
pub(super) async fn reconcile_summaries() -> Answer {
    answer::empty()
}

/// The token of whoever asks, where nobody needs one.
pub(super) async fn own_token(params: Params) -> Answer {
    let value = AclTokenDto::without_secret("acls-disabled", "ACLs disabled token", "client", &[]);
    answer::read(&params, 1, &value)
}

pub(super) async fn no_acls() -> Answer {
    Err(ApiError::bad("ACL support disabled"))
}

pub(super) async fn enterprise() -> Answer {
    let words = "Nomad Enterprise only endpoint";
    Err(ApiError::new(StatusCode::NOT_IMPLEMENTED, words))
}

pub(super) async fn no_license() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

pub(super) async fn no_oidc() -> Answer {
    Err(ApiError::not_found("OIDC Discovery endpoint disabled"))
}
