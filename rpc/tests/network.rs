//! The client over a simulated network: servers that are cut off, killed, slow, without a leader, or lie.

#![allow(clippy::expect_used)]

mod common;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::Dice;
use common::handler::{LONG, Node};
use common::peer::Peer;
use common::server::{Does, answer, call};
use drover_rpc::client::{Client, Connector};
use drover_rpc::connection::Limits;
use drover_rpc::error::{Error, ServerErrorKind};
use drover_rpc::msgpack::encode;
use drover_rpc::servers::{Backoff, Servers};
use drover_rpc::types::query::{Empty, NodeClientAllocs, NodeGetClientAllocs, StatusPing};
use drover_rpc::types::registration::{NodeEmitEvents, NodeUpdateStatus};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};
use turmoil::net::{TcpListener, TcpStream};
use turmoil::{Builder, Sim};

const SECOND: Duration = Duration::from_secs(1);
const PORT: &str = "4647";

struct Simulated;

impl Connector for Simulated {
    type Io = TcpStream;

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}

/// What a server did, and how it is.
#[derive(Default)]
struct Server {
    /// The methods that it was asked for.
    asked: Mutex<Vec<String>>,
    connections: AtomicU32,
    /// Without a leader it refuses.
    leaderless: AtomicBool,
    /// It takes calls, and does not answer.
    stuck: AtomicBool,
    /// The last connection.
    peer: Mutex<Option<Peer>>,
}

impl Server {
    fn asked(&self, method: &str) -> usize {
        self.asked
            .lock()
            .expect("not poisoned")
            .iter()
            .filter(|one| *one == method)
            .count()
    }

    fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    fn does(&self, method: &str) -> Does {
        self.asked
            .lock()
            .expect("not poisoned")
            .push(method.to_owned());
        if self.stuck.load(Ordering::Relaxed) {
            return Does::Nothing;
        }
        if self.leaderless.load(Ordering::Relaxed) && method != "Status.Ping" {
            return Does::Error("rpc error: No cluster leader");
        }
        match method {
            "Node.GetClientAllocs" => Does::Reply(
                20 * SECOND,
                encode(&NodeClientAllocs {
                    index: 7,
                    ..Default::default()
                })
                .expect("a reply"),
            ),
            "Node.EmitEvents" => Does::Reply(5 * SECOND, vec![0x80]),
            _ => Does::empty(),
        }
    }
}

async fn serve(server: Arc<Server>) -> turmoil::Result {
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
struct World<'a> {
    sim: Sim<'a>,
    servers: [Arc<Server>; 3],
}

const NAMES: [&str; 3] = ["server-1", "server-2", "server-3"];

fn world<'a>(tick: Duration, seed: u64) -> World<'a> {
    let mut sim = Builder::new()
        .simulation_duration(3600 * SECOND)
        .tick_duration(tick)
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
    World { sim, servers }
}

fn client() -> Client<Simulated, Node> {
    let names = NAMES.map(|name| format!("{name}:{PORT}")).into();
    let servers = Servers::new(names, Backoff::default(), 11);
    Client::new(Simulated, Arc::new(Node), servers, Limits::default())
}

/// The number of the server that the client is connected to.
fn at(client: &Client<Simulated, Node>) -> usize {
    let server = client.server().expect("a connection");
    NAMES
        .iter()
        .position(|name| server == format!("{name}:{PORT}"))
        .expect("one of them")
}

const TICK: Duration = Duration::from_millis(10);

#[test]
fn calls_share_one_connection() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 1);
    sim.client("node", async move {
        let client = Arc::new(client());
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.call(&StatusPing::default(), 10 * SECOND).await })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await?, Ok(Empty {}));
        }
        assert_eq!(
            servers
                .iter()
                .map(|server| server.connections())
                .sum::<u32>(),
            1
        );
        Ok(())
    });
    sim.run()
}

/// A connection that is cut without a word: a call ends at its deadline, and the next one is elsewhere.
#[test]
fn a_server_that_is_cut_off_is_left_by_the_next_call() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 2);
    sim.client("node", async move {
        let client = client();
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        turmoil::partition("node", NAMES[first]);
        let began = Instant::now();
        let error = client.call(&NodeUpdateStatus::default(), 5 * SECOND).await;
        assert!(
            matches!(
                error,
                Err(Error::DeadlineExceeded {
                    acknowledged: false,
                    ..
                })
            ),
            "{error:?}"
        );
        assert_eq!(began.elapsed().as_secs(), 5);
        client
            .call(&NodeUpdateStatus::default(), 5 * SECOND)
            .await?;
        let second = at(&client);
        assert_ne!(first, second);
        // It is not left for the first one when that is back.
        turmoil::repair("node", NAMES[first]);
        sleep(60 * SECOND).await;
        client
            .call(&NodeUpdateStatus::default(), 5 * SECOND)
            .await?;
        assert_eq!(at(&client), second);
        assert_eq!(servers[second].connections(), 1);
        Ok(())
    });
    sim.run()
}

/// A blocking query outlives its server, since to ask twice is harmless.
#[test]
fn a_query_whose_server_is_killed_is_asked_elsewhere() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 3);
    let kill: Arc<Mutex<Option<usize>>> = Arc::default();
    let killed = kill.clone();
    let query = servers.clone();
    sim.client("node", async move {
        let client = Arc::new(client());
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        let asking = client.clone();
        let asking = tokio::spawn(async move {
            asking
                .call(&NodeGetClientAllocs::default(), 60 * SECOND)
                .await
        });
        sleep(5 * SECOND).await;
        assert_eq!(query[first].asked("Node.GetClientAllocs"), 1);
        *killed.lock().expect("not poisoned") = Some(first);
        let reply = asking.await??;
        assert_eq!(reply.index, 7);
        assert_ne!(at(&client), first);
        Ok(())
    });
    while !sim.step()? {
        if let Some(server) = kill.lock().expect("not poisoned").take() {
            sim.crash(NAMES[server]);
        }
    }
    Ok(())
}

/// Events would be there twice: whoever sends them decides.
#[test]
fn what_would_be_seen_twice_is_not_sent_again() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 4);
    let kill: Arc<Mutex<Option<usize>>> = Arc::default();
    let killed = kill.clone();
    sim.client("node", async move {
        let client = Arc::new(client());
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        let sending = client.clone();
        let sending =
            tokio::spawn(
                async move { sending.call(&NodeEmitEvents::default(), 60 * SECOND).await },
            );
        sleep(2 * SECOND).await;
        *killed.lock().expect("not poisoned") = Some(first);
        let error = sending.await?;
        assert!(
            matches!(error, Err(Error::ConnectionLost { sent: true, .. })),
            "{error:?}"
        );
        let sent: usize = servers
            .iter()
            .map(|server| server.asked("Node.EmitEvents"))
            .sum();
        assert_eq!(sent, 1);
        Ok(())
    });
    while !sim.step()? {
        if let Some(server) = kill.lock().expect("not poisoned").take() {
            sim.crash(NAMES[server]);
        }
    }
    Ok(())
}

/// An election costs no connection, and so no log follower and no exec session.
#[test]
fn an_election_is_waited_for_on_the_same_connection() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 5);
    sim.client("node", async move {
        let client = client();
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        servers[first].leaderless.store(true, Ordering::Relaxed);
        let elected = servers[first].clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(500)).await;
            elected.leaderless.store(false, Ordering::Relaxed);
        });
        client
            .call(&NodeUpdateStatus::default(), 10 * SECOND)
            .await?;
        assert_eq!(at(&client), first);
        assert_eq!(servers[first].connections(), 1);
        Ok(())
    });
    sim.run()
}

/// One that has lost its cluster for good is left.
#[test]
fn a_server_that_finds_no_leader_again_and_again_is_left() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 6);
    sim.client("node", async move {
        let client = client();
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        servers[first].leaderless.store(true, Ordering::Relaxed);
        client
            .call(&NodeUpdateStatus::default(), 10 * SECOND)
            .await?;
        assert_ne!(at(&client), first);
        for server in &servers {
            server.leaderless.store(true, Ordering::Relaxed);
        }
        let error = client.call(&NodeUpdateStatus::default(), 10 * SECOND).await;
        let error = error.expect_err("no leader anywhere");
        let said = error.to_string();
        assert!(said.contains("No cluster leader"), "{said}");
        assert!(
            matches!(&error, Error::Unavailable { .. })
                || error.server_error_kind() == Some(ServerErrorKind::NoLeader)
        );
        Ok(())
    });
    sim.run()
}

/// A server whose connections live and whose calls do not.
#[test]
fn a_server_that_is_stuck_is_left_after_some_calls() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 7);
    sim.client("node", async move {
        let client = client();
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        servers[first].stuck.store(true, Ordering::Relaxed);
        for _ in 0..3 {
            // Its pings come meanwhile.
            let error = client.call(&StatusPing::default(), 40 * SECOND).await;
            assert!(
                matches!(
                    error,
                    Err(Error::DeadlineExceeded {
                        acknowledged: true,
                        ..
                    })
                ),
                "{error:?}"
            );
        }
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        assert_ne!(at(&client), first);
        Ok(())
    });
    sim.run()
}

/// Heartbeats cannot wait for a server that takes them and does not answer: the second goes to another one, and is
/// answered before the node would count as lost, ten seconds after its time.
#[test]
fn server_that_does_not_answer_one_heartbeat_is_left() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 12);
    sim.client("node", async move {
        let client = client();
        let beat = NodeUpdateStatus::default();
        client.call_or_leave(&beat, 7 * SECOND).await?;
        let first = at(&client);
        servers[first].stuck.store(true, Ordering::Relaxed);
        let due = Instant::now();
        let error = client.call_or_leave(&beat, 6 * SECOND).await;
        let late = |error: &Error| {
            matches!(
                error,
                Error::DeadlineExceeded {
                    acknowledged: true,
                    ..
                }
            )
        };
        assert!(error.as_ref().is_err_and(late), "{error:?}");
        client.call_or_leave(&beat, 6 * SECOND).await?;
        assert_ne!(at(&client), first);
        assert!(due.elapsed() < 10 * SECOND, "{:?}", due.elapsed());
        Ok(())
    });
    sim.run()
}

/// Two of three servers vanish without a word. Whoever has no time to wait for the second is not sent there again.
#[test]
fn server_that_takes_longer_to_connect_than_there_is_time_is_not_tried_next() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 13);
    sim.client("node", async move {
        let client = client();
        let beat = NodeUpdateStatus::default();
        client.call_or_leave(&beat, 6 * SECOND).await?;
        let first = at(&client);
        let lost = (first + 1) % NAMES.len();
        turmoil::partition("node", NAMES[first]);
        turmoil::hold("node", NAMES[lost]);
        let mut failed = 0;
        while client.call_or_leave(&beat, 6 * SECOND).await.is_err() {
            failed += 1;
            assert!(failed <= 2, "one call for each that is lost");
        }
        assert_ne!(at(&client), first);
        assert_ne!(at(&client), lost);
        assert_eq!(servers[at(&client)].connections(), 1);
        Ok(())
    });
    sim.run()
}

/// Nobody is there for ten minutes: calls fail in time and say why, and it is not tried without end.
#[test]
fn when_all_servers_are_gone_calls_fail_in_time_until_they_are_back() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 8);
    sim.client("node", async move {
        let client = client();
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        for name in NAMES {
            turmoil::partition("node", name);
        }
        let began = Instant::now();
        while began.elapsed() < 600 * SECOND {
            let call = Instant::now();
            let error = client.call(&NodeUpdateStatus::default(), 20 * SECOND).await;
            let error = error.expect_err("nobody is there");
            assert!(
                matches!(
                    error,
                    Error::DeadlineExceeded { .. } | Error::Unavailable { .. }
                ),
                "{error:?}"
            );
            assert!(call.elapsed() < 21 * SECOND);
        }
        for name in NAMES {
            turmoil::repair("node", name);
        }
        client
            .call(&NodeUpdateStatus::default(), 30 * SECOND)
            .await?;
        assert!(
            servers
                .iter()
                .map(|server| server.connections())
                .sum::<u32>()
                < 10
        );
        Ok(())
    });
    sim.run()
}

/// Half-open: what the node says arrives, what the server says does not.
#[test]
fn a_connection_that_is_half_open_ends() -> turmoil::Result {
    let World { mut sim, .. } = world(TICK, 9);
    sim.client("node", async move {
        let client = Arc::new(client());
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        let asking = client.clone();
        let asking = tokio::spawn(async move {
            asking
                .call(&NodeGetClientAllocs::default(), 310 * SECOND)
                .await
        });
        sleep(SECOND).await;
        turmoil::partition_oneway(NAMES[first], "node");
        // No deadline of a call, but silence ends it; then it is asked elsewhere.
        let began = Instant::now();
        assert_eq!(asking.await??.index, 7);
        assert!(
            began.elapsed() < Limits::default().idle_timeout + 30 * SECOND,
            "{:?}",
            began.elapsed()
        );
        assert_ne!(at(&client), first);
        Ok(())
    });
    sim.run()
}

/// The other half: the server's pings arrive, the node's calls do not.
#[test]
fn a_call_that_does_not_arrive_is_made_elsewhere() -> turmoil::Result {
    let World { mut sim, .. } = world(TICK, 13);
    sim.client("node", async move {
        let client = client();
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        turmoil::partition_oneway("node", NAMES[first]);
        let began = Instant::now();
        client
            .call(&NodeUpdateStatus::default(), 60 * SECOND)
            .await?;
        assert!(began.elapsed() < Limits::default().acknowledge_timeout + 2 * SECOND);
        assert_ne!(at(&client), first);
        Ok(())
    });
    sim.run()
}

/// A server that gets no acknowledgement within 75 s closes the session.
#[test]
fn a_call_of_a_server_that_takes_90_s_is_answered() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 10);
    sim.client("node", async move {
        let client = client();
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        let peer = servers[first].peer.lock().expect("not poisoned").clone();
        let began = Instant::now();
        let reply = call(
            &peer.expect("a peer"),
            "Allocations.GarbageCollectAll",
            &[0x80],
        )
        .await;
        assert_eq!(reply.expect("a reply").0, "");
        assert!(began.elapsed() >= LONG);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        assert_eq!(servers[first].connections(), 1);
        Ok(())
    });
    sim.run()
}

/// Whatever happens to the network, a call ends in time, and when the network is well again, calls work.
#[test]
fn calls_end_in_time_in_any_network() -> turmoil::Result {
    for seed in (20..40).chain([352]) {
        let World { mut sim, .. } = world(Duration::from_millis(20), seed);
        sim.client("node", async move {
            let client = Arc::new(client());
            let mut dice = Dice(seed);
            let caller = client.clone();
            let calls = tokio::spawn(async move {
                for _ in 0..40 {
                    let began = Instant::now();
                    let reply = caller.call(&NodeUpdateStatus::default(), 5 * SECOND).await;
                    assert!(began.elapsed() < 6 * SECOND, "{reply:?}");
                    sleep(Duration::from_millis(200)).await;
                }
            });
            while !calls.is_finished() {
                let name = NAMES[dice.below(3)];
                match dice.below(5) {
                    0 => turmoil::partition("node", name),
                    1 => turmoil::partition_oneway(name, "node"),
                    2 => turmoil::partition_oneway("node", name),
                    3 => turmoil::hold("node", name),
                    _ => {
                        turmoil::release("node", name);
                        turmoil::repair("node", name);
                    }
                }
                sleep(Duration::from_millis(500)).await;
            }
            calls.await?;
            for name in NAMES {
                turmoil::release("node", name);
                turmoil::repair("node", name);
            }
            client
                .call(&NodeUpdateStatus::default(), 120 * SECOND)
                .await?;
            Ok(())
        });
        sim.run().map_err(|error| format!("seed {seed}: {error}"))?;
    }
    Ok(())
}

/// What answers at a server's address, and is none.
#[test]
fn what_is_no_server_is_left() -> turmoil::Result {
    let mut sim = Builder::new()
        .simulation_duration(600 * SECOND)
        .tick_duration(TICK)
        .build();
    sim.host("web", || async {
        let listener = TcpListener::bind("0.0.0.0:4647").await?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .await?;
        }
    });
    let server = Arc::new(Server::default());
    let real = server.clone();
    sim.host("server-1", move || serve(real.clone()));
    sim.client("node", async move {
        for seed in 0..4 {
            let names = vec!["web:4647".to_owned(), "server-1:4647".to_owned()];
            let servers = Servers::new(names, Backoff::default(), seed);
            let client = Client::new(Simulated, Arc::new(Node), servers, Limits::default());
            client.call(&StatusPing::default(), 30 * SECOND).await?;
            assert_eq!(client.server().as_deref(), Some("server-1:4647"));
        }
        let alone = Servers::new(vec!["web:4647".to_owned()], Backoff::default(), 1);
        let client = Client::new(Simulated, Arc::new(Node), alone, Limits::default());
        let error = client
            .call(&StatusPing::default(), 5 * SECOND)
            .await
            .expect_err("no server");
        assert!(error.to_string().contains("web:4647"), "{error}");
        let none = Servers::new(Vec::new(), Backoff::default(), 1);
        let client = Client::new(Simulated, Arc::new(Node), none, Limits::default());
        assert_eq!(
            client.call(&StatusPing::default(), SECOND).await,
            Err(Error::NoServers)
        );
        Ok(())
    });
    sim.run()
}

#[test]
fn servers_learned_from_a_heartbeat_are_found() -> turmoil::Result {
    let World { mut sim, .. } = world(TICK, 12);
    sim.client("node", async move {
        let known = Servers::new(vec![format!("server-2:{PORT}")], Backoff::default(), 1);
        let client = Client::new(Simulated, Arc::new(Node), known, Limits::default());
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        client.update_servers(&["server-1:4647".to_owned(), "server-2:4647".to_owned()]);
        assert_eq!(at(&client), 1, "the connection is kept");
        turmoil::partition("node", "server-2");
        drop(client.call(&StatusPing::default(), SECOND).await);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        assert_eq!(at(&client), 0);
        // The configured one is a way back, though no server names it.
        client.update_servers(&["server-1:4647".to_owned()]);
        turmoil::partition("node", "server-1");
        turmoil::repair("node", "server-2");
        drop(client.call(&StatusPing::default(), SECOND).await);
        client.call(&StatusPing::default(), 60 * SECOND).await?;
        assert_eq!(at(&client), 1);
        Ok(())
    });
    sim.run()
}
