//! `alloc exec`: until the first byte, from a key to its echo, and how much goes through.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::api::{Api, quantile};
use crate::jobs::single;
use crate::life::stop;

const SESSIONS: usize = 30;
const KEYS: usize = 1_000;
const MEBIBYTES: usize = 200;

struct Session {
    socket: WebSocketStream<TcpStream>,
}

impl Session {
    /// Starts a command: with a terminal, or without input.
    async fn open(addr: &str, alloc: &str, terminal: bool, command: &[&str]) -> Session {
        let words = serde_json::to_string(command).unwrap();
        let words = percent(&words);
        let path = format!("/v1/client/allocation/{alloc}/exec");
        let url = format!("ws://{addr}{path}?task=t&tty={terminal}&command={words}");
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (socket, _) = client_async(url, stream).await.expect("no session");
        let mut session = Session { socket };
        if !terminal {
            // Nomad's session does not end before its input does.
            let end = json!({ "stdin": { "close": true } });
            session.send(&end).await;
        }
        session
    }

    /// The next bytes that the command wrote; none once it has ended.
    async fn output(&mut self) -> Option<Vec<u8>> {
        loop {
            let frame = self.socket.next().await?.ok()?;
            if !frame.is_text() && !frame.is_binary() {
                continue;
            }
            let frame: Value = serde_json::from_slice(&frame.into_data()).ok()?;
            if frame["exited"] == true {
                return None;
            }
            if let Some(data) = frame["stdout"]["data"].as_str() {
                return Some(STANDARD.decode(data).unwrap());
            }
        }
    }

    async fn input(&mut self, bytes: &[u8]) {
        let frame = json!({ "stdin": { "data": STANDARD.encode(bytes) } });
        self.send(&frame).await;
    }

    async fn send(&mut self, frame: &Value) {
        let frame = Message::text(frame.to_string());
        self.socket.send(frame).await.unwrap();
    }
}

/// What a query must not hold unescaped, of what is asked here.
fn percent(words: &str) -> String {
    let escape = |c: char| match c {
        '[' | ']' | '"' | ' ' | ',' => format!("%{:02X}", u32::from(c)),
        c => c.to_string(),
    };
    words.chars().map(escape).collect()
}

/// Prints the time to the first byte, p50 and p99 from key to echo, and MB a second.
pub(crate) async fn measure(addr: &str) {
    let mut api = Api::new(addr).await;
    let job = single("exec", "service", 1, "/bin/sleep", &["86400"]);
    api.submit(&job).await;
    let alloc = api.running("exec").await;
    let mut first = Vec::new();
    for _ in 0..SESSIONS {
        let begin = Instant::now();
        let mut session = Session::open(addr, &alloc, false, &["/bin/echo", "x"]).await;
        assert!(session.output().await.is_some(), "no byte");
        first.push(begin.elapsed());
        while session.output().await.is_some() {}
    }
    let mut echoes = Vec::new();
    let mut session = Session::open(addr, &alloc, true, &["/bin/cat"]).await;
    // Its first echo is the session's beginning.
    for key in 0..=KEYS {
        let begin = Instant::now();
        session.input(b"x").await;
        assert!(session.output().await.is_some(), "no echo");
        if key > 0 {
            echoes.push(begin.elapsed());
        }
    }
    drop(session);
    let all = MEBIBYTES << 20;
    let count = all.to_string();
    let command = ["/usr/bin/head", "-c", &count, "/dev/zero"];
    let begin = Instant::now();
    let mut session = Session::open(addr, &alloc, false, &command).await;
    let mut received = 0;
    while let Some(bytes) = session.output().await {
        received += bytes.len();
    }
    assert_eq!(received, all, "some of the output is missing");
    let rate = u128::try_from(all).unwrap() / begin.elapsed().as_micros();
    let [p50, p99] = [50, 99].map(|percent| quantile(&mut echoes, percent));
    println!("{} {p50} {p99} {rate}", quantile(&mut first, 50));
    stop(&mut api, "exec").await;
}
