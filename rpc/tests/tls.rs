//! Calls over TLS, over a simulated network: whom a node and a server take, what is said where they do not, and what
//! an exchange of certificates changes.

#![allow(clippy::expect_used)]

#[path = "../../tls/tests/authority/mod.rs"]
mod authority;
mod common;

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use authority::{Authority, Signed, Valid};
use common::handler::Node;
use common::peer::Peer;
use common::server::{Does, answer};
use drover_rpc::client::{Client, Connector};
use drover_rpc::connection::Limits;
use drover_rpc::error::Error;
use drover_rpc::preamble;
use drover_rpc::servers::{Backoff, Servers};
use drover_rpc::tls::Tls;
use drover_rpc::types::query::StatusPing;
use drover_rpc::types::registration::NodeEmitEvents;
use drover_tls::client::{self, Believes};
use drover_tls::{Authorities, Current, Identity, Protocol, TlsError, server};
use rustls::{ClientConfig, ServerConfig};
use tokio::io::AsyncReadExt;
use tokio_rustls::TlsAcceptor;
use turmoil::net::{TcpListener, TcpStream};
use turmoil::{Builder, Sim};

const SECOND: Duration = Duration::from_secs(1);
const SERVER: &str = "server:4647";

/// TCP over the simulated network. It keeps the failures that it is notified of, as a log does.
#[derive(Clone, Default)]
struct Simulated {
    failures: Arc<Mutex<Vec<Error>>>,
}

impl Connector for Simulated {
    type Io = TcpStream;

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }

    fn failed(&self, error: &Error) {
        let mut failures = self.failures.lock().expect("not poisoned");
        failures.push(error.clone());
    }
}

type Caller = Client<Tls<Simulated>, Node>;

fn caller(config: Current<ClientConfig>) -> Caller {
    caller_over(Simulated::default(), config)
}

fn caller_over(network: Simulated, config: Current<ClientConfig>) -> Caller {
    let servers = Servers::new(vec![SERVER.to_owned()], Backoff::default(), 11);
    let tls = Tls::new(network, "global", config).expect("a region");
    Client::new(tls, Arc::new(Node), servers, Limits::default())
}

fn identity(of: &Signed) -> Identity {
    Identity::from_pem(of.certificate.as_bytes(), of.key.as_bytes()).expect("an identity")
}

fn authorities(of: &Authority) -> Authorities {
    Authorities::from_pem(of.pem.as_bytes()).expect("authorities")
}

fn server_of(own: &Signed, clients: &Authority) -> Arc<ServerConfig> {
    let clients = authorities(clients);
    server::config(&identity(own), Some(&clients), &Protocol::default()).expect("settings")
}

fn node_of(own: Option<&Signed>, servers: &Authority) -> Arc<ClientConfig> {
    let servers = Believes::Named(authorities(servers));
    let own = own.map(identity);
    client::config(servers, own.as_ref(), &Protocol::default()).expect("settings")
}

/// What a server does, and has done. It closes the connection when it is sent events.
#[derive(Clone)]
struct Server {
    config: Current<ServerConfig>,
    handshakes: Arc<AtomicU32>,
    peer: Arc<Mutex<Option<Peer>>>,
}

impl Server {
    fn new(config: Arc<ServerConfig>) -> Server {
        Server {
            config: Current::new(config),
            handshakes: Arc::default(),
            peer: Arc::default(),
        }
    }

    async fn serve(self) -> turmoil::Result {
        let listener = TcpListener::bind("0.0.0.0:4647").await?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            let server = self.clone();
            tokio::spawn(async move {
                assert_eq!(stream.read_u8().await.ok()?, preamble::TLS);
                let acceptor = TlsAcceptor::from(server.config.get());
                let stream = acceptor.accept(stream).await.ok()?;
                server.handshakes.fetch_add(1, Ordering::Relaxed);
                let (peer, incoming, _) = Peer::start(stream);
                *server.peer.lock().expect("not poisoned") = Some(peer.clone());
                let does = move |method: &str, _| match method {
                    "Node.EmitEvents" => {
                        peer.close();
                        Does::Nothing
                    }
                    _ => Does::empty(),
                };
                answer(incoming, does).await;
                Some(())
            });
        }
    }
}

fn sim<'a>() -> Sim<'a> {
    Builder::new()
        .simulation_duration(600 * SECOND)
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(20))
        .rng_seed(5)
        .build()
}

/// What a node with this configuration hears of a server with that one.
fn outcome(server: Arc<ServerConfig>, node: Arc<ClientConfig>) -> Result<(), Error> {
    let mut sim = sim();
    let server = Server::new(server);
    sim.host("server", move || server.clone().serve());
    outcome_in(sim, node)
}

fn outcome_in(mut sim: Sim<'_>, node: Arc<ClientConfig>) -> Result<(), Error> {
    let received = Arc::new(Mutex::new(None));
    let sender = received.clone();
    sim.client("node", async move {
        let caller = caller(Current::new(node));
        let reply = caller.call(&StatusPing::default(), 20 * SECOND).await;
        *sender.lock().expect("not poisoned") = Some(reply.map(|_| ()));
        Ok(())
    });
    sim.run().expect("no panic");
    let received = received.lock().expect("not poisoned").take();
    received.expect("an outcome")
}

/// The reason for which no server could be reached in the whole time of a call.
#[track_caller]
fn reason(outcome: Result<(), Error>) -> TlsError {
    let Err(Error::Unavailable {
        last: Some(last), ..
    }) = outcome
    else {
        panic!("{outcome:?}");
    };
    match *last {
        Error::Tls { server, reason } => {
            assert_eq!(server, SERVER);
            reason
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn members_of_a_cluster_call_each_other() {
    let ca = Authority::new();
    let (own, member) = (ca.member("server.global"), ca.member("client.global"));
    outcome(server_of(&own, &ca), node_of(Some(&member), &ca)).expect("a reply");
}

#[test]
fn server_of_another_authority_role_region_or_time_is_refused_by_type() {
    let (ca, other) = (Authority::new(), Authority::new());
    let member = ca.member("client.global");
    let node = node_of(Some(&member), &ca);
    let foreign = server_of(&other.member("server.global"), &ca);
    assert_eq!(
        reason(outcome(foreign, node.clone())),
        TlsError::UnknownAuthority
    );
    for role in ["client.global", "server.europe"] {
        let reason = reason(outcome(server_of(&ca.member(role), &ca), node.clone()));
        assert!(matches!(reason, TlsError::WrongName { .. }), "{reason:?}");
    }
    let expired = ca.sign_for(&["server.global.nomad"], Valid::Once);
    assert_eq!(
        reason(outcome(server_of(&expired, &ca), node)),
        TlsError::Expired
    );
}

#[test]
fn server_that_refuses_our_certificate_is_recognised() {
    let (ca, other) = (Authority::new(), Authority::new());
    let server = server_of(&ca.member("server.global"), &ca);
    let none = reason(outcome(server.clone(), node_of(None, &ca)));
    assert_eq!(none, TlsError::CertificateRequired);
    let foreign = other.member("client.global");
    let refused = reason(outcome(server, node_of(Some(&foreign), &ca)));
    assert!(
        matches!(refused, TlsError::CertificateRefused(_)),
        "{refused:?}"
    );
}

/// The first failure that the connector below TLS is notified of.
fn first_failure(mut sim: Sim<'_>, node: Arc<ClientConfig>) -> Option<Error> {
    let network = Simulated::default();
    let below = network.clone();
    sim.client("node", async move {
        let caller = caller_over(below, Current::new(node));
        let events = NodeEmitEvents::default();
        assert!(caller.call(&events, 5 * SECOND).await.is_err());
        Ok(())
    });
    sim.run().expect("no panic");
    let failures = network.failures.lock().expect("not poisoned");
    failures.first().cloned()
}

/// The log has it from there why servers are not used.
#[test]
fn connector_below_tls_is_notified_of_failures() {
    let (ca, other) = (Authority::new(), Authority::new());
    let member = ca.member("client.global");
    let failure = |server: &Signed, own: Option<&Signed>| {
        let mut sim = sim();
        let server = Server::new(server_of(server, &ca));
        sim.host("server", move || server.clone().serve());
        first_failure(sim, node_of(own, &ca))
    };
    let tls = |reason| {
        let server = SERVER.to_owned();
        Some(Error::Tls { server, reason })
    };
    let foreign = failure(&other.member("server.global"), Some(&member));
    assert_eq!(foreign, tls(TlsError::UnknownAuthority));
    let own = ca.member("server.global");
    assert_eq!(failure(&own, None), tls(TlsError::CertificateRequired));
    let lost = failure(&own, Some(&member));
    assert!(
        matches!(lost, Some(Error::ConnectionLost { sent: true, .. })),
        "{lost:?}"
    );
    let mut sim = sim();
    sim.host("server", std::future::pending::<turmoil::Result>);
    let none = first_failure(sim, node_of(Some(&member), &ca));
    assert!(matches!(none, Some(Error::Unreachable { .. })), "{none:?}");
}

#[test]
fn server_without_tls_is_recognised() {
    let ca = Authority::new();
    let mut sim = sim();
    sim.host("server", || async {
        let listener = TcpListener::bind("0.0.0.0:4647").await?;
        loop {
            // It closes what does not begin as it wants.
            drop(listener.accept().await?);
        }
    });
    let member = ca.member("client.global");
    let reason = reason(outcome_in(sim, node_of(Some(&member), &ca)));
    assert_eq!(reason, TlsError::ClosedInHandshake);
}

#[test]
fn server_that_never_finishes_the_handshake_is_given_up() {
    let ca = Authority::new();
    let mut sim = sim();
    sim.host("server", || async {
        let listener = TcpListener::bind("0.0.0.0:4647").await?;
        let mut held = Vec::new();
        loop {
            held.push(listener.accept().await?);
        }
    });
    let member = ca.member("client.global");
    let reason = reason(outcome_in(sim, node_of(Some(&member), &ca)));
    assert_eq!(reason, TlsError::TimedOut(5 * SECOND));
}

/// A cluster gets a new authority: what is open goes on, and what begins has the new certificates.
#[test]
fn exchange_of_certificates_keeps_connections() {
    let (old, new) = (Authority::new(), Authority::new());
    let server = Server::new(server_of(&old.member("server.global"), &old));
    let mut sim = sim();
    let host = server.clone();
    sim.host("server", move || host.clone().serve());
    sim.client("node", async move {
        let config = Current::new(node_of(Some(&old.member("client.global")), &old));
        let caller = caller(config.clone());
        let ping = async || caller.call(&StatusPing::default(), 20 * SECOND).await;
        ping().await.expect("a reply");
        server
            .config
            .set(server_of(&new.member("server.global"), &new));
        config.set(node_of(Some(&new.member("client.global")), &new));
        ping().await.expect("a reply");
        assert_eq!(server.handshakes.load(Ordering::Relaxed), 1);
        let peer = server.peer.lock().expect("not poisoned").take();
        peer.expect("a connection").close();
        // Both have what is new.
        ping().await.expect("a reply");
        assert_eq!(server.handshakes.load(Ordering::Relaxed), 2);
        // The node has what is old again, and is connected.
        config.set(node_of(Some(&old.member("client.global")), &old));
        ping().await.expect("a reply");
        let peer = server.peer.lock().expect("not poisoned").take();
        peer.expect("a connection").close();
        let refused = reason(ping().await.map(|_| ()));
        assert_eq!(refused, TlsError::UnknownAuthority);
        Ok(())
    });
    sim.run().expect("no panic");
}

#[test]
fn region_that_is_no_name_is_refused() {
    let ca = Authority::new();
    let config = Current::new(node_of(None, &ca));
    assert!(Tls::new(Simulated::default(), "no region", config).is_err());
}
