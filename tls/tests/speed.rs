//! How fast handshakes are, in the release profile:
//! `cargo test --release -p drover-tls --test speed -- --ignored --nocapture`.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may panic, and tells"
)]

mod authority;

use std::sync::Arc;
use std::time::{Duration, Instant};

use authority::{Authority, Signed};
use drover_tls::client::{self, Believes, server_name};
use drover_tls::{Authorities, Identity, Protocol, server};
use rustls::client::Resumption;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio_rustls::TlsAcceptor;

/// The processor time of this thread: what else the machine does counts not.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

fn identity(of: &Signed) -> Identity {
    Identity::from_pem(of.certificate.as_bytes(), of.key.as_bytes()).expect("an identity")
}

/// Both sides on one thread, with certificates of P-256 on both, and none resumed.
#[tokio::test]
#[ignore = "measures, and is to be run alone"]
async fn handshakes_a_second_on_one_core() {
    let ca = Authority::new();
    let believed = Authorities::from_pem(ca.pem.as_bytes()).expect("authorities");
    let (own, member) = (ca.member("server.global"), ca.member("client.global"));
    let protocol = Protocol::default();
    let server = server::config(&identity(&own), Some(&believed), &protocol).expect("settings");
    let believes = Believes::Named(believed);
    let node = client::config(believes, Some(&identity(&member)), &protocol).expect("settings");
    let mut node = (*node).clone();
    node.resumption = Resumption::disabled();
    let node = Arc::new(node);
    let name = server_name("server.global.nomad").expect("a name");
    let (began, before, mut count) = (Instant::now(), processor_time(), 0_u32);
    while began.elapsed() < Duration::from_secs(5) {
        let (ours, theirs) = duplex(64 << 10);
        let connecting = client::connect(ours, name.clone(), node.clone(), Duration::from_secs(5));
        let accepting = TlsAcceptor::from(server.clone()).accept(theirs);
        let (stream, accepted) = tokio::join!(connecting, accepting);
        let (mut stream, mut accepted) = (stream.expect("ours"), accepted.expect("theirs"));
        accepted.write_u8(1).await.expect("sent");
        accepted.flush().await.expect("sent");
        assert_eq!(stream.read_u8().await.expect("a byte"), 1);
        count += 1;
    }
    let took = processor_time() - before;
    let (each, rate) = (took / count, f64::from(count) / took.as_secs_f64());
    println!("{rate:.0} handshakes a second, {each:?} each for both sides together");
}
