//! One connection: calls both ways, side by side, against a model of a server's end. Time is simulated.

#![allow(clippy::expect_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::frames::{FIN, Frame, PING, RST, SYN};
use common::handler::{LONG, Node};
use common::peer::{OPEN_TIMEOUT, Peer, PeerEnd, PeerStream};
use common::server::{Does, answer, call};
use drover_rpc::connection::{CloseReason, Connection, Limits, open};
use drover_rpc::error::{Error, ServerErrorKind};
use drover_rpc::msgpack::{Value, decode, encode};
use drover_rpc::types::query::{Empty, NodeClientAllocs, NodeGetClientAllocs, StatusPing};
use drover_rpc::types::stream::{FileSystemLogs, StreamAck, StreamHeader, StreamOut};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_secs(30);

struct Both {
    node: Connection,
    peer: Peer,
    incoming: UnboundedReceiver<PeerStream>,
    session: JoinHandle<PeerEnd>,
    work: JoinHandle<CloseReason>,
}

fn both(limits: Limits) -> Both {
    let (here, there) = tokio::io::duplex(64 << 10);
    let (peer, incoming, session) = Peer::start(there);
    let (node, work) = open(here, "server-1:4647", Arc::new(Node), limits);
    let work = tokio::spawn(work);
    Both {
        node,
        peer,
        incoming,
        session,
        work,
    }
}

/// A connection whose server does as it is told.
fn with_server<F>(does: F) -> (Connection, Peer)
where
    F: Fn(&str, Value) -> Does + Send + Sync + 'static,
{
    let Both {
        node,
        peer,
        incoming,
        ..
    } = both(Limits::default());
    tokio::spawn(answer(incoming, does));
    (node, peer)
}

#[tokio::test(start_paused = true)]
async fn slow_call_delays_no_other() {
    let (node, _peer) = with_server(|method, _| match method {
        "Node.GetClientAllocs" => Does::Reply(60 * SECOND, vec![0xc0]),
        _ => Does::empty(),
    });
    let began = Instant::now();
    let slow = node.clone();
    let slow = tokio::spawn(async move {
        slow.call(&NodeGetClientAllocs::default(), 90 * SECOND)
            .await
    });
    tokio::task::yield_now().await;
    assert_eq!(node.call(&StatusPing::default(), WAIT).await, Ok(Empty {}));
    assert_eq!(began.elapsed(), Duration::ZERO);
    let reply = slow.await.expect("the task");
    assert_eq!(reply, Ok(NodeClientAllocs::default()));
    assert_eq!(began.elapsed(), 60 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn call_without_reply_ends_at_its_deadline_alone() {
    let (node, _peer) = with_server(|method, _| match method {
        "Status.Ping" => Does::empty(),
        _ => Does::Nothing,
    });
    let began = Instant::now();
    let error = node.call(&NodeGetClientAllocs::default(), 5 * SECOND).await;
    assert!(
        matches!(error, Err(Error::DeadlineExceeded { after, .. }) if after == 5 * SECOND),
        "{error:?}"
    );
    assert_eq!(began.elapsed(), 5 * SECOND);
    node.call(&StatusPing::default(), WAIT)
        .await
        .expect("the connection goes on");
}

#[tokio::test(start_paused = true)]
async fn abandoned_call_resets_its_stream() {
    let Both {
        node, mut incoming, ..
    } = both(Limits::default());
    let call = tokio::spawn(async move { node.call(&StatusPing::default(), WAIT).await });
    let mut stream = incoming.recv().await.expect("a stream");
    assert_eq!(stream.byte().await, Some(1));
    stream.bytes().await.expect("a header");
    stream.bytes().await.expect("a body");
    call.abort();
    assert_eq!(stream.bytes().await, None);
}

#[tokio::test(start_paused = true)]
async fn server_error_is_classified_by_its_text() {
    for (text, refusal) in [
        ("rpc error: node not found", ServerErrorKind::UnknownNode),
        (
            "rpc error: rpc error: Permission denied",
            ServerErrorKind::PermissionDenied,
        ),
        ("No cluster leader", ServerErrorKind::NoLeader),
        ("No path to region", ServerErrorKind::NoPathToRegion),
        (
            "node secret ID does not match. Not registering node.",
            ServerErrorKind::SecretMismatch,
        ),
        (
            "rpc: can't find method Node.GetClientAllocs",
            ServerErrorKind::UnknownMethod,
        ),
        ("RPC Error:: 404,no such thing", ServerErrorKind::Coded(404)),
        ("the dog ate it", ServerErrorKind::Other),
    ] {
        let (node, _peer) = with_server(move |_, _| Does::Error(text));
        let error = node
            .call(&NodeGetClientAllocs::default(), WAIT)
            .await
            .expect_err("refused");
        assert_eq!(error.server_error_kind(), Some(refusal));
        let message = error.to_string();
        assert!(
            message.contains("server-1:4647") && message.contains(text),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_reply_fails_its_call_alone() {
    let nonsense: [&[u8]; 5] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        // The number of another call.
        b"\x83\xa5Error\xa0\xa3Seq\x63\xadServiceMethod\xabStatus.Ping\x80",
        b"\xc1",
        // A header of 4 GiB.
        b"\xdb\xff\xff\xff\xff",
        b"\x93\x01\x02\x03\x80",
    ];
    for bytes in nonsense {
        let (node, _peer) = with_server(move |method, _| match method {
            "Status.Ping" => Does::Bytes(bytes.to_vec()),
            _ => Does::Reply(Duration::ZERO, vec![0xc0]),
        });
        let error = node.call(&StatusPing::default(), WAIT).await;
        assert!(
            matches!(error, Err(Error::InvalidReply { .. })),
            "{error:?} for {bytes:02x?}"
        );
        node.call(&NodeGetClientAllocs::default(), WAIT)
            .await
            .expect("the connection goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn oversized_reply_is_refused_before_it_arrives() {
    let limits = Limits {
        reply_bytes: 1 << 20,
        ..Limits::default()
    };
    let Both { node, incoming, .. } = both(limits);
    tokio::spawn(answer(incoming, |_, _| {
        let mut bytes = b"\x83\xa5Error\xa0\xa3Seq\x01\xadServiceMethod\xa1x".to_vec();
        bytes.extend(b"\x81\xa6Allocs\xdb\x00\x20\x00\x00");
        Does::Bytes(bytes)
    }));
    let error = node.call(&NodeGetClientAllocs::default(), WAIT).await;
    assert!(
        matches!(error, Err(Error::InvalidReply { .. })),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_bound_wait_for_others_to_end() {
    let limits = Limits {
        outbound_calls: 2,
        ..Limits::default()
    };
    let Both { node, incoming, .. } = both(limits);
    tokio::spawn(answer(incoming, |_, _| {
        Does::Reply(10 * SECOND, vec![0x80])
    }));
    let began = Instant::now();
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let node = node.clone();
            tokio::spawn(async move { node.call(&StatusPing::default(), 60 * SECOND).await })
        })
        .collect();
    for call in calls {
        call.await.expect("the task").expect("a reply");
    }
    assert_eq!(began.elapsed(), 30 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn calls_of_the_server_are_answered() {
    let Both {
        node: _node, peer, ..
    } = both(Limits::default());
    let signal = encode(&Value::Map(
        [("Signal".to_owned(), Value::Text("SIGHUP".into()))].into(),
    ));
    let signal = signal.expect("it can be written");
    let (error, body) = call(&peer, "Allocations.Signal", &signal)
        .await
        .expect("a reply");
    assert_eq!((error.as_str(), &body[..]), ("", &b"\x81\xa5Index\x00"[..]));
    let null = encode(&Value::Map(
        [("Signal".to_owned(), Value::Text("SIGNULL".into()))].into(),
    ));
    let null = null.expect("it can be written");
    let (error, body) = call(&peer, "Allocations.Signal", &null)
        .await
        .expect("a reply");
    assert_eq!(
        (error.as_str(), &body[..]),
        ("Task not running", &[0x80][..])
    );
    let (error, _) = call(&peer, "Allocations.Signal", &[0x07])
        .await
        .expect("a reply");
    assert!(error.starts_with("msgpack decode error"), "{error}");
    let (error, _) = call(&peer, "Node.FailsWithoutWords", &[0x80])
        .await
        .expect("a reply");
    assert_eq!(error, "unknown error");
    let (error, _) = call(&peer, "CSI.Whatever", &[0x80]).await.expect("a reply");
    assert_eq!(error, "rpc: can't find method CSI.Whatever");
}

/// A server that gets no acknowledgement within 75 s closes the session, and every call with it.
#[tokio::test(start_paused = true)]
async fn call_of_90_s_leaves_other_calls_alone() {
    assert!(LONG > OPEN_TIMEOUT);
    let Both {
        node,
        peer,
        session,
        ..
    } = both(Limits::default());
    let mut logs = follow(&peer).await;
    let began = Instant::now();
    let (error, _) = call(&peer, "Allocations.GarbageCollectAll", &[0x80])
        .await
        .expect("a reply after all");
    assert_eq!((error.as_str(), began.elapsed()), ("", LONG));
    assert!(logs.next::<StreamOut>().await.is_some(), "the log goes on");
    assert_eq!(node.close_reason(), None);
    assert!(!session.is_finished());
}

async fn follow(peer: &Peer) -> PeerStream {
    request_logs(peer, true).await
}

async fn request_logs(peer: &Peer, follow: bool) -> PeerStream {
    let mut logs = peer.open();
    logs.send(&[5]).await;
    logs.object(&StreamHeader {
        method: "FileSystem.Logs".into(),
    })
    .await;
    assert_eq!(logs.next().await, Some(StreamAck::default()));
    logs.object(&FileSystemLogs {
        follow,
        ..Default::default()
    })
    .await;
    logs
}

#[tokio::test(start_paused = true)]
async fn streaming_call_cancelled_by_server_ends() {
    let Both {
        node: _node, peer, ..
    } = both(Limits::default());
    let mut logs = follow(&peer).await;
    for _ in 0..3 {
        let out: StreamOut = logs.next().await.expect("a line");
        assert_eq!(out.payload.0, b"line\n");
    }
    logs.finish();
    while logs.bytes().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn complete_streaming_call_is_closed_not_reset() {
    let Both {
        node: _node, peer, ..
    } = both(Limits::default());
    let mut logs = request_logs(&peer, false).await;
    assert!(logs.next::<StreamOut>().await.is_some());
    assert_eq!(logs.bytes().await, None);
    assert!(!logs.is_reset());
}

#[tokio::test(start_paused = true)]
async fn unknown_streaming_method_is_refused_before_its_request() {
    let Both {
        node: _node, peer, ..
    } = both(Limits::default());
    let mut stream = peer.open();
    stream.send(&[5]).await;
    stream
        .object(&StreamHeader {
            method: "Agent.Dance".into(),
        })
        .await;
    let ack: StreamAck = stream.next().await.expect("an answer");
    assert_eq!(ack.error, "Unknown rpc method: \"Agent.Dance\"");
    assert_eq!(stream.bytes().await, None);
}

/// A reader that takes nothing stops its own stream, and nothing else.
#[tokio::test(start_paused = true)]
async fn slow_reader_stops_its_own_stream_alone() {
    let Both {
        node,
        peer,
        incoming,
        ..
    } = both(Limits::default());
    tokio::spawn(answer(incoming, |_, _| Does::empty()));
    let mut logs = follow(&peer).await;
    logs.grants = false;
    let mut other = follow(&peer).await;
    for _ in 0..20_000 {
        other.next::<StreamOut>().await.expect("a line");
    }
    node.call(&StatusPing::default(), WAIT)
        .await
        .expect("a reply");
}

#[tokio::test(start_paused = true)]
async fn calls_of_the_server_beyond_the_bound_are_refused_alone() {
    let limits = Limits {
        inbound_calls: 2,
        ..Limits::default()
    };
    let Both {
        node: _node, peer, ..
    } = both(limits);
    let first = follow(&peer).await;
    let mut second = follow(&peer).await;
    assert_eq!(call(&peer, "Node.Anything", &[0x80]).await, None);
    assert!(second.next::<StreamOut>().await.is_some());
    first.finish();
    // The first one ends with the next line that it would send.
    loop {
        if let Some((error, _)) = call(&peer, "Node.Anything", &[0x80]).await {
            assert_eq!(error, "rpc: can't find method Node.Anything");
            break;
        }
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn stream_without_valid_header_is_reset() {
    let limits = Limits {
        inbound_calls: 1,
        ..Limits::default()
    };
    let Both {
        node: _node, peer, ..
    } = both(limits);
    for bytes in [&b""[..], b"\x01", b"\x01\x82\xa3Seq", b"\x05\x81", b"\x09"] {
        let mut stream = peer.open();
        stream.send(bytes).await;
        assert_eq!(stream.bytes().await, None, "for {bytes:02x?}");
        assert!(stream.is_reset(), "for {bytes:02x?}");
    }
    let (error, _) = call(&peer, "Node.Anything", &[0x80])
        .await
        .expect("there is capacity again");
    assert_eq!(error, "rpc: can't find method Node.Anything");
}

#[tokio::test(start_paused = true)]
async fn oversized_request_resets_its_stream() {
    let limits = Limits {
        request_bytes: 1000,
        ..Limits::default()
    };
    let Both {
        node: _node, peer, ..
    } = both(limits);
    let request = encode(&Value::Text("x".repeat(1001))).expect("it can be written");
    assert_eq!(call(&peer, "Node.Anything", &request).await, None);
    assert!(call(&peer, "Node.Anything", &[0x80]).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn panicking_handler_fails_its_call_alone() {
    let Both { node, peer, .. } = both(Limits::default());
    assert_eq!(call(&peer, "Node.Panics", &[0x80]).await, None);
    assert!(call(&peer, "Node.Anything", &[0x80]).await.is_some());
    assert_eq!(node.close_reason(), None);
}

#[tokio::test(start_paused = true)]
async fn server_going_away_fails_all_calls_at_once() {
    let Both {
        node,
        peer,
        incoming,
        ..
    } = both(Limits::default());
    tokio::spawn(answer(incoming, |_, _| Does::Nothing));
    let waiting = node.clone();
    let waiting = tokio::spawn(async move { waiting.call(&StatusPing::default(), WAIT).await });
    sleep(SECOND).await;
    peer.close();
    let error = waiting
        .await
        .expect("the task")
        .expect_err("the connection ended");
    assert!(
        matches!(error, Error::ConnectionLost { sent: true, .. }),
        "{error:?}"
    );
    assert_eq!(node.closed().await, CloseReason::Remote);
    let error = node
        .call(&StatusPing::default(), WAIT)
        .await
        .expect_err("it has ended");
    assert!(
        matches!(error, Error::ConnectionLost { sent: false, .. }),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("the server closed it"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn silent_connection_is_closed_after_idle_timeout() {
    let limits = Limits {
        acknowledge_timeout: 600 * SECOND,
        ..Limits::default()
    };
    let (here, _there) = tokio::io::duplex(64 << 10);
    let (node, work) = open(here, "server-1:4647", Arc::new(Node), limits);
    tokio::spawn(work);
    let began = Instant::now();
    let error = node
        .call(&StatusPing::default(), 600 * SECOND)
        .await
        .expect_err("silence");
    assert_eq!(began.elapsed(), limits.idle_timeout);
    assert!(
        error.to_string().contains("nothing was received for 75s"),
        "{error}"
    );
    assert_eq!(
        node.close_reason(),
        Some(CloseReason::IdleTimeout(limits.idle_timeout))
    );
}

/// What the server says arrives, what the node says does not.
#[tokio::test(start_paused = true)]
async fn unacknowledged_call_fails_long_before_its_deadline() {
    let limits = Limits::default();
    let (here, mut there) = tokio::io::duplex(64 << 10);
    let (node, work) = open(here, "server-1:4647", Arc::new(Node), limits);
    tokio::spawn(work);
    tokio::spawn(async move {
        loop {
            let ping = Frame::new(PING, SYN, 0, 1).bytes();
            there.write_all(&ping).await.expect("the node listens");
            sleep(SECOND).await;
        }
    });
    let began = Instant::now();
    let error = node
        .call(&StatusPing::default(), 600 * SECOND)
        .await
        .expect_err("nothing");
    assert_eq!(began.elapsed(), limits.acknowledge_timeout);
    assert!(
        matches!(error, Error::ConnectionLost { sent: true, .. }),
        "{error:?}"
    );
    assert_eq!(node.close_reason(), None);
}

#[tokio::test(start_paused = true)]
async fn idle_connection_with_server_pings_stays_open() {
    let Both { node, work, .. } = both(Limits::default());
    sleep(3600 * SECOND).await;
    assert_eq!(node.close_reason(), None);
    drop(node);
    assert_eq!(work.await.expect("the task"), CloseReason::Local);
}

#[tokio::test(start_paused = true)]
async fn yamux_protocol_violation_closes_connection() {
    let frames = [
        // A stream of an id that is the node's to give; one twice; more data than there is a window.
        vec![Frame::new(1, SYN, 3, 0)],
        vec![Frame::new(1, SYN, 2, 0), Frame::new(1, SYN, 2, 0)],
        vec![
            Frame::new(1, SYN, 2, 0),
            Frame::data(2, &vec![0; 300 << 10]),
        ],
        vec![Frame::new(1, SYN, 2, 0), Frame::new(1, 0, 2, u32::MAX)],
        vec![Frame::new(9, 0, 0, 0)],
    ];
    for frames in frames {
        let Both { node, peer, .. } = both(Limits::default());
        let message = format!("{:?}", &frames[0]);
        frames.into_iter().for_each(|frame| peer.send(frame));
        let ended = tokio::time::timeout(WAIT, node.closed()).await;
        assert!(
            matches!(ended, Ok(CloseReason::Failed(_) | CloseReason::Remote)),
            "{ended:?} for {message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn frames_of_streams_that_are_not_there_change_nothing() {
    let Both {
        node,
        peer,
        incoming,
        ..
    } = both(Limits::default());
    tokio::spawn(answer(incoming, |_, _| Does::empty()));
    for flags in [0, FIN, RST, FIN | RST] {
        peer.send(Frame {
            flags,
            ..Frame::data(8, b"late")
        });
        peer.send(Frame::new(1, flags, 9, 1));
    }
    node.call(&StatusPing::default(), WAIT)
        .await
        .expect("a reply");
}

/// Those beyond the bound are reset; the others lose their stream when they have said nothing for long.
#[tokio::test(start_paused = true)]
async fn flood_of_streams_is_bounded() {
    let Both {
        node,
        peer,
        incoming,
        ..
    } = both(Limits::default());
    tokio::spawn(answer(incoming, |_, _| Does::empty()));
    for stream in 0..10_000 {
        peer.send(Frame::new(1, SYN, 1_000 + 2 * stream, 0));
    }
    node.call(&StatusPing::default(), WAIT)
        .await
        .expect("a reply");
    sleep(WAIT).await;
    assert!(call(&peer, "Node.Anything", &[0x80]).await.is_some());
}

#[test]
fn tokens_are_not_shown() {
    let request = NodeGetClientAllocs {
        auth_token: "hush".into(),
        secret_id: "hush".into(),
        ..Default::default()
    };
    assert!(!format!("{request:?}").contains("hush"));
    let written = encode(&request).expect("it can be written");
    assert_eq!(decode::<NodeGetClientAllocs>(&written), Ok(request));
}
