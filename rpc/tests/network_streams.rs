//! Long calls over a simulated network, in both directions: what becomes of them when the network parts in their midst,
//! when somebody reads slowly, and when a server takes its time.

#![allow(clippy::expect_used, reason = "a test may panic")]

mod common;

use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::peer::{Peer, PeerStream};
use common::server::{Does, answer};
use drover_rpc::client::{Client, Connector};
use drover_rpc::connection::{Answer, Handler, InboundCall, Input, Limits, Output};
use drover_rpc::msgpack::encode;
use drover_rpc::servers::{Backoff, Servers};
use drover_rpc::types::query::{NodeClientAllocs, NodeGetClientAllocs, StatusPing};
use drover_rpc::types::registration::{NodeEmitEvents, NodeUpdateStatus};
use drover_rpc::types::status::StatusLeader;
use drover_rpc::types::stream::{FileSystemLogs, StreamAck, StreamHeader, StreamOut};
use tokio::time::{Instant, sleep};
use turmoil::net::{TcpListener, TcpStream};
use turmoil::{Builder, Sim};

const SECOND: Duration = Duration::from_secs(1);
const NAMES: [&str; 3] = ["server-1", "server-2", "server-3"];

/// How long a server takes that takes its time.
const LATE: Duration = Duration::from_secs(90);

struct Simulated;

impl Connector for Simulated {
    type Io = TcpStream;

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}

/// A node that has one log, which has no end.
#[derive(Default)]
struct Node {
    /// How many follow it.
    followers: AtomicUsize,
}

struct Following<'a>(&'a AtomicUsize);

impl Drop for Following<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Handler for Node {
    async fn call(&self, _: InboundCall) -> Answer {
        Answer::UnknownMethod
    }

    fn has_stream(&self, method: &str) -> bool {
        method == "FileSystem.Logs"
    }

    async fn stream(&self, _: InboundCall, input: &mut Input, output: &mut Output) {
        self.followers.fetch_add(1, Ordering::Relaxed);
        let _following = Following(&self.followers);
        let sending = async {
            while output.send(vec![b'x'; 1024]).await.is_ok() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = sending => {}
            _ = input.end() => {}
        }
    }
}

#[derive(Default)]
struct Server {
    connections: AtomicU32,
    /// The last connection.
    peer: Mutex<Option<Peer>>,
}

impl Server {
    /// Follows the log of the node that is connected.
    async fn follow(&self) -> PeerStream {
        let peer = self.peer.lock().expect("not poisoned").clone();
        let mut logs = peer.expect("a connection").open();
        logs.send(&[5]).await;
        let method = "FileSystem.Logs".to_owned();
        logs.object(&StreamHeader { method }).await;
        assert_eq!(logs.next().await, Some(StreamAck::default()));
        logs.object(&FileSystemLogs::default()).await;
        logs
    }
}

fn does(method: &str) -> Does {
    let allocs = NodeClientAllocs {
        index: 7,
        ..NodeClientAllocs::default()
    };
    match method {
        "Node.GetClientAllocs" => Does::Reply(20 * SECOND, encode(&allocs).expect("a reply")),
        "Node.EmitEvents" => Does::Reply(LATE, vec![0x80]),
        // Those of a region that is not reached.
        "Status.Leader" => Does::Nothing,
        _ => Does::empty(),
    }
}

async fn serve(server: Arc<Server>) -> turmoil::Result {
    let listener = TcpListener::bind("0.0.0.0:4647").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        server.connections.fetch_add(1, Ordering::Relaxed);
        let (peer, incoming, _) = Peer::start(stream);
        *server.peer.lock().expect("not poisoned") = Some(peer);
        tokio::spawn(answer(incoming, |method, _| does(method)));
    }
}

fn world<'a>(seed: u64) -> (Sim<'a>, [Arc<Server>; 3]) {
    let mut sim = Builder::new()
        .simulation_duration(3600 * SECOND)
        .tick_duration(Duration::from_millis(10))
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(50))
        .tcp_capacity(4096)
        .rng_seed(seed)
        .build();
    let servers: [Arc<Server>; 3] = Default::default();
    for (name, server) in NAMES.iter().zip(&servers) {
        let server = server.clone();
        sim.host(*name, move || serve(server.clone()));
    }
    (sim, servers)
}

/// A client of a node that shuffles its servers by this seed.
fn client(node: &Arc<Node>, seed: u64) -> Arc<Client<Simulated, Node>> {
    let names = NAMES.map(|name| format!("{name}:4647")).into();
    let servers = Servers::new(names, Backoff::default(), seed);
    let limits = Limits::default();
    Arc::new(Client::new(Simulated, node.clone(), servers, limits))
}

/// The number of the server that the client is connected to.
fn at(client: &Client<Simulated, Node>) -> usize {
    let server = client.server().expect("a connection");
    let mut names = NAMES.iter();
    let is_it = |name: &&str| server == format!("{name}:4647");
    names.position(is_it).expect("one of them")
}

/// How long a node takes at most to notice that nothing comes any more, and to ask elsewhere.
fn silence() -> Duration {
    Limits::default().idle_timeout + 30 * SECOND
}

#[test]
fn query_that_waits_at_a_server_that_is_cut_off_is_asked_elsewhere() -> turmoil::Result {
    let (mut sim, servers) = world(1);
    sim.client("node", async move {
        let client = client(&Arc::default(), 11);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        let asking = client.clone();
        let query = NodeGetClientAllocs::default();
        let asking = tokio::spawn(async move { asking.call(&query, 310 * SECOND).await });
        sleep(SECOND).await;
        turmoil::partition("node", NAMES[first]);
        let began = Instant::now();
        assert_eq!(asking.await??.index, 7);
        assert!(began.elapsed() < silence(), "{:?}", began.elapsed());
        let second = at(&client);
        assert_ne!(second, first);
        // It stays there when the first one is back.
        turmoil::repair("node", NAMES[first]);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        assert_eq!(at(&client), second);
        assert_eq!(servers[first].connections.load(Ordering::Relaxed), 1);
        Ok(())
    });
    sim.run()
}

#[test]
fn log_that_is_followed_ends_when_its_server_is_cut_off_and_is_followed_from_the_next()
-> turmoil::Result {
    let (mut sim, servers) = world(2);
    sim.client("node", async move {
        let node: Arc<Node> = Arc::default();
        let client = client(&node, 11);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        let mut logs = servers[first].follow().await;
        assert!(logs.next::<StreamOut>().await.is_some());
        assert_eq!(node.followers.load(Ordering::Relaxed), 1);
        turmoil::partition("node", NAMES[first]);
        sleep(silence()).await;
        assert_eq!(
            node.followers.load(Ordering::Relaxed),
            0,
            "it goes on for nobody"
        );
        client
            .call(&NodeUpdateStatus::default(), 30 * SECOND)
            .await?;
        let second = at(&client);
        assert_ne!(second, first);
        let mut logs = servers[second].follow().await;
        for _ in 0..100 {
            assert!(logs.next::<StreamOut>().await.is_some());
        }
        assert_eq!(node.followers.load(Ordering::Relaxed), 1);
        Ok(())
    });
    sim.run()
}

#[test]
fn reader_that_takes_nothing_holds_up_neither_calls_nor_other_readers() -> turmoil::Result {
    let (mut sim, servers) = world(3);
    sim.client("node", async move {
        let client = client(&Arc::default(), 11);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let server = &servers[at(&client)];
        let mut slow = server.follow().await;
        slow.grants = false;
        let mut other = server.follow().await;
        // More than one stream may have under way.
        for _ in 0..1000 {
            assert!(other.next::<StreamOut>().await.is_some());
        }
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        assert_eq!(server.connections.load(Ordering::Relaxed), 1);
        Ok(())
    });
    sim.run()
}

#[test]
fn answer_that_comes_after_90_s_is_waited_for_on_the_same_connection() -> turmoil::Result {
    let (mut sim, servers) = world(4);
    sim.client("node", async move {
        let client = client(&Arc::default(), 11);
        let began = Instant::now();
        client
            .call(&NodeEmitEvents::default(), 120 * SECOND)
            .await?;
        assert!(began.elapsed() >= LATE);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let connections = servers
            .iter()
            .map(|it| it.connections.load(Ordering::Relaxed));
        assert_eq!(connections.sum::<u32>(), 1);
        Ok(())
    });
    sim.run()
}

#[test]
fn what_others_ask_in_vain_leaves_no_server() -> turmoil::Result {
    let (mut sim, servers) = world(6);
    sim.client("node", async move {
        let client = client(&Arc::default(), 11);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let question = StatusLeader::default();
        for _ in 0..5 {
            let answer = client.call_for_others(&question, 8 * SECOND).await;
            assert!(answer.is_err(), "{answer:?}");
        }
        // Nor do they count among what the node itself waits for in vain.
        assert!(client.call(&question, 8 * SECOND).await.is_err());
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let connections = servers
            .iter()
            .map(|it| it.connections.load(Ordering::Relaxed));
        assert_eq!(connections.sum::<u32>(), 1);
        Ok(())
    });
    sim.run()
}

#[test]
fn nodes_of_a_server_that_is_lost_spread_over_the_others() -> turmoil::Result {
    let (mut sim, _servers) = world(5);
    sim.client("node", async move {
        let clients: Vec<_> = (0..24).map(|seed| client(&Arc::default(), seed)).collect();
        let mut before = Vec::new();
        for client in &clients {
            client.call(&StatusPing::default(), 10 * SECOND).await?;
            before.push(at(client));
        }
        turmoil::partition("node", NAMES[0]);
        let mut moved = [0; 3];
        for (client, first) in clients.iter().zip(before) {
            client
                .call(&NodeUpdateStatus::default(), 120 * SECOND)
                .await?;
            let now = at(client);
            match first {
                0 => moved[now] += 1,
                first => assert_eq!(now, first, "its server is well"),
            }
        }
        assert_eq!(moved[0], 0);
        assert!(moved[1] > 0 && moved[2] > 0, "{moved:?}");
        Ok(())
    });
    sim.run()
}
