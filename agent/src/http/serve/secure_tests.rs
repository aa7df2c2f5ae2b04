//! Clients that speak TLS, slowly, or not at all.

use std::sync::Arc;
use std::time::Duration;

use drover_tls::client::{self, Believes, Stream, server_name};
use drover_tls::{Authorities, Current, Identity, Protocol, server};
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Listeners;
use super::{Limits, Share, serve};
use crate::testing;
use crate::testing::authority::Authority;

/// The longest that anything in these tests may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// An agent behind TLS, and who it believes.
struct Rig {
    addr: String,
    client: Arc<ClientConfig>,
    tasks: Vec<JoinHandle<()>>,
    _dir: tempfile::TempDir,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn settings() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let ca = Authority::new();
    let own = ca.member("client.global");
    let own = Identity::from_pem(own.certificate.as_bytes(), own.key.as_bytes()).unwrap();
    let believed = Authorities::from_pem(ca.pem.as_bytes()).unwrap();
    let (believes, protocol) = (Believes::Named(believed), Protocol::default());
    (
        server::config(&own, None, &protocol).unwrap(),
        client::config(believes, None, &protocol).unwrap(),
    )
}

impl Rig {
    async fn start(limits: Limits) -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let (router, agent) = testing::agent(dir.path(), addr.clone());
        let (server, client) = settings();
        let listeners = Listeners {
            network: listener,
            tls: Some(Current::new(server)),
            local: None,
        };
        let serving = serve(listeners, router, limits);
        let tasks = vec![tokio::spawn(agent), tokio::spawn(serving)];
        Rig {
            addr,
            client,
            tasks,
            _dir: dir,
        }
    }

    async fn plain(&self) -> TcpStream {
        TcpStream::connect(&self.addr).await.unwrap()
    }

    async fn encrypted(&self) -> Stream<TcpStream> {
        let name = server_name("client.global.nomad").unwrap();
        let stream = client::connect(self.plain().await, name, self.client.clone(), TIMEOUT);
        stream.await.unwrap()
    }

    /// What comes back for a request, until the head of the answer is over.
    async fn ask(&self, stream: &mut Stream<TcpStream>) -> String {
        let head = format!(
            "GET /v1/status/leader HTTP/1.1\r\nHost: {}\r\n\r\n",
            self.addr
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let reading = async {
            while !answer.ends_with(b"\"") {
                assert!(stream.read_buf(&mut answer).await.unwrap() > 0);
            }
        };
        timeout(TIMEOUT, reading).await.unwrap();
        String::from_utf8(answer).unwrap()
    }
}

/// Everything until the agent closes.
async fn rest(mut stream: TcpStream) -> String {
    let mut rest = Vec::new();
    let read = timeout(TIMEOUT, stream.read_to_end(&mut rest));
    // It may be reset, where something was sent that nobody read.
    let _ = read.await.unwrap();
    String::from_utf8_lossy(&rest).into_owned()
}

#[tokio::test]
async fn requests_follow_each_other_in_one_connection() {
    let rig = Rig::start(Limits::default()).await;
    let mut stream = rig.encrypted().await;
    for _ in 0..3 {
        let answer = rig.ask(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[tokio::test]
async fn client_without_tls_gets_an_explanation() {
    let rig = Rig::start(Limits::default()).await;
    let mut stream = rig.plain().await;
    stream
        .write_all(b"GET /v1/jobs HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(
        answer.ends_with("this agent speaks https here, and not http: use https:// in its address"),
        "{answer}"
    );
}

#[tokio::test]
async fn handshake_that_stalls_is_closed() {
    let rig = Rig::start(Limits {
        head: Duration::from_millis(50),
        ..Limits::default()
    })
    .await;
    assert_eq!(rest(rig.plain().await).await, "");
    // It begins as a handshake does.
    let mut begun = rig.plain().await;
    begun.write_all(&[0x16, 3, 1]).await.unwrap();
    assert_eq!(rest(begun).await, "");
}

#[tokio::test]
async fn handshakes_count_as_connections_and_give_way() {
    let rig = Rig::start(Limits {
        connections: Share::of(2, 2),
        head: TIMEOUT * 2,
        idle: TIMEOUT * 2,
        ..Limits::default()
    })
    .await;
    let mut stalled = Vec::new();
    for _ in 0..2 {
        let mut begun = rig.plain().await;
        begun.write_all(&[0x16, 3, 1]).await.unwrap();
        stalled.push(begun);
    }
    let mut stream = rig.encrypted().await;
    assert!(rig.ask(&mut stream).await.starts_with("HTTP/1.1 200"));
    assert_eq!(rest(stalled.remove(0)).await, "");
}

#[tokio::test]
async fn client_with_late_head_is_closed_without_plain_text() {
    let rig = Rig::start(Limits {
        head: Duration::from_millis(300),
        check: Duration::from_millis(10),
        ..Limits::default()
    })
    .await;
    let mut stream = rig.encrypted().await;
    stream.write_all(b"GET /v1/jobs HT").await.unwrap();
    let mut rest = Vec::new();
    let read = timeout(TIMEOUT, stream.read_to_end(&mut rest))
        .await
        .unwrap();
    assert!(read.is_err(), "no end of TLS, and no words");
    assert!(rest.is_empty());
}
