//! What a cluster of one machine has: two node pools, one server that leads, schedulers that are always there.
//! Programs of Nomad ask for it before they do anything else. A node of a real cluster says which servers it has, and
//! leaves to them what only they know.

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use drover_core::agent::View;
use serde_json::{Value, json};

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
use super::{Api, Settings};
use crate::acl::PoolCapability;
use crate::config::address::with_port;

/// The pools that there always are, with what they are for.
pub(super) const POOLS: [(&str, &str); 2] = [
    ("all", "Node pool with all nodes in the cluster."),
    ("default", "Default node pool."),
];
/// The schedulers of Nomad.
const SCHEDULERS: [&str; 5] = ["service", "batch", "system", "sysbatch", "_core"];
/// How long the identity of a node lasts, in nanoseconds.
const IDENTITY_TTL: i64 = 86_400_000_000_000;
/// The port of servers that are named without one.
const SERVER_PORT: &str = "4647";

/// Which servers decide what runs here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Servers {
    /// The agent itself, which is on its own.
    Itself,
    /// Those of the cluster whose node it is: those that it was told of, or else those of its configuration.
    Of(Vec<String>),
}

impl Servers {
    pub(super) async fn of(api: &Api) -> Result<Servers, ApiError> {
        let settings = api.settings.clone();
        let servers = api
            .agent_handle
            .ask(move |view| servers_of(view, &settings));
        Ok(servers.await?)
    }
}

/// Which servers decide what runs here.
pub(super) fn servers_of(view: View<'_>, settings: &Settings) -> Servers {
    let Some(server) = view.server() else {
        return Servers::Itself;
    };
    let known: Vec<String> = server.servers().map(ToString::to_string).collect();
    match known.is_empty() {
        true => Servers::Of(configured(settings)),
        false => Servers::Of(known),
    }
}

fn configured(settings: &Settings) -> Vec<String> {
    let servers = settings.client.node.servers.iter();
    servers.map(|one| with_port(one, SERVER_PORT)).collect()
}

/// Why a node of a cluster does not answer what only its servers know.
pub(super) fn of_servers(servers: &[String]) -> ApiError {
    let words = format!(
        "this agent is a node of a cluster: its servers know that, and it does not ask them for you; ask one of them \
         (they take calls of nodes at {})",
        servers.join(", ")
    );
    ApiError::new(StatusCode::NOT_IMPLEMENTED, words)
}

/// Lets an agent answer that is its own server.
///
/// # Errors
/// This one is a node of a cluster, whose servers know it.
async fn only_alone(api: &Api) -> Result<(), ApiError> {
    match Servers::of(api).await? {
        Servers::Itself => Ok(()),
        Servers::Of(all) => Err(of_servers(&all)),
    }
}

/// Lets an agent answer that is a server.
///
/// # Errors
/// This one is none, and nobody else can answer for it.
async fn only_of_servers(api: &Api) -> Result<(), ApiError> {
    match Servers::of(api).await? {
        Servers::Itself => Ok(()),
        Servers::Of(_) => Err(ApiError::bad("Server only endpoint")),
    }
}

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
    match Servers::of(&api).await? {
        Servers::Itself => answer::json(&params, &[&api.settings.http_addr]),
        Servers::Of(all) => answer::json(&params, &all),
    }
}

/// An agent has the servers that it was told of: those that it has it can be told again, and no others.
pub(super) async fn set_servers(State(api): State<Api>, params: Params) -> Answer {
    let wanted: Vec<&str> = params.all("address").collect();
    if wanted.is_empty() {
        return Err(ApiError::bad("missing server address"));
    }
    match other_servers(&Servers::of(&api).await?, &api.settings, &wanted) {
        None => answer::empty(),
        Some(why) => Err(ApiError::new(StatusCode::NOT_IMPLEMENTED, why)),
    }
}

/// Why the agent cannot have these servers, if it has not.
fn other_servers(servers: &Servers, settings: &Settings, wanted: &[&str]) -> Option<String> {
    let mut wanted = wanted.iter();
    match servers {
        Servers::Itself => {
            let other = wanted.find(|address| **address != settings.http_addr)?;
            Some(format!(
                "this agent is its own server, and cannot be given {other:?}"
            ))
        }
        Servers::Of(all) => {
            let configured = configured(settings);
            let is_known = |address: &str| {
                let address = with_port(address, SERVER_PORT);
                all.contains(&address) || configured.contains(&address)
            };
            let other = wanted.find(|address| !is_known(address))?;
            Some(format!(
                "{other:?} is no server that this node has. It learns of the servers that there are from those that it \
                 has; to have it ask others, name them in client {{ servers }} of its configuration and restart the \
                 agent: tasks go on"
            ))
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
    only_of_servers(&api).await?;
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
    only_of_servers(&api).await?;
    let (name, _) = server(&api).await?;
    let value = json!({
        "server_id": name,
        "num_schedulers": 1,
        "enabled_schedulers": SCHEDULERS,
    });
    answer::json(&params, &value)
}

pub(super) async fn raft_configuration(State(api): State<Api>, params: Params) -> Answer {
    only_alone(&api).await?;
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

pub(super) async fn autopilot(State(api): State<Api>, params: Params) -> Answer {
    only_alone(&api).await?;
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
    only_alone(&api).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let mut settings = Settings {
            http_addr: "127.0.0.1:4646".to_owned(),
            ..Settings::default()
        };
        settings.client.node.servers = vec!["10.0.0.1".to_owned()];
        settings
    }

    #[test]
    fn node_of_a_cluster_accepts_servers_that_it_has() {
        let servers = Servers::Of(vec!["10.0.0.2:4647".to_owned()]);
        let why = |wanted: &[&str]| other_servers(&servers, &settings(), wanted);
        assert_eq!(why(&["10.0.0.2:4647", "10.0.0.1", "10.0.0.1:4647"]), None);
        let words = why(&["10.0.0.2", "10.0.0.3"]).unwrap();
        assert!(words.starts_with("\"10.0.0.3\" is no server"), "{words}");
        assert!(words.contains("client { servers }"), "{words}");
    }

    #[test]
    fn agent_on_its_own_has_no_server_but_itself() {
        let why = |wanted| other_servers(&Servers::Itself, &settings(), &[wanted]);
        assert_eq!(why("127.0.0.1:4646"), None);
        assert!(why("10.0.0.1:4647").unwrap().contains("its own server"));
    }

    #[test]
    fn server_only_request_is_refused_with_server_addresses() {
        let error = of_servers(&["10.0.0.1:4647".to_owned(), "10.0.0.2:4647".to_owned()]);
        assert_eq!(error.status, StatusCode::NOT_IMPLEMENTED);
        let words = "10.0.0.1:4647, 10.0.0.2:4647";
        assert!(error.message.contains(words), "{}", error.message);
    }
}
