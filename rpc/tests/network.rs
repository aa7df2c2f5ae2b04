//! The client over a simulated network: servers that are cut off, killed, slow, without a leader, or lie.

#![allow(clippy::expect_used, reason = "a test may panic")]

mod common;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::Dice;
use common::handler::{LONG, Node};
use common::network::{
    NAMES, SECOND, Server, Simulated, TICK, World, at, client_of, client_of_first, connections,
    serve,
};
use common::server::call;
use drover_rpc::client::Client;
use drover_rpc::connection::Limits;
use drover_rpc::error::{Error, ServerErrorKind};
use drover_rpc::servers::{Backoff, Servers};
use drover_rpc::types::query::{Empty, NodeGetClientAllocs, StatusPing};
use drover_rpc::types::registration::{NodeEmitEvents, NodeUpdateStatus};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};
use turmoil::net::TcpListener;
use turmoil::{Builder, Sim};

fn world<'a>(tick: Duration, seed: u64) -> World<'a> {
    common::network::world((tick, 5 * SECOND), seed)
}

fn client() -> Arc<Client<Simulated, Node>> {
    client_of(Arc::new(Node), 11)
}

/// The number of a server that is to be killed.
type Kill = Arc<Mutex<Option<usize>>>;

/// Runs to the end, and kills whom it is told to kill.
fn run_and_kill(mut sim: Sim<'_>, kill: &Kill) -> turmoil::Result {
    while !sim.step()? {
        if let Some(server) = kill.lock().expect("not poisoned").take() {
            sim.crash(NAMES[server]);
        }
    }
    Ok(())
}

#[test]
fn calls_share_one_connection() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 1);
    sim.client("node", async move {
        let client = client();
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.call(&StatusPing::default(), 10 * SECOND).await })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await?, Ok(Empty {}));
        }
        assert_eq!(connections(&servers), 1);
        Ok(())
    });
    sim.run()
}

/// A connection that is cut without a word: a call ends at its deadline, and the next one is elsewhere.
#[test]
fn partitioned_server_is_left_by_the_next_call() -> turmoil::Result {
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
fn query_of_killed_server_is_retried_at_another() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 3);
    let kill = Kill::default();
    let killed = kill.clone();
    let query = servers.clone();
    sim.client("node", async move {
        let client = client();
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
    run_and_kill(sim, &kill)
}

/// Events would be there twice: whoever sends them decides.
#[test]
fn call_that_is_not_idempotent_is_not_repeated() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 4);
    let kill = Kill::default();
    let killed = kill.clone();
    sim.client("node", async move {
        let client = client();
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
    run_and_kill(sim, &kill)
}

/// An election costs no connection, and so no log follower and no exec session.
#[test]
fn call_during_election_waits_on_the_same_connection() -> turmoil::Result {
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
fn server_without_leader_is_left_after_retries() -> turmoil::Result {
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
        let message = error.to_string();
        assert!(message.contains("No cluster leader"), "{message}");
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
fn stuck_server_is_left_after_some_calls() -> turmoil::Result {
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
fn calls_without_servers_fail_in_time_until_servers_return() -> turmoil::Result {
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
        assert!(connections(&servers) < 10);
        Ok(())
    });
    sim.run()
}

/// Losses with replies between them are no failures in a row, which make it wait ever longer.
#[test]
fn server_that_replies_after_each_loss_is_connected_to_again_at_once() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 16);
    sim.client("node", async move {
        let client = client_of_first(Arc::new(Node));
        for loss in 0..8 {
            let ping = client.call(&StatusPing::default(), 2 * SECOND).await;
            assert_eq!(ping, Ok(Empty {}), "after {loss} losses");
            let sending = client.clone();
            let events = NodeEmitEvents::default();
            let sending = tokio::spawn(async move { sending.call(&events, 60 * SECOND).await });
            while servers[0].asked("Node.EmitEvents") == loss {
                sleep(TICK).await;
            }
            servers[0].peer().close();
            let lost = sending.await?;
            assert!(
                matches!(lost, Err(Error::ConnectionLost { .. })),
                "{lost:?}"
            );
        }
        Ok(())
    });
    sim.run()
}

/// A query that waits at a server that is cut off, or whose connection is half open: what the node says arrives, what
/// the server says does not.
#[test]
fn query_that_waits_where_nothing_comes_from_any_more_is_asked_elsewhere() -> turmoil::Result {
    let troubles = [
        (
            9,
            turmoil::partition_oneway as fn(&'static str, &'static str),
        ),
        (14, turmoil::partition),
    ];
    for (seed, cut) in troubles {
        let World { mut sim, servers } = world(TICK, seed);
        sim.client("node", async move {
            let client = client();
            client.call(&StatusPing::default(), 10 * SECOND).await?;
            let first = at(&client);
            let asking = client.clone();
            let query = NodeGetClientAllocs::default();
            let asking = tokio::spawn(async move { asking.call(&query, 310 * SECOND).await });
            sleep(SECOND).await;
            cut(NAMES[first], "node");
            // No deadline of a call, but silence ends it; then it is asked elsewhere.
            let began = Instant::now();
            assert_eq!(asking.await??.index, 7);
            let silence = Limits::default().idle_timeout + 30 * SECOND;
            assert!(began.elapsed() < silence, "{:?}", began.elapsed());
            let second = at(&client);
            assert_ne!(second, first);
            // It stays there when the first one is back.
            turmoil::repair("node", NAMES[first]);
            client.call(&StatusPing::default(), 10 * SECOND).await?;
            assert_eq!(at(&client), second);
            assert_eq!(servers[first].connections(), 1);
            Ok(())
        });
        sim.run()?;
    }
    Ok(())
}

/// A server that does not answer others may not have the news either, such as one that is cut off from its peers.
#[test]
fn query_that_waits_at_a_server_that_was_left_is_asked_elsewhere() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 15);
    sim.client("node", async move {
        let client = client();
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        servers[first].stuck.store(true, Ordering::Relaxed);
        let asking = client.clone();
        let query = NodeGetClientAllocs::default();
        let asking =
            tokio::spawn(async move { asking.call_and_follow(&query, 310 * SECOND).await });
        sleep(SECOND).await;
        assert_eq!(servers[first].asked("Node.GetClientAllocs"), 1);
        let beat = NodeUpdateStatus::default();
        assert!(client.call_or_leave(&beat, 6 * SECOND).await.is_err());
        let began = Instant::now();
        assert_eq!(asking.await??.index, 7);
        assert!(began.elapsed() < 30 * SECOND, "{:?}", began.elapsed());
        Ok(())
    });
    sim.run()
}

/// The other half: the server's pings arrive, the node's calls do not.
#[test]
fn call_that_does_not_arrive_is_retried_at_another_server() -> turmoil::Result {
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
fn server_call_of_90_s_is_answered() -> turmoil::Result {
    let World { mut sim, servers } = world(TICK, 10);
    sim.client("node", async move {
        let client = client();
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        let peer = servers[first].peer();
        let began = Instant::now();
        let reply = call(&peer, "Allocations.GarbageCollectAll", &[0x80]).await;
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
            let client = client();
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
fn address_that_speaks_another_protocol_is_left() -> turmoil::Result {
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
        let known = Servers::new(vec!["server-2:4647".to_owned()], Backoff::default(), 1);
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
