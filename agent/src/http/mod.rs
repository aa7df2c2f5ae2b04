//! The HTTP API: Nomad's routes and shapes, for its programs and for our own command line.

mod access;
mod acl;
pub mod actions;
pub mod agent;
mod agent_stats;
mod allocations;
mod answer;
mod aside;
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
mod routes;
mod scale;
pub(crate) mod scheduler;
mod search;
mod search_rights;
mod serve;
mod services;
mod snapshot;
mod state_snapshot;
pub(crate) mod stats;
mod status_servers;
mod statuses;
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
mod statuses_tests;
#[cfg(test)]
mod tests;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;

use drover_core::time::Span;
use drover_io_real::audit::Auditor;
use drover_io_real::forward::ForwardCounts;
use drover_io_real::identity::Issuer;
use drover_io_real::migrate::Nodes;
use drover_io_real::migrate::token::NodeSecret;
use drover_io_real::notify::Notifier;
use drover_io_real::plugins::Plugins;
use drover_io_real::store::StoreKeys;
use drover_io_real::transfers::Transfers;
use tokio::sync::Semaphore;

pub use access::{ForServers, ServersPolicy, ServersToken, TokenServers, Unresolved};
pub use events::Events;
pub use serve::{Limits, Listeners, LocalSocket, serve};
pub use stats::Measures;
pub use status_servers::{Member, Members, StatusError, StatusQuestion, StatusServers};

use crate::admission::drivers::DriverRules;
use crate::agent_handle::AgentHandle;
use crate::agent_log::AgentLog;
use crate::config::acl::AclConfig;
use crate::config::client::ClientConfig;
use crate::config::telemetry::Telemetry;
use access::{Directory, Servers};
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
    /// How nodes are reached from which jobs are moved here.
    pub nodes: Nodes,
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
    /// What tasks may ask of its drivers.
    pub drivers: DriverRules,
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
    /// Whether users need tokens.
    pub acl: AclSettings,
    /// Who knows the tokens of the cluster, if this is a node of one.
    pub token_servers: Option<Arc<dyn TokenServers>>,
    /// Who asks the servers of the cluster who they are, if this is a node of one.
    pub status_servers: Option<Arc<dyn StatusServers>>,
    /// Told, once there is an API, whose a token is that servers pass on.
    pub for_servers: ForServers,
}

impl Settings {
    /// The shortest and the longest time for which a token that expires may last.
    fn token_times(&self) -> (Span, Span) {
        let span = |time: Duration| Span(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        let (least, most) = self.acl.expiration;
        (span(least), span(most))
    }
}

/// What is wanted of access control.
#[derive(Clone, Copy, Debug)]
pub struct AclSettings {
    /// Whether those who come over the network need tokens.
    pub enabled: bool,
    /// The shortest and the longest time for which a token that expires may last.
    pub expiration: (Duration, Duration),
    /// How long what servers say of a token counts.
    pub servers_tokens_last: Duration,
}

impl Default for AclSettings {
    fn default() -> AclSettings {
        let config = AclConfig::default();
        AclSettings {
            enabled: false,
            expiration: (config.min_expiration, config.max_expiration),
            servers_tokens_last: config.servers_tokens_last,
        }
    }
}

/// What every handler has at hand. Each request takes it several times, so it is one thing to count.
#[derive(Clone, Debug)]
pub(crate) struct Api(Arc<Parts>);

#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) agent_handle: AgentHandle,
    pub(crate) settings: Arc<Settings>,
    pub(crate) measures: Measures,
    /// Whose a token is, and what that allows.
    pub(crate) directory: Arc<Directory>,
    /// The JSON of allocations that were asked for lately.
    pub(crate) rendered: Arc<Rendered>,
    /// Places for those who read disks.
    pub(crate) snapshots: Arc<Semaphore>,
}

/// The whole API.
pub fn router(agent_handle: AgentHandle, settings: Settings, measures: Measures) -> Router {
    router_of(Api::new(agent_handle, settings, measures))
}

impl Api {
    pub(crate) fn new(agent_handle: AgentHandle, settings: Settings, measures: Measures) -> Api {
        let servers = settings.token_servers.clone();
        let servers = servers.map(|it| Servers::new(it, settings.acl.servers_tokens_last));
        let directory = Arc::new(Directory::new(settings.acl.enabled, servers));
        settings.for_servers.set(directory.clone());
        Api(Arc::new(Parts {
            agent_handle,
            directory,
            settings: Arc::new(settings),
            measures,
            rendered: Arc::default(),
            snapshots: Arc::new(Semaphore::new(snapshot::AT_A_TIME)),
        }))
    }

    /// The same with other settings.
    #[cfg(test)]
    pub(crate) fn with_settings(&self, settings: Settings) -> Api {
        Api(Arc::new(Parts {
            settings: Arc::new(settings),
            ..Parts::clone(self)
        }))
    }
}

impl Deref for Api {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

pub(crate) fn router_of(api: Api) -> Router {
    let settings = &api.settings;
    let guard = Guard {
        names: Names(settings.names.iter().cloned().collect()),
        tls: settings.tls,
    };
    routes::all(&api)
        .into_router()
        .method_not_allowed_fallback(async || ApiError::method())
        .fallback(missing::answer)
        .layer(from_fn_with_state(guard, outermost))
        .with_state(api)
}

/// What every request passes, and every answer. One layer, because each costs some allocations.
async fn outermost(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let wants_gzip = compress::is_wanted(&request);
    let response = guard::guard(&guard, request, next).await;
    compress::compress(response, wants_gzip)
}
