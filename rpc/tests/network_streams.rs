//! Long calls over a simulated network, in both directions: what becomes of them when the network parts in their midst,
//! when somebody reads slowly, and when a server takes its time.

#![allow(clippy::expect_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::network::{
    NAMES, SECOND, Server, TICK, World, at, client_of, client_of_first, connections,
};
use common::peer::PeerStream;
use drover_rpc::connection::{Answer, Handler, InboundCall, Input, Limits, Output};
use drover_rpc::error::Error;
use drover_rpc::types::query::StatusPing;
use drover_rpc::types::registration::{NodeEmitEvents, NodeUpdateStatus};
use drover_rpc::types::status::StatusLeader;
use drover_rpc::types::stream::{FileSystemLogs, StreamAck, StreamHeader, StreamOut};
use tokio::time::{Instant, sleep};

/// How long a server takes that takes its time.
const LATE: Duration = Duration::from_secs(90);

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

/// Follows the log of the node that is connected.
async fn follow(server: &Server) -> PeerStream {
    let mut logs = server.peer().open();
    logs.send(&[5]).await;
    let method = "FileSystem.Logs".to_owned();
    logs.object(&StreamHeader { method }).await;
    assert_eq!(logs.next().await, Some(StreamAck::default()));
    logs.object(&FileSystemLogs::default()).await;
    logs
}

fn world<'a>(seed: u64) -> World<'a> {
    common::network::world((TICK, LATE), seed)
}

/// How long a node takes at most to notice that nothing comes any more, and to ask elsewhere.
fn silence() -> Duration {
    Limits::default().idle_timeout + 30 * SECOND
}

#[test]
fn log_that_is_followed_ends_when_its_server_is_cut_off_and_is_followed_from_the_next()
-> turmoil::Result {
    let World { mut sim, servers } = world(2);
    sim.client("node", async move {
        let node: Arc<Node> = Arc::default();
        let client = client_of(node.clone(), 11);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let first = at(&client);
        let mut logs = follow(&servers[first]).await;
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
        let mut logs = follow(&servers[second]).await;
        for _ in 0..100 {
            assert!(logs.next::<StreamOut>().await.is_some());
        }
        assert_eq!(node.followers.load(Ordering::Relaxed), 1);
        Ok(())
    });
    sim.run()
}

/// A call waits on a connection that was left, and there is a new one to the same server when that
/// call fails.
#[test]
fn late_failure_on_a_connection_that_was_left_does_not_end_the_next_one() -> turmoil::Result {
    let World { mut sim, servers } = world(7);
    sim.client("node", async move {
        let client = client_of_first(Arc::<Node>::default());
        let server = &servers[0];
        let sending = client.clone();
        let sending = tokio::spawn(async move {
            let events = NodeEmitEvents::default();
            sending.call(&events, 600 * SECOND).await
        });
        while server.asked("Node.EmitEvents") == 0 {
            sleep(TICK).await;
        }
        let left = server.peer();
        server.stuck.store(true, Ordering::Relaxed);
        let beat = NodeUpdateStatus::default();
        assert!(client.call_or_leave(&beat, 6 * SECOND).await.is_err());
        server.stuck.store(false, Ordering::Relaxed);
        client.call(&beat, 10 * SECOND).await?;
        assert_eq!(server.connections(), 2);
        let mut logs = follow(server).await;
        assert!(logs.next::<StreamOut>().await.is_some());
        left.close();
        let late = sending.await?;
        assert!(
            matches!(late, Err(Error::ConnectionLost { .. })),
            "{late:?}"
        );
        client.call(&beat, 10 * SECOND).await?;
        assert_eq!(server.connections(), 2);
        // More than was under way before.
        for _ in 0..1000 {
            assert!(logs.next::<StreamOut>().await.is_some());
        }
        Ok(())
    });
    sim.run()
}

#[test]
fn reader_that_takes_nothing_holds_up_neither_calls_nor_other_readers() -> turmoil::Result {
    let World { mut sim, servers } = world(3);
    sim.client("node", async move {
        let client = client_of(Arc::<Node>::default(), 11);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let server = &servers[at(&client)];
        let mut slow = follow(server).await;
        slow.grants = false;
        let mut other = follow(server).await;
        // More than one stream may have under way.
        for _ in 0..1000 {
            assert!(other.next::<StreamOut>().await.is_some());
        }
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        assert_eq!(server.connections(), 1);
        Ok(())
    });
    sim.run()
}

#[test]
fn answer_that_comes_after_90_s_is_waited_for_on_the_same_connection() -> turmoil::Result {
    let World { mut sim, servers } = world(4);
    sim.client("node", async move {
        let client = client_of(Arc::<Node>::default(), 11);
        let began = Instant::now();
        client
            .call(&NodeEmitEvents::default(), 120 * SECOND)
            .await?;
        assert!(began.elapsed() >= LATE);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        assert_eq!(connections(&servers), 1);
        Ok(())
    });
    sim.run()
}

#[test]
fn failed_calls_for_others_leave_no_server() -> turmoil::Result {
    let World { mut sim, servers } = world(6);
    sim.client("node", async move {
        let client = client_of(Arc::<Node>::default(), 11);
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        let question = StatusLeader::default();
        for _ in 0..5 {
            let answer = client.call_for_others(&question, 8 * SECOND).await;
            assert!(answer.is_err(), "{answer:?}");
        }
        // Nor do they count among what the node itself waits for in vain.
        assert!(client.call(&question, 8 * SECOND).await.is_err());
        client.call(&StatusPing::default(), 10 * SECOND).await?;
        assert_eq!(connections(&servers), 1);
        Ok(())
    });
    sim.run()
}

#[test]
fn nodes_of_a_server_that_is_lost_spread_over_the_others() -> turmoil::Result {
    let World { mut sim, .. } = world(5);
    sim.client("node", async move {
        let clients: Vec<_> = (0..24)
            .map(|seed| client_of(Arc::<Node>::default(), seed))
            .collect();
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
