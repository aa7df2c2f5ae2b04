//! The HTTP API: Nomad's routes and shapes, for its programs and for our own command line.

pub mod actions;
pub mod agent;
mod allocations;
mod answer;
mod audit;
mod blocking;
mod body;
pub(crate) mod checks;
pub(crate) mod client;
mod cluster;
mod compress;
mod deployments;
mod diff;
mod dispatch;
pub mod dto;
pub(crate) mod errors;
mod evaluations;
mod events;
pub(crate) mod exec;
mod explain;
mod file_put;
pub(crate) mod file_stream;
pub mod files;
mod filter;
pub(crate) mod frames;
pub mod guard;
pub(crate) mod host;
mod identity;
mod job;
mod jobs;
mod keyring;
mod list;
pub(crate) mod logs;
pub(crate) mod metadata;
mod metrics;
mod missing;
pub(crate) mod monitor;
mod namespaces;
mod node_life;
mod nodes;
mod params;
mod periodic;
mod plan;
mod plugins;
pub(crate) mod port_forward;
pub(crate) mod records;
mod rendered;
mod response_cache;
mod scale;
pub(crate) mod scheduler;
mod search;
mod serve;
mod services;
mod snapshot;
mod state_snapshot;
pub(crate) mod stats;
mod suitability;
pub mod untrusted;
mod vars;
mod versions;
mod volumes;
pub(crate) mod websocket;

#[cfg(test)]
mod field_tests;
#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod life_tests;
#[cfg(test)]
mod node_tests;
#[cfg(test)]
mod route_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod stats_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, delete, get, put};

use drover_io_real::audit::Auditor;
use drover_io_real::forward::ForwardCounts;
use drover_io_real::identity::Issuer;
use drover_io_real::migrate::token::NodeSecret;
use drover_io_real::notify::Notifier;
use drover_io_real::plugins::Plugins;
use drover_io_real::store::StoreKeys;
use drover_io_real::transfers::Transfers;
use tokio::sync::Semaphore;

pub use events::Events;
pub use serve::{Limits, serve};
pub use stats::Measures;

use crate::agent_handle::AgentHandle;
use crate::agent_log::AgentLog;
use crate::config::client::ClientConfig;
use crate::config::telemetry::Telemetry;
use errors::ApiError;
use guard::{Guard, Names};
use rendered::Rendered;

/// What of the agent's settings shows in its answers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The names under which clients may call this agent, besides addresses and `localhost`.
    pub names: Vec<String>,
    /// The address at which it answers.
    pub http_addr: String,
    /// Whether it speaks TLS there.
    pub tls: bool,
    /// The version that it says it has.
    pub version: String,
    /// The version of Nomad that it is compatible with; programs of Nomad's compare it.
    pub nomad_version: String,
    /// Where it keeps its data.
    pub data_dir: String,
    /// What is fetched for its allocations.
    pub transfers: Transfers,
    /// What makes the tokens for its allocations' disks.
    pub secret: NodeSecret,
    /// Who makes the tokens of its tasks.
    pub issuer: Option<Issuer>,
    /// The keys with which variables are encrypted.
    pub keys: Option<StoreKeys>,
    /// The plugins that run beside it.
    pub plugins: Plugins,
    /// Who looks at its host; none where there is nothing to look at.
    pub auditor: Option<Auditor>,
    /// What is wanted of the node.
    pub client: ClientConfig,
    /// What is told of the agent in numbers.
    pub telemetry: Telemetry,
    /// What changes.
    pub events: Events,
    /// Who tells operators what happens.
    pub notifier: Notifier,
    /// What became of the logs that are sent elsewhere.
    pub forwarded: ForwardCounts,
    /// What the agent writes about itself.
    pub log: AgentLog,
}

/// What every handler has at hand.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    pub(crate) agent_handle: AgentHandle,
    pub(crate) settings: Arc<Settings>,
    pub(crate) measures: Measures,
    /// The JSON of allocations that were asked for lately.
    pub(crate) rendered: Arc<Rendered>,
    /// Places for those who read disks.
    pub(crate) snapshots: Arc<Semaphore>,
}

/// The whole API.
pub fn router(agent_handle: AgentHandle, settings: Settings, measures: Measures) -> Router {
    let guard = Guard {
        names: Names(settings.names.iter().cloned().collect()),
        tls: settings.tls,
    };
    let api = Api {
        agent_handle,
        settings: Arc::new(settings),
        measures,
        rendered: Arc::default(),
        snapshots: Arc::new(Semaphore::new(snapshot::AT_A_TIME)),
    };
    routes()
        .merge(cluster_routes())
        .method_not_allowed_fallback(async || ApiError::method())
        .fallback(missing::answer)
        .layer(from_fn_with_state(guard, guard::guard))
        .layer(from_fn(compress::compress))
        .with_state(api)
}

fn routes() -> Router<Api> {
    Router::new()
        .route(
            "/v1/jobs",
            get(jobs::list).put(jobs::register).post(jobs::register),
        )
        .route("/.well-known/jwks.json", get(identity::keys))
        .route(
            "/v1/operator/scheduler/configuration",
            get(scheduler::configuration)
                .put(scheduler::set)
                .post(scheduler::set),
        )
        .route(
            "/v1/operator/snapshot",
            get(state_snapshot::save)
                .put(state_snapshot::restore)
                .post(state_snapshot::restore),
        )
        .route("/v1/operator/keyring/keys", get(keyring::list))
        .route(
            "/v1/operator/keyring/rotate",
            put(keyring::rotate).post(keyring::rotate),
        )
        .route("/v1/operator/keyring/key/{id}", delete(keyring::remove))
        .route("/v1/jobs/parse", put(jobs::parse).post(jobs::parse))
        .route("/v1/validate/job", put(jobs::validate).post(jobs::validate))
        .route("/v1/job/{*rest}", any(job::any))
        .route("/v1/allocations", get(allocations::list))
        .route("/v1/allocation/{id}", get(allocations::one))
        .route(
            "/v1/allocation/{id}/stop",
            put(allocations::stop).post(allocations::stop),
        )
        .route("/v1/allocation/{id}/explain", get(explain::alloc))
        .route("/v1/evaluations", get(evaluations::list))
        .route("/v1/evaluations/count", get(evaluations::count))
        .route("/v1/evaluation/{id}", get(evaluations::one))
        .route(
            "/v1/evaluation/{id}/allocations",
            get(evaluations::allocations),
        )
        .route("/v1/deployments", get(deployments::list))
        .route("/v1/deployment/{id}", get(deployments::one))
        .route(
            "/v1/deployment/allocations/{id}",
            get(deployments::allocations),
        )
        .route(
            "/v1/deployment/{action}/{id}",
            put(deployments::act).post(deployments::act),
        )
        .route("/v1/scaling/policies", get(scale::list))
        .route("/v1/scaling/policy/{id}", get(scale::one))
        .route("/v1/nodes", get(nodes::list))
        .route("/v1/node/{id}", get(nodes::one))
        .route("/v1/node/{id}/allocations", get(nodes::allocations))
        .route(
            "/v1/node/{id}/eligibility",
            put(node_life::eligibility).post(node_life::eligibility),
        )
        .route(
            "/v1/node/{id}/drain",
            put(node_life::drain).post(node_life::drain),
        )
        .route(
            "/v1/node/{id}/evaluate",
            put(node_life::evaluate).post(node_life::evaluate),
        )
        .route(
            "/v1/node/{id}/purge",
            put(node_life::purge).post(node_life::purge),
        )
        .route("/v1/client/allocation/{id}/snapshot", get(snapshot::get))
        .route("/v1/client/allocation/{id}/exec", get(exec::exec))
        .route("/v1/client/allocation/{id}/checks", get(checks::of_alloc))
        .route("/v1/allocation/{id}/checks", get(checks::of_alloc))
        .route(
            "/v1/client/allocation/{id}/port-forward",
            get(port_forward::forward),
        )
        .route(
            "/v1/client/allocation/{id}/{action}",
            get(stats::alloc).put(client::act).post(client::act),
        )
        .route("/v1/client/stats", get(stats::host))
        .route(
            "/v1/client/metadata",
            get(metadata::read).post(metadata::apply),
        )
        .route("/v1/metrics", get(metrics::metrics))
        .route("/v1/client/fs/logs/{id}", get(logs::logs))
        .route("/v1/client/fs/put/{id}", get(file_put::put))
        .route("/v1/client/fs/stream/{id}", get(file_stream::stream))
        .route("/v1/client/fs/ls/{id}", get(files::ls))
        .route("/v1/client/fs/stat/{id}", get(files::stat))
        .route("/v1/client/fs/cat/{id}", get(files::cat))
        .route("/v1/client/fs/readat/{id}", get(files::read_at))
        .route("/v1/agent/self", get(agent::this))
        .route("/v1/agent/plugins", get(plugins::list))
        .route(
            "/v1/agent/audit",
            get(audit::list).put(audit::fix).post(audit::fix),
        )
        .route("/v1/agent/host", get(host::facts))
        .route("/v1/agent/health", get(agent::health))
        .route("/v1/agent/monitor", get(monitor::monitor))
        .route("/v1/agent/members", get(agent::members))
        .route("/v1/status/leader", get(agent::leader))
        .route("/v1/status/peers", get(agent::peers))
        .route("/v1/regions", get(agent::regions))
        .route("/v1/services", get(services::list))
        .route("/v1/service/{name}", get(services::one))
        .route(
            "/v1/service/{name}/{id}",
            axum::routing::delete(services::delete),
        )
        .route("/v1/vars", get(vars::list))
        .route("/v1/var/{*path}", any(vars::any))
        .route("/v1/search", put(search::search).post(search::search))
        .route("/v1/search/fuzzy", put(search::fuzzy).post(search::fuzzy))
        .route("/v1/event/stream", get(events::stream))
        .route("/v1/allocation/{id}/services", get(services::of_alloc))
        .route("/v1/client/gc", get(cluster::collect).put(cluster::collect))
        .route("/v1/system/gc", put(agent::collect))
}

/// What a cluster of one machine has.
fn cluster_routes() -> Router<Api> {
    let namespace = get(namespaces::one)
        .put(namespaces::put_named)
        .post(namespaces::put_named)
        .delete(namespaces::delete);
    let servers = get(cluster::servers)
        .put(cluster::set_servers)
        .post(cluster::set_servers);
    let mut routes = Router::new()
        .route("/v1/namespaces", get(namespaces::list))
        .route("/v1/namespace", put(namespaces::put).post(namespaces::put))
        .route("/v1/namespace/{name}", namespace)
        .route("/v1/node/pools", get(cluster::list_pools))
        .route("/v1/node/pool/{name}", get(cluster::one_pool))
        .route("/v1/node/pool/{name}/nodes", get(cluster::nodes_of_pool))
        .route("/v1/node/pool/{name}/jobs", get(cluster::jobs_of_pool))
        .route("/v1/agent/servers", servers)
        .route("/v1/agent/schedulers", get(cluster::schedulers))
        .route(
            "/v1/agent/schedulers/config",
            get(cluster::scheduler_config),
        )
        .route(
            "/v1/operator/raft/configuration",
            get(cluster::raft_configuration),
        )
        .route(
            "/v1/operator/autopilot/configuration",
            get(cluster::autopilot),
        )
        .route(
            "/v1/operator/autopilot/health",
            get(cluster::autopilot_health),
        )
        .route("/v1/operator/license", get(cluster::no_license))
        .route("/v1/volumes", get(volumes::list))
        .route(
            "/v1/volume/host/create",
            put(volumes::create).post(volumes::create),
        )
        .route(
            "/v1/volume/host/register",
            put(volumes::register).post(volumes::register),
        )
        .route(
            "/v1/volume/host/{id}",
            get(volumes::read).delete(volumes::delete),
        )
        .route("/v1/plugins", get(cluster::none_of_them))
        .route(
            "/v1/system/reconcile/summaries",
            put(cluster::reconcile_summaries),
        )
        .route("/v1/acl/token/self", get(cluster::own_token))
        .route("/v1/acl/{*rest}", any(cluster::no_acls))
        .route("/.well-known/openid-configuration", get(cluster::no_oidc));
    for path in [
        "/v1/quotas",
        "/v1/quota",
        "/v1/quota/{*rest}",
        "/v1/quota-usages",
        "/v1/sentinel/{*rest}",
        "/v1/recommendation",
        "/v1/recommendations",
        "/v1/recommendations/{*rest}",
        "/v1/recommendation/{*rest}",
        "/v1/operator/utilization",
    ] {
        routes = routes.route(path, any(cluster::enterprise));
    }
    routes
}
