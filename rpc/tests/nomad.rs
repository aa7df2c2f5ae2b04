//! A real server of Nomad, where its program is on the PATH: registered, listed, asked and called.

#![allow(clippy::expect_used)]

#[path = "../../tls/tests/authority/mod.rs"]
mod authority;
mod common;

use std::env;
use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use authority::{Authority, Signed};
use common::handler::Node as Answers;
use drover_rpc::client::{Client, Connector};
use drover_rpc::connection::Limits;
use drover_rpc::error::{Error, ServerErrorKind};
use drover_rpc::msgpack::Time;
use drover_rpc::servers::{Backoff, Servers};
use drover_rpc::tls::Tls;
use drover_rpc::types::node::{DriverInfo, Node};
use drover_rpc::types::query::{NodeGetClientAllocs, NodeGetNode, StatusPing};
use drover_rpc::types::registration::{NodeRegister, NodeUpdateStatus};
use drover_tls::client::{self as tls, Believes};
use drover_tls::{Authorities, Current, Identity, Protocol, TlsError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const NODE: &str = "5d0d0ee6-2a6b-4b93-9a53-7f7d6a3a9c11";
const SECRET: &str = "0b7a8f0e-8f5a-4d0b-9d0d-6f3f0f4e1a22";
const SECOND: Duration = Duration::from_secs(1);

struct Tcp;

impl Connector for Tcp {
    type Io = TcpStream;

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// A server of its own, which ends with the test.
struct Nomad {
    child: Child,
    folder: PathBuf,
    rpc: String,
    http: String,
}

impl Drop for Nomad {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// Three ports that nobody uses at the moment.
fn ports() -> [u16; 3] {
    let free = || TcpListener::bind("127.0.0.1:0").expect("a port");
    let listeners = [free(), free(), free()];
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

fn program() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join("nomad"))
        .find(|program| program.is_file())
}

/// Starts one in a folder of its own, for which more settings are made.
fn start(program: &Path, more: impl Fn(&Path) -> String) -> Nomad {
    let [http, rpc, serf] = ports();
    let folder = env::temp_dir().join(format!("drover-rpc-{}-{rpc}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let settings = folder.join("server.hcl");
    let text = format!(
        r#"
        data_dir = "{folder}/data"
        bind_addr = "127.0.0.1"
        ports {{ http = {http}, rpc = {rpc}, serf = {serf} }}
        advertise {{ http = "127.0.0.1:{http}", rpc = "127.0.0.1:{rpc}", serf = "127.0.0.1:{serf}" }}
        server {{ enabled = true, bootstrap_expect = 1 }}
        disable_update_check = true
        {more}
        "#,
        folder = folder.display(),
        more = more(&folder)
    );
    // One line has one setting in their language.
    let text = text
        .replace(", ", "\n")
        .replace("{ ", "{\n")
        .replace(" }", "\n}");
    fs::write(&settings, text).expect("settings");
    let log = || File::create(folder.join("log")).expect("a log");
    let child = Command::new(program)
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", &folder)
        .args(["agent", "-config"])
        .arg(&settings)
        .stdin(Stdio::null())
        .stdout(log())
        .stderr(log())
        .spawn()
        .expect("nomad starts");
    Nomad {
        child,
        folder,
        rpc: format!("127.0.0.1:{rpc}"),
        http: format!("127.0.0.1:{http}"),
    }
}

/// A node without resources: known, and nothing is placed on it.
fn node() -> Node {
    Node {
        id: NODE.into(),
        secret_id: SECRET.into(),
        name: "wire".into(),
        datacenter: "dc1".into(),
        status: "initializing".into(),
        attributes: [("nomad.version".into(), "2.0.5".into())].into(),
        drivers: [(
            "raw_exec".into(),
            DriverInfo {
                detected: true,
                healthy: true,
                update_time: Time::from_unix_nanos(1_700_000_000_000_000_000),
                ..Default::default()
            },
        )]
        .into(),
        ..Default::default()
    }
}

/// What a user asks the server about the node, which the server asks the node.
async fn asked_by_a_user(http: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(http).await.expect("the server's API");
    let request = format!("GET {path} HTTP/1.0\r\nHost: {http}\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("a request");
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.expect("a reply");
    String::from_utf8_lossy(&reply).into_owned()
}

/// A server with a client that is registered.
struct Joined {
    nomad: Nomad,
    client: Arc<Client<Tcp, Answers>>,
    heartbeat: NodeUpdateStatus,
}

/// Starts a server and registers. `None`: there is no program.
async fn join() -> Option<Joined> {
    let Some(program) = program() else {
        println!("skipped: there is no program `nomad` on the PATH");
        return None;
    };
    let nomad = start(&program, |_| String::new());
    let servers = Servers::new(vec![nomad.rpc.clone()], Backoff::default(), 1);
    let client = Client::new(Tcp, Arc::new(Answers), servers, Limits::default());
    // It listens a moment after it was started: until then, calls find nobody and try again.
    client
        .call(&StatusPing::default(), 60 * SECOND)
        .await
        .expect("it answers");
    let request = NodeRegister {
        region: "global".into(),
        node: Some(Box::new(node())),
        ..Default::default()
    };
    // It holds the call while it elects a leader.
    let reply = client
        .call(&request, 60 * SECOND)
        .await
        .expect("registered");
    assert!(reply.heartbeat_ttl > 0, "{reply:?}");
    let servers: Vec<String> = reply
        .servers
        .iter()
        .map(|server| server.rpc_advertise_addr.clone())
        .collect();
    assert_eq!(servers, std::slice::from_ref(&nomad.rpc));
    client.update_servers(&servers);
    let heartbeat = NodeUpdateStatus {
        region: "global".into(),
        auth_token: reply.signed_identity.expect("an identity"),
        node_id: NODE.into(),
        status: "ready".into(),
        ..Default::default()
    };
    Some(Joined {
        nomad,
        client: Arc::new(client),
        heartbeat,
    })
}

impl Joined {
    async fn beats(&self) {
        let reply = self.client.call(&self.heartbeat, 30 * SECOND).await;
        let reply = reply.expect("it takes heartbeats");
        assert!(reply.heartbeat_ttl >= 10_000_000_000, "{reply:?}");
    }

    async fn is_refused_by_type(&self) {
        let foreign = NodeUpdateStatus {
            node_id: SECRET.into(),
            ..self.heartbeat.clone()
        };
        let error = self
            .client
            .call(&foreign, 10 * SECOND)
            .await
            .expect_err("another node");
        assert_eq!(
            error.server_error_kind(),
            Some(ServerErrorKind::PermissionDenied),
            "{error}"
        );
        let elsewhere = NodeUpdateStatus {
            region: "nowhere".into(),
            ..self.heartbeat.clone()
        };
        let error = self
            .client
            .call(&elsewhere, 10 * SECOND)
            .await
            .expect_err("no such region");
        assert_eq!(
            error.server_error_kind(),
            Some(ServerErrorKind::NoPathToRegion),
            "{error}"
        );
    }

    /// Nothing changes: the server waits as long as it is asked to, and other calls go on meanwhile.
    async fn waits_for_allocations(&self) {
        let query = NodeGetClientAllocs {
            region: "global".into(),
            auth_token: self.heartbeat.auth_token.clone(),
            node_id: NODE.into(),
            secret_id: SECRET.into(),
            ..Default::default()
        };
        let reply = self
            .client
            .call(&query, 10 * SECOND)
            .await
            .expect("a reply");
        assert!(reply.index > 0 && reply.allocs.is_empty(), "{reply:?}");
        let blocking = NodeGetClientAllocs {
            allow_stale: true,
            min_query_index: reply.index,
            max_query_time: 3_000_000_000,
            ..query
        };
        let client = self.client.clone();
        let asking = tokio::spawn(async move { client.call(&blocking, 30 * SECOND).await });
        self.beats().await;
        assert!(!asking.is_finished());
        let unchanged = asking.await.expect("the task").expect("a reply");
        assert_eq!(unchanged.index, reply.index);
    }

    /// Larger than the window of a stream, in both directions.
    async fn sends_and_receives_large_messages(&self) {
        let mut large = node();
        large.meta.insert("large".into(), "x".repeat(700_000));
        let request = NodeRegister {
            region: "global".into(),
            auth_token: self.heartbeat.auth_token.clone(),
            node: Some(Box::new(large.clone())),
            ..Default::default()
        };
        self.client
            .call(&request, 20 * SECOND)
            .await
            .expect("registered again");
        let request = NodeGetNode {
            region: "global".into(),
            auth_token: self.heartbeat.auth_token.clone(),
            node_id: NODE.into(),
            ..Default::default()
        };
        let reply = self
            .client
            .call(&request, 20 * SECOND)
            .await
            .expect("a reply");
        assert_eq!(reply.node.expect("the node").meta, large.meta);
    }

    async fn makes_many_calls_at_once(&self) {
        let calls = (0..500).map(|_| self.beats());
        futures::future::join_all(calls).await;
    }

    /// The server opens a stream on our connection.
    async fn is_called(&self) {
        let path = format!("/v1/client/stats?node_id={NODE}");
        let answer = asked_by_a_user(&self.nomad.http, &path).await;
        assert!(
            answer.contains("rpc: can't find method ClientStats.Stats"),
            "{answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nomad_server_accepts_the_node() {
    let Some(joined) = join().await else { return };
    joined.beats().await;
    joined.is_refused_by_type().await;
    joined.waits_for_allocations().await;
    joined.sends_and_receives_large_messages().await;
    joined.makes_many_calls_at_once().await;
    joined.is_called().await;
    joined.beats().await;

    let Joined {
        nomad,
        client,
        heartbeat,
    } = joined;
    let http = nomad.http.clone();
    drop(nomad);
    let error = client
        .call(&heartbeat, 3 * SECOND)
        .await
        .expect_err("it has ended");
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(TcpStream::connect(http).await.is_err());
}

fn identity(of: &Signed) -> Identity {
    Identity::from_pem(of.certificate.as_bytes(), of.key.as_bytes()).expect("an identity")
}

/// What a node with this certificate hears of a server with TLS.
async fn ping(
    nomad: &Nomad,
    ca: &Authority,
    own: Option<&Signed>,
    wait: Duration,
) -> Option<Error> {
    let servers = Servers::new(vec![nomad.rpc.clone()], Backoff::default(), 1);
    let believed = Authorities::from_pem(ca.pem.as_bytes()).expect("authorities");
    let own = own.map(identity);
    let config = tls::config(
        Believes::Named(believed),
        own.as_ref(),
        &Protocol::default(),
    );
    let config = Current::new(config.expect("settings"));
    let tls = Tls::new(Tcp, "global", config).expect("a region");
    let client = Client::new(tls, Arc::new(Answers), servers, Limits::default());
    client.call(&StatusPing::default(), wait).await.err()
}

#[tokio::test]
async fn nomad_server_with_tls_accepts_nodes_of_its_cluster() {
    let Some(program) = program() else {
        println!("skipped: there is no program `nomad` on the PATH");
        return;
    };
    let (ca, other) = (Authority::new(), Authority::new());
    let own = ca.member("server.global");
    let nomad = start(&program, |folder| {
        for (name, text) in [
            ("ca.pem", &ca.pem),
            ("cert.pem", &own.certificate),
            ("key.pem", &own.key),
        ] {
            fs::write(folder.join(name), text).expect("a file");
        }
        let folder = folder.display();
        format!(
            "tls {{ rpc = true, verify_server_hostname = true, ca_file = \"{folder}/ca.pem\", \
             cert_file = \"{folder}/cert.pem\", key_file = \"{folder}/key.pem\" }}"
        )
    });
    let member = ca.member("client.global");
    let refused = ping(&nomad, &ca, Some(&member), 60 * SECOND).await;
    assert_eq!(refused, None);
    let reason = |error: Option<Error>| match error {
        Some(Error::Unavailable {
            last: Some(last), ..
        }) => match *last {
            Error::Tls { reason, .. } => reason,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let none = ping(&nomad, &ca, None, 2 * SECOND).await;
    assert_eq!(reason(none), TlsError::CertificateRequired);
    // A certificate of a user is none of a node, nor is one of another region.
    for role in ["cli.global", "client.europe"] {
        let refused = ping(&nomad, &ca, Some(&ca.member(role)), 2 * SECOND).await;
        let reason = reason(refused);
        assert!(
            matches!(reason, TlsError::CertificateRefused(_)),
            "{role}: {reason:?}"
        );
    }
    let foreign = ping(&nomad, &other, Some(&member), 2 * SECOND).await;
    assert_eq!(reason(foreign), TlsError::UnknownAuthority);
    // Without TLS it says nothing.
    let servers = Servers::new(vec![nomad.rpc.clone()], Backoff::default(), 1);
    let client = Client::new(Tcp, Arc::new(Answers), servers, Limits::default());
    let plain = client.call(&StatusPing::default(), 2 * SECOND).await;
    assert!(matches!(plain, Err(Error::Unavailable { .. })), "{plain:?}");
}

/// Servers close the session of a stream that is not acknowledged within 75 s.
#[tokio::test]
#[ignore = "takes 90 s of real time"]
async fn nomad_server_waits_90_s_for_an_answer() {
    let Some(joined) = join().await else { return };
    let path = format!("/v1/client/gc?node_id={NODE}");
    let answer = asked_by_a_user(&joined.nomad.http, &path).await;
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
}
