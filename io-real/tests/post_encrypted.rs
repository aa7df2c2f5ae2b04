//! Posting over TLS: whom it believes, and what is sent to nobody else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use drover_io_real::post::{PostBox, check_ca_file};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};
use url::Url;

fn fixture(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/fixtures/tls").join(name)
}

/// A server for one connection, with a certificate for `localhost` that no machine trusts. What it was sent; nothing
/// if there was no handshake.
struct Server {
    at: SocketAddr,
    received: JoinHandle<Option<String>>,
}

impl Server {
    fn start(answer: &'static str) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = vec![CertificateDer::from_pem_file(fixture("server.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let received = std::thread::spawn(move || {
            let (connection, _) = listener.accept().unwrap();
            serve(Arc::new(config), connection, answer)
        });
        Server { at, received }
    }

    fn post_box(&self, host: &str, ca_file: Option<PathBuf>) -> PostBox {
        let url = format!("https://{host}:{}/hook?token=s3cret", self.at.port());
        PostBox {
            url: Url::parse(&url).unwrap(),
            headers: BTreeMap::from([("Authorization".to_owned(), "Bearer t0ken".to_owned())]),
            timeout: Duration::from_secs(30),
            ca_file,
        }
    }
}

fn serve(config: Arc<ServerConfig>, mut socket: TcpStream, answer: &str) -> Option<String> {
    let mut tls = ServerConnection::new(config).unwrap();
    let mut stream = Stream::new(&mut tls, &mut socket);
    let (mut request, mut part) = (Vec::new(), [0; 4096]);
    while !request.ends_with(b"the body") {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(some) => request.extend_from_slice(&part[..some]),
        }
    }
    let head = format!("HTTP/1.1 {answer}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    stream.write_all(head.as_bytes()).unwrap();
    stream.flush().unwrap();
    Some(String::from_utf8(request).unwrap())
}

async fn post(to: &PostBox) -> Result<drover_io_real::post::Answer, String> {
    to.post("text/plain", bytes::Bytes::from_static(b"the body"))
        .await
}

#[tokio::test]
async fn server_of_configured_authority_is_notified() {
    let server = Server::start("503 Busy\r\nRetry-After: 7");
    let to = server.post_box("localhost", Some(fixture("ca.pem")));
    let answer = post(&to).await.unwrap();
    assert_eq!((answer.status, answer.words.as_str()), (503, "ok"));
    assert_eq!(answer.retry_after, Some(Duration::from_secs(7)));
    let received = server.received.join().unwrap().unwrap();
    assert!(
        received.starts_with("POST /hook?token=s3cret HTTP/1.1\r\n"),
        "{received}"
    );
    assert!(
        received
            .to_lowercase()
            .contains("authorization: bearer t0ken"),
        "{received}"
    );
}

/// Whoever cannot prove who he is learns neither the path nor the headers nor what is posted.
#[tokio::test]
async fn server_with_untrusted_certificate_is_sent_nothing() {
    for (host, ca_file) in [
        // This machine trusts others.
        ("localhost", None),
        ("localhost", Some(fixture("other-ca.pem"))),
        // The certificate is for another name.
        ("127.0.0.1", Some(fixture("ca.pem"))),
    ] {
        let server = Server::start("200 OK");
        let to = server.post_box(host, ca_file.clone());
        let why = post(&to).await.unwrap_err();
        assert!(why.contains("certificate"), "{host} {ca_file:?}: {why}");
        assert!(!why.contains("s3cret") && !why.contains("t0ken"), "{why}");
        assert_eq!(server.received.join().unwrap(), None, "{host} {ca_file:?}");
    }
}

#[test]
fn file_without_certificates_is_refused() {
    let why = |name: &str| check_ca_file(&fixture(name)).unwrap_err();
    assert!(why("nothing.pem").contains("No such file"));
    assert!(why("server.key").contains("no certificate"));
    assert_eq!(check_ca_file(&fixture("ca.pem")), Ok(()));
}
