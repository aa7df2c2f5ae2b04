//! Both sides of a handshake: who believes whom, and which error is returned where one does not.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

mod authority;

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use authority::{Authority, Signed, Valid};
use drover_tls::client::{self, Believes, Stream, server_name};
use drover_tls::{Authorities, Identity, Protocol, TlsError, server};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::TlsAcceptor;

const LIMIT: Duration = Duration::from_secs(5);
const SERVER: &str = "server.global.nomad";

fn identity(of: &Signed) -> Identity {
    Identity::from_pem(of.certificate.as_bytes(), of.key.as_bytes()).expect("an identity")
}

fn authorities(of: &Authority) -> Authorities {
    Authorities::from_pem(of.pem.as_bytes()).expect("authorities")
}

fn protocol(version: &str) -> Protocol {
    Protocol::new(Some(version), None).expect("a version")
}

/// A server that takes clients of this authority.
fn server(own: &Signed, clients: &Authority) -> Arc<ServerConfig> {
    server_of("tls12", own, clients)
}

fn server_of(version: &str, own: &Signed, clients: &Authority) -> Arc<ServerConfig> {
    let clients = authorities(clients);
    server::config(&identity(own), Some(&clients), &protocol(version)).expect("settings")
}

/// A node that believes this authority.
fn node(own: Option<&Signed>, servers: &Authority) -> Arc<ClientConfig> {
    let servers = Believes::Named(authorities(servers));
    let own = own.map(identity);
    client::config(servers, own.as_ref(), &Protocol::default()).expect("settings")
}

/// The answer to a byte that is sent over TLS.
async fn exchange(server: Arc<ServerConfig>, node: Arc<ClientConfig>) -> Result<(), TlsError> {
    let (ours, theirs) = duplex(64 << 10);
    tokio::spawn(async move {
        let mut stream = TlsAcceptor::from(server).accept(theirs).await?;
        let byte = stream.read_u8().await?;
        stream.write_u8(byte + 1).await?;
        stream.flush().await
    });
    let mut stream = connect(ours, node).await?;
    let answer = async {
        stream.write_u8(41).await?;
        stream.flush().await?;
        stream.read_u8().await
    };
    match answer.await {
        Ok(answer) => {
            assert_eq!(answer, 42);
            Ok(())
        }
        Err(error) => Err(TlsError::within(&error).expect("explained").clone()),
    }
}

async fn connect(
    io: DuplexStream,
    node: Arc<ClientConfig>,
) -> Result<Stream<DuplexStream>, TlsError> {
    client::connect(io, server_name(SERVER).unwrap(), node, LIMIT).await
}

#[tokio::test]
async fn members_of_one_cluster_believe_each_other() {
    let ca = Authority::new();
    let (own, member) = (ca.member("server.global"), ca.member("client.global"));
    exchange(server(&own, &ca), node(Some(&member), &ca))
        .await
        .unwrap();
}

#[tokio::test]
async fn certificate_of_another_authority_is_not_believed() {
    // They have the same name.
    let (ca, other) = (Authority::new(), Authority::new());
    let (own, member) = (other.member("server.global"), ca.member("client.global"));
    let refused = exchange(server(&own, &ca), node(Some(&member), &ca)).await;
    assert_eq!(refused, Err(TlsError::UnknownAuthority));
}

#[tokio::test]
async fn server_of_another_role_or_region_is_refused_unless_names_do_not_count() {
    let ca = Authority::new();
    let member = ca.member("client.global");
    for role in ["client.global", "cli.global", "server.europe"] {
        let server = server(&ca.member(role), &ca);
        let refused = exchange(server.clone(), node(Some(&member), &ca)).await;
        let Err(TlsError::WrongName { wanted, has }) = &refused else {
            panic!("{role}: {refused:?}");
        };
        assert_eq!(wanted, SERVER);
        assert_eq!(has[0], format!("{role}.nomad"));
        let believes = Believes::Signed(authorities(&ca));
        let own = identity(&member);
        let chain = client::config(believes, Some(&own), &Protocol::default()).unwrap();
        exchange(server, chain).await.unwrap();
    }
}

#[tokio::test]
async fn chain_counts_even_where_names_do_not() {
    let (ca, other) = (Authority::new(), Authority::new());
    let member = identity(&ca.member("client.global"));
    let server = server(&other.member("server.global"), &ca);
    let signed = Believes::Signed(authorities(&ca));
    let chain = client::config(signed, Some(&member), &Protocol::default()).unwrap();
    let refused = exchange(server.clone(), chain).await;
    assert_eq!(refused, Err(TlsError::UnknownAuthority));
    let anybody = client::config(Believes::Anybody, Some(&member), &Protocol::default()).unwrap();
    exchange(server, anybody).await.unwrap();
}

/// What a node looks at, by its settings: names, one name more, or the authority alone.
fn by_each_setting(own: &Signed, servers: &Authority) -> [Arc<ClientConfig>; 3] {
    let servers = authorities(servers);
    let or = server_name("client.global.nomad").unwrap();
    let settings = [
        Believes::Named(servers.clone()),
        Believes::NamedOr(servers.clone(), or),
        Believes::Signed(servers),
    ];
    let own = identity(own);
    settings.map(|believes| client::config(believes, Some(&own), &Protocol::default()).unwrap())
}

/// A server that shows a certificate, and signs with a key that need not belong to it.
fn server_with_key(
    version: &'static SupportedProtocolVersion,
    certificate: &str,
    key: &str,
) -> Arc<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let key = ring::sign::any_supported_type(&key).unwrap();
    let shown = SingleCertAndKey::from(CertifiedKey::new(chain, key));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(shown));
    Arc::new(config)
}

/// A certificate is public: only a signature in the handshake shows that a server is its holder.
#[tokio::test]
async fn server_without_the_key_of_its_certificate_is_refused() {
    let ca = Authority::new();
    let member = ca.member("client.global");
    let (own, other) = (ca.member("server.global"), ca.member("server.global"));
    for version in [&TLS12, &TLS13] {
        for node in by_each_setting(&member, &ca) {
            let owner = server_with_key(version, &own.certificate, &own.key);
            exchange(owner, node.clone()).await.unwrap();
            let impostor = server_with_key(version, &own.certificate, &other.key);
            let refused = exchange(impostor, node).await;
            assert!(refused.is_err(), "{version:?}");
        }
    }
}

/// As Vault signs: the file of authorities has the root, and servers send what is between.
#[tokio::test]
async fn certificate_of_an_intermediate_authority_is_believed_with_its_chain_alone() {
    let (ca, other) = (Authority::new(), Authority::new());
    let (intermediate, foreign) = (ca.intermediate(), other.intermediate());
    let member = ca.member("client.global");
    let own = intermediate.member("server.global");
    let with = |between: &Authority, own: &Signed| Signed {
        certificate: format!("{}{}", own.certificate, between.pem),
        key: own.key.clone(),
    };
    let chain = with(&intermediate, &own);
    let of_other = with(&foreign, &foreign.member("server.global"));
    for node in by_each_setting(&member, &ca) {
        exchange(server(&chain, &ca), node.clone()).await.unwrap();
        for refused in [&own, &of_other] {
            let refused = exchange(server(refused, &ca), node.clone()).await;
            assert_eq!(refused, Err(TlsError::UnknownAuthority));
        }
    }
}

/// Either name will do, and no third one; all else counts as ever.
#[tokio::test]
async fn second_name_counts_beside_the_one_that_is_asked_for() {
    let (ca, other) = (Authority::new(), Authority::new());
    let member = identity(&ca.member("client.global"));
    let or = server_name("client.global.nomad").unwrap();
    let believes = Believes::NamedOr(authorities(&ca), or);
    let either = client::config(believes, Some(&member), &Protocol::default()).unwrap();
    for version in ["tls12", "tls13"] {
        for role in ["server.global", "client.global"] {
            let own = ca.member(role);
            exchange(server_of(version, &own, &ca), either.clone())
                .await
                .unwrap();
        }
    }
    let refused = exchange(server(&ca.member("cli.global"), &ca), either.clone()).await;
    let Err(TlsError::WrongName { wanted, .. }) = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(wanted, SERVER);
    let foreign = other.member("client.global");
    let refused = exchange(server(&foreign, &ca), either.clone()).await;
    assert_eq!(refused, Err(TlsError::UnknownAuthority));
    let old = ca.sign_for(&["client.global.nomad"], Valid::Once);
    let refused = exchange(server(&old, &ca), either).await;
    assert_eq!(refused, Err(TlsError::Expired));
}

#[test]
fn name_at_an_address_is_its_host() {
    for (address, host) in [
        ("box:4646", "box"),
        ("10.0.0.9:4646", "10.0.0.9"),
        ("[fd00::1]:4646", "fd00::1"),
    ] {
        let name = client::name_at(address).unwrap();
        assert_eq!(name.to_str(), host);
    }
    assert!(client::name_at("a b:1").is_err());
}

#[tokio::test]
async fn certificate_out_of_its_time_is_refused() {
    let ca = Authority::new();
    let member = ca.member("client.global");
    for (valid, expected) in [
        (Valid::Once, TlsError::Expired),
        (Valid::Later, TlsError::NotYetValid),
    ] {
        let own = ca.sign_for(&[SERVER], valid);
        let refused = exchange(server(&own, &ca), node(Some(&member), &ca)).await;
        assert_eq!(refused, Err(expected));
    }
}

/// With TLS 1.2 it is refused during the handshake, with 1.3 after it.
#[tokio::test]
async fn refusal_of_own_certificate_is_recognised() {
    let (ca, other) = (Authority::new(), Authority::new());
    let own = ca.member("server.global");
    let expired = ca.sign_for(&["client.global.nomad"], Valid::Once);
    let foreign = other.member("client.global");
    for version in ["tls12", "tls13"] {
        let server = match version {
            "tls13" => server_of(version, &own, &ca),
            _ => only_tls12(&own, &ca),
        };
        let none = exchange(server.clone(), node(None, &ca)).await;
        assert_eq!(none, Err(TlsError::CertificateRequired), "{version}");
        for refused in [&foreign, &expired] {
            let refused = exchange(server.clone(), node(Some(refused), &ca)).await;
            assert!(
                matches!(refused, Err(TlsError::CertificateRefused(_))),
                "{version}: {refused:?}"
            );
        }
    }
}

/// A server as an old one.
fn only_tls12(own: &Signed, clients: &Authority) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(clients.pem.as_bytes()).unwrap())
        .unwrap();
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots),
        provider.clone(),
    );
    let chain = CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![chain], key)
        .unwrap();
    Arc::new(config)
}

#[tokio::test]
async fn least_version_and_suites_are_kept() {
    let ca = Authority::new();
    let (own, member) = (
        ca.member("server.global"),
        identity(&ca.member("client.global")),
    );
    let with = |version: &str, suites: Option<&str>| {
        let protocol = Protocol::new(Some(version), suites).unwrap();
        let believes = Believes::Named(authorities(&ca));
        client::config(believes, Some(&member), &protocol).unwrap()
    };
    let old = only_tls12(&own, &ca);
    exchange(old.clone(), with("tls12", None)).await.unwrap();
    exchange(old.clone(), with("tls10", None)).await.unwrap();
    let refused = exchange(old.clone(), with("tls13", None)).await;
    assert!(
        matches!(refused, Err(TlsError::NothingInCommon(_))),
        "{refused:?}"
    );
    // Of the certificate's kind of key, and not of it.
    let fits = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_128_CBC_SHA";
    exchange(old.clone(), with("tls12", Some(fits)))
        .await
        .unwrap();
    let unfit = Some("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
    let refused = exchange(old, with("tls12", unfit)).await;
    assert!(
        matches!(refused, Err(TlsError::NothingInCommon(_))),
        "{refused:?}"
    );
    exchange(server(&own, &ca), with("tls12", unfit))
        .await
        .unwrap();
}

#[test]
fn unknown_version_or_suite_is_named_with_those_that_are_known() {
    for (version, suites, words) in [
        (Some("tls14"), None, "known are tls10, tls11, tls12, tls13"),
        (None, Some("TLS_NULL"), "unknown suite \"TLS_NULL\""),
        (None, Some("TLS_RSA_WITH_AES_128_CBC_SHA"), "too weak"),
    ] {
        let why = Protocol::new(version, suites).unwrap_err();
        assert!(why.contains(words), "{why}");
    }
    assert!(Protocol::new(Some(""), Some(" ")).is_ok());
}

#[tokio::test]
async fn peer_without_tls_is_recognised() {
    let ca = Authority::new();
    let node = node(None, &ca);
    let (ours, mut theirs) = duplex(1024);
    theirs
        .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        .await
        .unwrap();
    let refused = connect(ours, node.clone()).await.map(|_| ());
    assert_eq!(refused, Err(TlsError::NotTls));
    let (ours, theirs) = duplex(1024);
    drop(theirs);
    let refused = connect(ours, node).await.map(|_| ());
    assert_eq!(refused, Err(TlsError::ClosedInHandshake));
}

#[tokio::test(start_paused = true)]
async fn handshake_has_a_deadline() {
    let ca = Authority::new();
    let (ours, _theirs) = duplex(64 << 10);
    let refused = connect(ours, node(None, &ca)).await.map(|_| ());
    assert_eq!(refused, Err(TlsError::TimedOut(LIMIT)));
}

#[tokio::test]
async fn connection_closed_before_handshake_is_recognised() {
    let ca = Authority::new();
    let (own, member) = (ca.member("server.global"), ca.member("client.global"));
    let (ours, theirs) = duplex(64 << 10);
    let accepting = TlsAcceptor::from(server(&own, &ca)).accept(theirs);
    let (stream, accepted) = tokio::join!(connect(ours, node(Some(&member), &ca)), accepting);
    drop(accepted.unwrap());
    let error = stream.unwrap().read_u8().await.unwrap_err();
    assert_eq!(TlsError::within(&error), Some(&TlsError::ClosedUnheard));
}

#[tokio::test]
async fn connection_closed_after_handshake_ends_as_any_other() {
    let ca = Authority::new();
    let (own, member) = (ca.member("server.global"), ca.member("client.global"));
    let (ours, theirs) = duplex(64 << 10);
    let accepting = TlsAcceptor::from(server(&own, &ca)).accept(theirs);
    let (stream, accepted) = tokio::join!(connect(ours, node(Some(&member), &ca)), accepting);
    let (mut stream, mut accepted) = (stream.unwrap(), accepted.unwrap());
    accepted.write_u8(1).await.unwrap();
    accepted.shutdown().await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), 1);
    let error = stream.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(TlsError::within(&error), None);
}

#[test]
fn file_that_cannot_be_used_is_named_and_no_key_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let ca = Authority::new();
    let (one, two) = (ca.member("client.global"), ca.member("client.global"));
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let certificate = file("cert.pem", one.certificate.as_bytes());
    let key = file("key.pem", one.key.as_bytes());
    let other_key = file("other.pem", two.key.as_bytes());
    let nothing = file("nothing.pem", b"nothing");
    let large = file("large.pem", &vec![b'x'; (1 << 20) + 1]);
    let cut = &one.key[..one.key.len() / 2];
    let broken = file("broken.pem", cut.as_bytes());
    let shown = format!("{:?}", Identity::read(&certificate, &key).unwrap());
    assert_eq!(shown, "Identity");
    let secret: Vec<&str> = one.key.lines().skip(1).take(1).collect();
    for (key, words) in [
        (&other_key, "not the key of the certificate"),
        (&nothing, "no key in it"),
        (&certificate, "no key in it"),
        (&broken, "no key in it"),
        (&large, "more than 1048576 bytes"),
        (&folder.path().join("missing.pem"), "No such file"),
        (&folder.path().to_owned(), "is no file"),
    ] {
        let why = Identity::read(&certificate, key).unwrap_err();
        let (text, debug) = (why.to_string(), format!("{why:?}"));
        assert!(text.contains(words), "{text}");
        assert!(text.contains(&key.display().to_string()), "{text}");
        assert!(!text.contains(secret[0]) && !debug.contains(secret[0]));
    }
    let why = Authorities::read(&key).unwrap_err().to_string();
    assert!(why.contains("there is no certificate in it"), "{why}");
    let many = ca.pem.repeat(1025);
    let why = Authorities::from_pem(many.as_bytes()).unwrap_err();
    assert!(why.contains("more than 1024 certificates"), "{why}");
}

/// Those of certbot are links; those of a mounted secret are links through a link to a folder.
#[test]
fn certificate_key_and_authorities_behind_links_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let ca = Authority::new();
    let own = ca.member("client.global");
    fs::create_dir(path("..1")).unwrap();
    symlink("..1", path("..data")).unwrap();
    let files = [
        ("tls.crt", &own.certificate),
        ("tls.key", &own.key),
        ("ca.crt", &ca.pem),
    ];
    for (name, text) in files {
        fs::write(path("..1").join(name), text).unwrap();
        symlink(format!("..data/{name}"), path(name)).unwrap();
    }
    let (certificate, key, authorities) = (path("tls.crt"), path("tls.key"), path("ca.crt"));
    Identity::read(&certificate, &key).unwrap();
    Authorities::read(&authorities).unwrap();
    Authorities::read_all(&[authorities.clone(), authorities.clone()]).unwrap();
    Authorities::of_machine(&authorities).unwrap();
    let why = Authorities::read(&path("..data")).unwrap_err().to_string();
    assert!(why.contains("is no file"), "{why}");
    fs::remove_file(path("..1").join("tls.key")).unwrap();
    let why = Identity::read(&certificate, &key).unwrap_err().to_string();
    assert!(why.contains("tls.key: No such file"), "{why}");
}
