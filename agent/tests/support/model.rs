//! A model of a server of a cluster, whose only node is an agent.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "every test has its own copy of it, and uses a part"
)]

#[path = "../../../rpc/tests/common/mod.rs"]
pub mod wire;

use drover_rpc::msgpack::Value;
use drover_rpc::types::registration::{NodeUpdateReply, ServerInfo};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::timeout;
use wire::peer::Peer;
use wire::server::{Does, answer};

use crate::support::TIMEOUT;

/// The server. It ends with its runtime.
pub struct Model {
    pub address: String,
    peers: mpsc::UnboundedReceiver<Peer>,
    pub runtime: Runtime,
}

impl Model {
    /// A server that does this with a call, which has this method and body; it has this address.
    pub fn start(
        does: impl Fn(&str, Value, &str) -> Does + Clone + Send + Sync + 'static,
    ) -> Model {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (connected, peers) = mpsc::unbounded_channel();
        let own = address.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (peer, incoming, _) = Peer::start(stream);
                let (address, does) = (own.clone(), does.clone());
                tokio::spawn(answer(incoming, move |method, body| {
                    does(method, body, &address)
                }));
                drop(connected.send(peer));
            }
        });
        Model {
            address,
            peers,
            runtime,
        }
    }

    /// The next connection of the node.
    pub fn connected(&mut self) -> Peer {
        let peer = self.runtime.block_on(self.peers.recv());
        peer.expect("a connection")
    }

    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime
            .block_on(async { timeout(TIMEOUT, work).await.expect("it takes too long") })
    }
}

/// What a server answers a node that registers or beats: it is alive, and knows this server.
pub fn registered(address: &str) -> Does {
    Does::reply(&NodeUpdateReply {
        heartbeat_ttl: 10_000_000_000,
        servers: vec![ServerInfo {
            rpc_advertise_addr: address.to_owned(),
            ..ServerInfo::default()
        }],
        ..NodeUpdateReply::default()
    })
}
