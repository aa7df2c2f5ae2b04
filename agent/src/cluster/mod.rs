//! The cluster whose node this agent is, seen from its side of the wire: the core's calls are put into the
//! protocol's form and made, and what servers answer is put into the core's.
//!
//! When what is called, and what follows from an answer, the core decides (`drover_core::server`). Which server is
//! called, and over which connection, `drover_rpc` does.
//!
//! | | |
//! |---|---|
//! | [`calls`] | one call, from the core's form to its answer |
//! | [`node`] | the node as it registers |
//! | [`placed`], [`job`], [`jobs`] | an allocation that servers placed here, its job, and the jobs that were read lately |
//! | [`elsewhere`], [`to_nodes`] | what servers know of allocations of other nodes, and how those nodes are reached |
//! | [`introduction`] | what introduces the node to servers that do not know it |
//! | [`report`] | what became of allocations, and events of the node |
//! | [`service`] | a service of an allocation |
//! | [`tasks`], [`questions`] | what servers do for the tasks that they placed here, and answer to their templates |
//! | [`status`] | who the servers are, for users of the node |
//! | [`tokens`] | whose a token of the cluster is, and what it may do |
//! | [`inbound`] | what servers ask of the node |

mod calls;
mod elsewhere;
pub(crate) mod inbound;
pub(crate) mod introduction;
mod job;
mod jobs;
#[cfg(test)]
mod network_tests;
mod node;
mod placed;
mod questions;
mod report;
mod service;
mod status;
mod tasks;
#[cfg(test)]
mod tests;
mod to_nodes;
#[cfg(test)]
mod token_tests;
mod tokens;
pub mod untrusted;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::agent::Input;
use drover_core::cluster::{CallKind, Credentials};
use drover_core::effect::ServerEffect;
use drover_core::ids::NodeId;
use drover_core::input::ServerInput;
use drover_core::op::Op;
use drover_io_real::cluster::CallServers;
use drover_io_real::connect::{Connect, Connection};
use drover_io_real::driver::Inbox;
use drover_io_real::facts;
use drover_rpc::client::{Client, Connector};
use drover_rpc::connection::Limits;
use drover_rpc::error::{Error, ServerErrorKind};
use drover_rpc::msgpack::Secret;
use drover_rpc::servers::{Backoff, Servers};
use drover_rpc::tls::Tls;
use drover_tls::Current;
use rustls::ClientConfig;

use inbound::Inbound;
use introduction::Introduction;
pub(crate) use to_nodes::ToNodes;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// Who this node is for servers.
#[derive(Clone, Debug)]
pub(crate) struct NodeIdentity {
    /// Its id.
    pub(crate) id: NodeId,
    /// Its secret, a UUID.
    pub(crate) secret: Secret,
    /// The region of its servers.
    pub(crate) region: String,
    /// Whether its own API speaks TLS.
    pub(crate) tls: bool,
    /// What introduces it to servers that do not know it.
    pub(crate) introduction: Introduction,
}

/// Makes connections over a network, and logs why there are none.
#[derive(Debug)]
struct Network {
    connect: Arc<dyn Connect>,
    reported: ReportedErrors,
}

/// The failures that were logged: each is logged once. Those of connections count until servers answer, and what
/// servers refused until they take a call of the same kind.
#[derive(Clone, Debug, Default)]
struct ReportedErrors(Arc<Mutex<BTreeMap<String, Option<CallKind>>>>);

/// How many different ones are logged.
const MAX_REPORTED: usize = 64;

impl ReportedErrors {
    fn failed(&self, error: &Error) {
        self.report_once(error, None);
    }

    /// A call was made and is worth nothing. What passes by itself is not logged, nor what the node mends at once.
    fn refused(&self, called: CallKind, error: &Error) {
        let lasts = match error.server_error_kind() {
            Some(
                ServerErrorKind::NoLeader
                | ServerErrorKind::NotReady
                | ServerErrorKind::UnknownNode
                | ServerErrorKind::NodeDown
                | ServerErrorKind::UnknownService,
            ) => false,
            Some(
                ServerErrorKind::PermissionDenied
                | ServerErrorKind::TokenNotFound
                | ServerErrorKind::SecretMismatch
                | ServerErrorKind::NoPathToRegion
                | ServerErrorKind::MissingRegion
                | ServerErrorKind::UnknownMethod
                | ServerErrorKind::UndecodableRequest
                | ServerErrorKind::Coded(_)
                | ServerErrorKind::Other,
            ) => true,
            None => matches!(error, Error::InvalidReply { .. }),
        };
        if lasts {
            self.report_once(error, Some(called));
        }
    }

    fn report_once(&self, error: &Error, refused: Option<CallKind>) {
        let text = error.to_string();
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() < MAX_REPORTED && !reported.contains_key(&text) {
            tracing::warn!("{text}");
            reported.insert(text, refused);
        }
    }

    /// Servers took a call.
    fn succeeded(&self, called: CallKind) {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = reported.len();
        reported.retain(|_, refused| refused.is_some_and(|it| it != called));
        if reported.len() < before {
            tracing::info!("servers answer again");
        }
    }
}

impl Connector for Network {
    type Io = Box<dyn Connection>;

    async fn connect(&self, address: &str) -> std::io::Result<Box<dyn Connection>> {
        self.connect.connect(address).await
    }

    fn failed(&self, error: &Error) {
        self.reported.failed(error);
    }
}

/// Makes connections for calls.
#[derive(Debug)]
enum Connections {
    Plain(Network),
    Encrypted(Tls<Network>),
}

impl Connector for Connections {
    type Io = Box<dyn Connection>;

    async fn connect(&self, address: &str) -> std::io::Result<Box<dyn Connection>> {
        match self {
            Connections::Plain(network) => network.connect(address).await,
            Connections::Encrypted(tls) => Ok(Box::new(tls.connect(address).await?)),
        }
    }

    fn failed(&self, error: &Error) {
        match self {
            Connections::Plain(network) => network.failed(error),
            Connections::Encrypted(tls) => tls.failed(error),
        }
    }
}

/// The servers of a cluster. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cluster(Arc<Inner>);

struct Inner {
    node: NodeIdentity,
    under_way: Mutex<BTreeMap<Op, AbortHandle>>,
    /// By what servers knew the node when the core called them last.
    credentials: Mutex<Credentials>,
    /// The drivers of the node as it registered last.
    drivers: node::Dated,
    /// Turns of questions that wait at servers for news.
    waiting: Semaphore,
    /// Turns of those that wait there for the end of an allocation.
    elsewhere: Semaphore,
    /// Turns of users who ask who the servers are.
    status: Semaphore,
    /// The jobs of allocations that came lately.
    jobs: jobs::Jobs,
    reported: ReportedErrors,
    client: Client<Connections, Inbound>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let node = &self.0.node;
        f.debug_struct("Cluster")
            .field("node", node)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// The cluster of these servers (`HOST:PORT`), for this node, and who answers what they ask of it; over TLS if it
    /// is given.
    ///
    /// # Errors
    /// The node's region cannot be a part of a server's name.
    pub(crate) fn new(
        node: NodeIdentity,
        servers: Vec<String>,
        connect: Arc<dyn Connect>,
        inbound: Inbound,
        tls: Option<Current<ClientConfig>>,
    ) -> Result<Cluster, String> {
        let seed = u64::try_from(facts::random() & u128::from(u64::MAX)).unwrap_or_default();
        Cluster::seeded(node, servers, connect, inbound, tls, seed)
    }

    /// The same; this decides which of the servers is asked.
    fn seeded(
        node: NodeIdentity,
        servers: Vec<String>,
        connect: Arc<dyn Connect>,
        inbound: Inbound,
        tls: Option<Current<ClientConfig>>,
        seed: u64,
    ) -> Result<Cluster, String> {
        let reported = ReportedErrors::default();
        let network = Network {
            connect,
            reported: reported.clone(),
        };
        let connections = match tls {
            None => Connections::Plain(network),
            Some(tls) => Connections::Encrypted(Tls::new(network, &node.region, tls)?),
        };
        let servers = Servers::new(servers, Backoff::default(), seed);
        let usual = Limits::default();
        let limits = Limits {
            // What waits for news keeps no other call from being made.
            outbound_calls: usual.outbound_calls
                + questions::MAX_WAITING
                + elsewhere::AT_ONCE
                + status::AT_ONCE,
            ..usual
        };
        let client = Client::new(connections, Arc::new(inbound), servers, limits);
        let under_way = Mutex::default();
        Ok(Cluster(Arc::new(Inner {
            node,
            under_way,
            credentials: Mutex::new(Credentials::None),
            drivers: node::Dated::default(),
            waiting: Semaphore::new(questions::MAX_WAITING),
            elsewhere: Semaphore::new(elsewhere::AT_ONCE),
            status: Semaphore::new(status::AT_ONCE),
            jobs: jobs::Jobs::default(),
            reported,
            client,
        })))
    }

    fn credentials(&self) -> MutexGuard<'_, Credentials> {
        let credentials = self.0.credentials.lock();
        credentials.unwrap_or_else(PoisonError::into_inner)
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeMap<Op, AbortHandle>> {
        // Nothing that holds the lock can panic half way.
        let under_way = self.0.under_way.lock();
        under_way.unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallServers for Cluster {
    fn carry_out(&self, effect: ServerEffect, inbox: &Inbox) {
        match effect {
            ServerEffect::Call {
                op,
                credentials,
                call,
            } => {
                let (cluster, inbox, called) = (self.clone(), inbox.clone(), call.kind());
                self.credentials().clone_from(&credentials);
                let mut under_way = self.under_way();
                // It cannot remove itself before it is there: the lock is held.
                let calling = tokio::spawn(async move {
                    let result = cluster.call(credentials, call).await;
                    if result.is_ok() {
                        cluster.0.reported.succeeded(called);
                    }
                    cluster.under_way().remove(&op);
                    let answered = ServerInput::Answered { op, result };
                    inbox.deliver(Input::Server(answered));
                });
                under_way.insert(op, calling.abort_handle());
            }
            ServerEffect::Cancel { op } => {
                if let Some(calling) = self.under_way().remove(&op) {
                    calling.abort();
                }
            }
            ServerEffect::Servers(all) => {
                let all: Vec<String> = all.iter().map(ToString::to_string).collect();
                self.0.client.update_servers(&all);
            }
        }
    }
}
