//! Clients of every kind, each over a socket of its own.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::select_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::connections::{Close, Connections};
use super::{Limits, Share};
use crate::http::tests::{allocs, register};
use crate::testing::{Rig, job};

/// The longest that anything in these tests may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A limit that is soon reached.
const SOON: Duration = Duration::from_millis(50);

/// Limits that tests reach only where they mean to.
fn limits() -> Limits {
    Limits {
        idle: TIMEOUT * 2,
        head: TIMEOUT * 2,
        body_silence: TIMEOUT * 2,
        unread: TIMEOUT * 2,
        check: Duration::from_millis(10),
        ..Limits::default()
    }
}

/// A client's end of a connection.
struct Conn {
    stream: TcpStream,
    agent: SocketAddr,
}

/// An answer of the agent.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Conn {
    async fn new(rig: &Rig) -> Conn {
        Conn::from("127.0.0.1:0", rig).await
    }

    /// A connection of a client at this address.
    async fn from(client: &str, rig: &Rig) -> Conn {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(client.parse().unwrap()).unwrap();
        let agent = rig.addr;
        let stream = socket.connect(agent).await.unwrap();
        Conn { stream, agent }
    }

    async fn send(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).await.unwrap();
    }

    async fn get(&mut self, path: &str) {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.agent);
        self.send(&head).await;
    }

    /// One answer; of a stream, what is there at first.
    async fn answer(&mut self) -> Answer {
        let mut bytes = Vec::new();
        let until_head = async {
            while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
                let count = self.stream.read_buf(&mut bytes).await.unwrap();
                assert!(count > 0, "closed: {}", String::from_utf8_lossy(&bytes));
            }
        };
        timeout(TIMEOUT, until_head).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let head = head.to_lowercase();
        let length = head.split_once("content-length: ");
        let length = length.and_then(|(_, rest)| rest.lines().next()?.parse().ok());
        let mut body = body.as_bytes().to_vec();
        while body.len() < length.unwrap_or(0) {
            let read = timeout(TIMEOUT, self.stream.read_buf(&mut body));
            assert!(read.await.unwrap().unwrap() > 0);
        }
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head,
            body: String::from_utf8(body).unwrap(),
        }
    }

    async fn asks(&mut self, path: &str) -> Answer {
        self.get(path).await;
        self.answer().await
    }

    /// Waits until the agent has closed it. It may not have been reset.
    async fn is_closed(&mut self) {
        let mut rest = Vec::new();
        let read = timeout(TIMEOUT, self.stream.read_to_end(&mut rest));
        read.await.unwrap().unwrap();
        assert_eq!(String::from_utf8(rest).unwrap(), "");
    }
}

impl Answer {
    /// Checks that it is a refusal for there being too many of `what`.
    #[track_caller]
    fn refuses(&self, what: &str) {
        assert_eq!(self.status, 429, "{}", self.body);
        assert!(self.head.contains("retry-after: 1"), "{}", self.head);
        assert!(self.body.contains(what), "{}", self.body);
    }
}

/// An agent with the path of a log that can be followed.
async fn with_log(limits: Limits) -> (Rig, String) {
    let rig = Rig::start_within(limits).await;
    register(&rig, job("web", "service", None)).await;
    let id = allocs(&rig, "web").await[0].id.clone();
    let query = "task=t&type=stdout&follow=true";
    let path = format!("/v1/client/fs/logs/{id}?{query}");
    (rig, path)
}

#[tokio::test]
async fn oldest_idle_connection_is_closed_at_limit() {
    let rig = Rig::start_within(Limits {
        connections: Share::of(3, 3),
        ..limits()
    })
    .await;
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut conn = Conn::new(&rig).await;
        assert_eq!(conn.asks("/v1/jobs").await.status, 200);
        idle.push(conn);
    }
    // The first one is used again, so that the second is the oldest.
    assert_eq!(idle[0].asks("/v1/jobs").await.status, 200);
    let mut new = Conn::new(&rig).await;
    assert_eq!(new.asks("/v1/jobs").await.status, 200);
    idle[1].is_closed().await;
    for response_cache in [0, 2] {
        assert_eq!(idle[response_cache].asks("/v1/jobs").await.status, 200);
    }
}

#[tokio::test]
async fn connections_with_partial_head_are_closed_at_limit() {
    let rig = Rig::start_within(Limits {
        connections: Share::of(2, 2),
        ..limits()
    })
    .await;
    let mut silent = Conn::new(&rig).await;
    let mut slow = Conn::new(&rig).await;
    slow.send("GET /v1/jobs HT").await;
    for _ in 0..3 {
        assert_eq!(Conn::new(&rig).await.asks("/v1/jobs").await.status, 200);
    }
    silent.is_closed().await;
}

#[tokio::test]
async fn connections_in_use_are_kept_at_limit() {
    let (rig, log) = with_log(Limits {
        connections: Share::of(8, 2),
        ..limits()
    })
    .await;
    let mut followers = Vec::new();
    for _ in 0..2 {
        let mut conn = Conn::from("127.0.0.2:0", &rig).await;
        assert_eq!(conn.asks(&log).await.status, 200);
        followers.push(conn);
    }
    let mut third = Conn::from("127.0.0.2:0", &rig).await;
    let refused = third.asks("/v1/jobs").await;
    refused.refuses("127.0.0.2 not more than 2 connections");
    third.is_closed().await;
    let mut other = Conn::from("127.0.0.3:0", &rig).await;
    assert_eq!(other.asks("/v1/jobs").await.status, 200);
}

#[tokio::test]
async fn clients_get_429_when_all_connections_are_in_use() {
    let (rig, log) = with_log(Limits {
        connections: Share::of(2, 2),
        ..limits()
    })
    .await;
    let mut followers = Vec::new();
    for client in ["127.0.0.2:0", "127.0.0.3:0"] {
        let mut conn = Conn::from(client, &rig).await;
        assert_eq!(conn.asks(&log).await.status, 200);
        followers.push(conn);
    }
    let mut third = Conn::from("127.0.0.4:0", &rig).await;
    third
        .asks("/v1/jobs")
        .await
        .refuses("not more than 2 connections");
}

#[tokio::test]
async fn blocking_queries_at_limit_leave_capacity() {
    let rig = Rig::start_within(Limits {
        blocking_queries: Share::of(4, 1),
        ..limits()
    })
    .await;
    let path = "/v1/jobs?index=1000000&wait=300s";
    let mut both = Vec::new();
    for _ in 0..2 {
        let mut conn = Conn::new(&rig).await;
        conn.get(path).await;
        both.push(conn);
    }
    let answers = both.iter_mut().map(|conn| Box::pin(conn.answer()));
    let (answer, refused, _) = select_all(answers).await;
    answer.refuses("not more than 1 blocking queries");
    // Both are usable: the one that was refused for whatever does not wait.
    assert_eq!(both[refused].asks("/v1/jobs").await.status, 200);
    let mut other = Conn::from("127.0.0.2:0", &rig).await;
    let short = "/v1/jobs?index=1000000&wait=1ms";
    assert_eq!(other.asks(short).await.status, 200);
}

#[tokio::test]
async fn ended_blocking_query_is_not_counted() {
    let rig = Rig::start_within(Limits {
        blocking_queries: Share::of(1, 1),
        ..limits()
    })
    .await;
    let mut conn = Conn::new(&rig).await;
    for _ in 0..3 {
        let answer = conn.asks("/v1/jobs?index=1000000&wait=1ms").await;
        assert_eq!(answer.status, 200);
    }
}

#[tokio::test]
async fn streams_at_limit_leave_capacity() {
    let (rig, log) = with_log(Limits {
        streams: Share::of(1, 1),
        ..limits()
    })
    .await;
    let mut follower = Conn::new(&rig).await;
    assert_eq!(follower.asks(&log).await.status, 200);
    let mut other = Conn::new(&rig).await;
    other.asks(&log).await.refuses("not more than 1 streams");
    assert_eq!(other.asks("/v1/jobs").await.status, 200);
    drop(follower);
    let again = async { while Conn::new(&rig).await.asks(&log).await.status != 200 {} };
    timeout(TIMEOUT, again).await.unwrap();
}

/// Whoever has too many ends their own.
#[tokio::test(start_paused = true)]
async fn client_at_its_limit_leaves_stalled_streams_of_others_open() {
    let limits = Limits {
        streams: Share::of(4, 1),
        ..limits()
    };
    let unread = limits.unread;
    let connections = Connections::new(limits);
    let [slow, greedy] = ["127.0.0.2", "127.0.0.3"].map(|it| it.parse().unwrap());
    let mut stalled = connections.admit(slow).unwrap();
    stalled.caller.stream().unwrap();
    stalled.caller.is_unread(true);
    let mut own = connections.admit(greedy).unwrap();
    own.caller.stream().unwrap();
    tokio::time::advance(unread).await;
    let more = connections.admit(greedy).unwrap();
    let busy = more.caller.stream().unwrap_err().to_string();
    assert!(busy.contains("127.0.0.3 not more than 1 streams"), "{busy}");
    own.caller.is_unread(true);
    tokio::time::advance(unread).await;
    more.caller.stream().unwrap();
    assert_eq!(own.closed.try_recv(), Ok(Close::Now));
    assert!(stalled.closed.try_recv().is_err(), "it is open");
}

#[tokio::test]
async fn stalled_head_is_answered_and_closed() {
    let rig = Rig::start_within(Limits {
        head: SOON,
        ..limits()
    })
    .await;
    let mut conn = Conn::new(&rig).await;
    conn.send("GET /v1/jobs HT").await;
    let answer = conn.answer().await;
    assert_eq!(answer.status, 408);
    assert!(answer.body.contains("did not arrive"), "{}", answer.body);
    conn.is_closed().await;
}

#[tokio::test]
async fn connection_without_requests_is_closed() {
    let rig = Rig::start_within(Limits {
        idle: SOON,
        ..limits()
    })
    .await;
    Conn::new(&rig).await.is_closed().await;
}

fn put(rig: &Rig, length: usize) -> String {
    let addr = rig.addr;
    format!("PUT /v1/jobs HTTP/1.1\r\nHost: {addr}\r\nContent-Length: {length}\r\n\r\n")
}

#[tokio::test]
async fn stalled_body_is_answered_and_closed() {
    let rig = Rig::start_within(Limits {
        body_silence: SOON,
        ..limits()
    })
    .await;
    let mut conn = Conn::new(&rig).await;
    conn.send(&put(&rig, 1000)).await;
    conn.send("{").await;
    let answer = conn.answer().await;
    assert_eq!(answer.status, 408);
    assert!(
        answer.body.contains("nothing of it came"),
        "{}",
        answer.body
    );
    conn.is_closed().await;
}

#[tokio::test]
async fn bodies_at_limit_leave_capacity() {
    let rig = Rig::start_within(Limits {
        bodies: Share::of(1, 1),
        ..limits()
    })
    .await;
    let mut both = Vec::new();
    for _ in 0..2 {
        let mut conn = Conn::new(&rig).await;
        conn.send(&put(&rig, 1000)).await;
        both.push(conn);
    }
    let answers = both.iter_mut().map(|conn| Box::pin(conn.answer()));
    let (answer, _, _) = select_all(answers).await;
    answer.refuses("not more than 1 request bodies");
    assert_eq!(Conn::new(&rig).await.asks("/v1/jobs").await.status, 200);
}

#[tokio::test]
async fn total_body_memory_is_bounded() {
    let rig = Rig::start_within(Limits {
        body_bytes: Share::of(10_000, 10_000),
        ..limits()
    })
    .await;
    let mut conn = Conn::new(&rig).await;
    conn.send(&put(&rig, 20_000)).await;
    conn.send(&" ".repeat(20_000)).await;
    let answer = conn.answer().await;
    answer.refuses("not more than 10000 bytes of request bodies");
    let mut next = Conn::new(&rig).await;
    next.send(&put(&rig, 2)).await;
    next.send("{}").await;
    assert_eq!(next.answer().await.body, "Job must be specified");
}

#[tokio::test]
async fn oversized_body_is_refused_while_sending() {
    let rig = Rig::start_within(limits()).await;
    let mut conn = Conn::new(&rig).await;
    let length = 11 * 1024 * 1024;
    conn.send(&put(&rig, length)).await;
    // More than fits into the buffers of both ends, and less than is waited for.
    let mut rest = 8 * 1024 * 1024;
    let piece = " ".repeat(64 * 1024);
    while rest > 0 {
        conn.send(&piece).await;
        rest -= piece.len();
    }
    let answer = conn.answer().await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn client_that_never_reads_is_closed() {
    let rig = Rig::start_within(Limits {
        unread: SOON,
        ..limits()
    })
    .await;
    let mut conn = Conn::new(&rig).await;
    let request = format!("GET /v1/agent/self HTTP/1.1\r\nHost: {}\r\n\r\n", rig.addr);
    let until_closed = async { while conn.stream.write_all(request.as_bytes()).await.is_ok() {} };
    timeout(TIMEOUT, until_closed).await.unwrap();
}
