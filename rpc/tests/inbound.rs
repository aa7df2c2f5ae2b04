//! Calls of a server that are large: how much it may send, and how long it may take over what it
//! gets. Time is simulated.

#![allow(clippy::expect_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::peer::{Peer, PeerStream};
use common::server::{CallHeader, call};
use drover_rpc::connection::{
    Answer, Connection, Handler, InboundCall, Input, Limits, Output, open,
};
use drover_rpc::msgpack::{Value, decode};
use drover_rpc::types::stream::{AllocationsExec, StreamAck, StreamHeader, StreamOut};
use tokio::time::sleep;

/// The length of a large reply: more than a stream takes that nobody reads.
const LARGE: usize = 1 << 20;

/// A node that replies at length, and whose exec sessions send back their command.
struct Node;

impl Handler for Node {
    async fn call(&self, call: InboundCall) -> Answer {
        match call.method.as_str() {
            "Node.Large" => Answer::reply(&Value::Text("x".repeat(LARGE))),
            _ => Answer::UnknownMethod,
        }
    }

    fn has_stream(&self, method: &str) -> bool {
        method == "Allocations.Exec"
    }

    async fn stream(&self, call: InboundCall, _: &mut Input, output: &mut Output) {
        let request: AllocationsExec = call.decode().expect("an exec session");
        drop(output.send(request.cmd.concat().into_bytes()).await);
    }
}

fn connected(limits: Limits) -> (Connection, Peer) {
    let (here, there) = tokio::io::duplex(64 << 10);
    let (peer, _, _) = Peer::start(there);
    let (node, work) = open(here, "server-1:4647", Arc::new(Node), limits);
    tokio::spawn(work);
    (node, peer)
}

/// Begins an exec session with a command of this length.
async fn exec(peer: &Peer, length: usize) -> PeerStream {
    let mut session = peer.open();
    session.send(&[5]).await;
    let method = "Allocations.Exec".to_owned();
    session.object(&StreamHeader { method }).await;
    assert_eq!(session.next().await, Some(StreamAck::default()));
    let request = AllocationsExec {
        cmd: vec!["x".repeat(length)],
        ..AllocationsExec::default()
    };
    session.object(&request).await;
    session
}

/// A command may hold a whole script.
#[tokio::test(start_paused = true)]
async fn streaming_request_is_bounded_as_other_requests_are() {
    let limits = Limits::default();
    let (_node, peer) = connected(limits);
    for length in [1, 5 << 10, limits.request_bytes - (1 << 10)] {
        let mut session = exec(&peer, length).await;
        let out: StreamOut = session.next().await.expect("its command");
        assert_eq!(out.payload.0.len(), length);
    }
    let limits = Limits {
        request_bytes: 10 << 10,
        ..limits
    };
    let (_node, peer) = connected(limits);
    let mut session = exec(&peer, limits.request_bytes).await;
    assert_eq!(session.bytes().await, None);
    assert!(session.is_reset());
}

/// Otherwise servers that stall use up the calls that a node serves at once.
#[tokio::test(start_paused = true)]
async fn server_that_does_not_take_its_reply_in_time_makes_room_for_other_calls() {
    let limits = Limits {
        inbound_calls: 1,
        ..Limits::default()
    };
    let (_node, peer) = connected(limits);
    let (_, body) = call(&peer, "Node.Large", &[0x80]).await.expect("a reply");
    assert_eq!(decode(&body), Ok(Value::Text("x".repeat(LARGE))));
    let (node, peer) = connected(limits);
    let mut stalled = peer.open();
    stalled.grants = false;
    let header = CallHeader {
        seq: 1,
        service_method: "Node.Large".to_owned(),
    };
    stalled.send(&[1]).await;
    stalled.object(&header).await;
    stalled.send(&[0x80]).await;
    let other = call(&peer, "Node.Anything", &[0x80]).await;
    assert_eq!(other, None, "the only place is taken");
    sleep(limits.handshake_timeout + Duration::from_secs(1)).await;
    assert!(stalled.is_reset());
    let (error, _) = call(&peer, "Node.Anything", &[0x80])
        .await
        .expect("there is capacity again");
    assert_eq!(error, "rpc: can't find method Node.Anything");
    assert_eq!(node.close_reason(), None);
}
