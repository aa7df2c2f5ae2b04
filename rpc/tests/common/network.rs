//! Three servers on a simulated network, and a client of them.

use std::array;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drover_rpc::client::{Client, Connector};
use drover_rpc::connection::{Handler, Limits};
use drover_rpc::msgpack::encode;
use drover_rpc::servers::{Backoff, Servers};
use drover_rpc::types::query::NodeClientAllocs;
use turmoil::net::{TcpListener, TcpStream};
use turmoil::{Builder, Sim};

use super::peer::Peer;
use super::server::{Does, answer};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const TICK: Duration = Duration::from_millis(10);
pub(crate) const NAMES: [&str; 3] = ["server-1", "server-2", "server-3"];

/// TCP over the simulated network.
pub(crate) struct Simulated;

impl Connector for Simulated {
    type Io = TcpStream;

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}

/// What a server did, and how it is.
#[derive(Default)]
pub(crate) struct Server {
    /// The methods that it was asked for.
    asked: Mutex<Vec<String>>,
    connections: AtomicU32,
    /// Without a leader it refuses.
    pub(crate) leaderless: AtomicBool,
    /// It takes calls, and does not answer.
    pub(crate) stuck: AtomicBool,
    /// The last connection.
    peer: Mutex<Option<Peer>>,
    /// How long it takes to keep events.
    keeps_after: Duration,
}

impl Server {
    pub(crate) fn asked(&self, method: &str) -> usize {
        let asked = self.asked.lock().expect("not poisoned");
        asked.iter().filter(|one| *one == method).count()
    }

    pub(crate) fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    /// The node that connected last.
    pub(crate) fn peer(&self) -> Peer {
        let peer = self.peer.lock().expect("not poisoned").clone();
        peer.expect("a connection")
    }

    fn does(&self, method: &str) -> Does {
        let mut asked = self.asked.lock().expect("not poisoned");
        asked.push(method.to_owned());
        if self.stuck.load(Ordering::Relaxed) {
            return Does::Nothing;
        }
        if self.leaderless.load(Ordering::Relaxed) && method != "Status.Ping" {
            return Does::Error("rpc error: No cluster leader");
        }
        let allocs = NodeClientAllocs {
            index: 7,
            ..NodeClientAllocs::default()
        };
        match method {
            "Node.GetClientAllocs" => Does::Reply(20 * SECOND, encode(&allocs).expect("a reply")),
            "Node.EmitEvents" => Does::Reply(self.keeps_after, vec![0x80]),
            // Those of a region that is not reached.
            "Status.Leader" => Does::Nothing,
            _ => Does::empty(),
        }
    }
}

pub(crate) async fn serve(server: Arc<Server>) -> turmoil::Result {
    let listener = TcpListener::bind("0.0.0.0:4647").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        server.connections.fetch_add(1, Ordering::Relaxed);
        let (peer, incoming, _) = Peer::start(stream);
        *server.peer.lock().expect("not poisoned") = Some(peer);
        let server = server.clone();
        tokio::spawn(answer(incoming, move |method, _| server.does(method)));
    }
}

/// Three servers and a network.
pub(crate) struct World<'a> {
    pub(crate) sim: Sim<'a>,
    pub(crate) servers: [Arc<Server>; 3],
}

/// Servers that keep events after so long.
pub(crate) fn world<'a>((tick, keeps_after): (Duration, Duration), seed: u64) -> World<'a> {
    let mut sim = Builder::new()
        .simulation_duration(3600 * SECOND)
        .tick_duration(tick)
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(50))
        .tcp_capacity(4096)
        .rng_seed(seed)
        .build();
    let server = |_| Server {
        keeps_after,
        ..Server::default()
    };
    let servers: [Arc<Server>; 3] = array::from_fn(|it| Arc::new(server(it)));
    for (name, server) in NAMES.iter().zip(&servers) {
        let server = server.clone();
        sim.host(*name, move || serve(server.clone()));
    }
    World { sim, servers }
}

/// A client that shuffles its servers by this seed.
pub(crate) fn client_of<H: Handler>(node: Arc<H>, seed: u64) -> Arc<Client<Simulated, H>> {
    let names = NAMES.map(|name| format!("{name}:4647")).into();
    let servers = Servers::new(names, Backoff::default(), seed);
    let limits = Limits::default();
    Arc::new(Client::new(Simulated, node, servers, limits))
}

/// A client that knows the first server alone.
pub(crate) fn client_of_first<H: Handler>(node: Arc<H>) -> Arc<Client<Simulated, H>> {
    let first = vec![format!("{}:4647", NAMES[0])];
    let servers = Servers::new(first, Backoff::default(), 11);
    Arc::new(Client::new(Simulated, node, servers, Limits::default()))
}

/// The number of the server that the client is connected to.
pub(crate) fn at<H: Handler>(client: &Client<Simulated, H>) -> usize {
    let server = client.server().expect("a connection");
    let mut names = NAMES.iter();
    let is_it = |name: &&str| server == format!("{name}:4647");
    names.position(is_it).expect("one of them")
}

/// How many connections servers saw in all.
pub(crate) fn connections(servers: &[Arc<Server>; 3]) -> u32 {
    servers.iter().map(|server| server.connections()).sum()
}
