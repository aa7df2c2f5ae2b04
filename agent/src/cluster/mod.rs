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
//! | [`placed`], [`job`] | an allocation that servers placed here, and its job |
//! | [`report`] | what became of allocations, and events of the node |
//! | [`service`] | a service of an allocation |
//! | [`inbound`] | what servers ask of the node |

mod calls;
pub(crate) mod inbound;
mod job;
mod node;
mod placed;
mod report;
mod service;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::agent::Input;
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
use drover_rpc::msgpack::Secret;
use drover_rpc::servers::{Backoff, Servers};

use inbound::Inbound;
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
    /// A token that introduces it to servers that do not know it; empty for none.
    pub(crate) introduction: Secret,
}

/// Makes connections for calls.
#[derive(Debug)]
struct Connections(Arc<dyn Connect>);

impl Connector for Connections {
    type Io = Box<dyn Connection>;

    async fn connect(&self, address: &str) -> std::io::Result<Box<dyn Connection>> {
        self.0.connect(address).await
    }
}

/// The servers of a cluster. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cluster(Arc<Inner>);

struct Inner {
    node: NodeIdentity,
    under_way: Mutex<BTreeMap<Op, AbortHandle>>,
    client: Client<Connections, Inbound>,
}

impl Cluster {
    /// The cluster of these servers (`HOST:PORT`), for this node, and who answers what they ask of it.
    pub(crate) fn new(
        node: NodeIdentity,
        servers: Vec<String>,
        connect: Arc<dyn Connect>,
        inbound: Inbound,
    ) -> Cluster {
        let seed = u64::try_from(facts::random() & u128::from(u64::MAX)).unwrap_or_default();
        let servers = Servers::new(servers, Backoff::default(), seed);
        let client = Client::new(
            Connections(connect),
            Arc::new(inbound),
            servers,
            Limits::default(),
        );
        let under_way = Mutex::default();
        Cluster(Arc::new(Inner {
            node,
            under_way,
            client,
        }))
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
                let (cluster, inbox) = (self.clone(), inbox.clone());
                let mut under_way = self.under_way();
                // It cannot remove itself before it is there: the lock is held.
                let calling = tokio::spawn(async move {
                    let result = cluster.call(credentials, call).await;
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
