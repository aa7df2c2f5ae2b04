//! How quickly allocations are read: run by hand, optimised, with `--ignored --nocapture`.

#![allow(clippy::expect_used)]

mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::handler::Node;
use common::peer::Peer;
use common::server::{Does, answer};
use common::{objects, recording};
use drover_rpc::connection::{Limits, open};
use drover_rpc::msgpack::{Scanner, decode, encode};
use drover_rpc::types::query::{AllocGetAllocs, Allocations};
use tokio::net::{TcpListener, TcpStream};

/// The processor time of this thread: what else the machine does counts not.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

/// The bodies of all recorded replies with allocations.
fn recorded() -> Vec<Vec<u8>> {
    let objects = objects(&recording("Alloc.GetAllocs.reply.msgpack"));
    objects.into_iter().skip(1).step_by(2).collect()
}

/// So many allocations in one reply, as servers send them: whole jobs, metrics and all.
fn reply_of(count: usize) -> Vec<u8> {
    let mut reply = b"\x82\xa5Index\x07\xa6Allocs\xdd".to_vec();
    reply.extend((count as u32).to_be_bytes());
    let body = &recorded()[0];
    // What lies between `Allocs` and the field after it is a list of one.
    let start = body
        .windows(7)
        .position(|part| part == b"\xa6Allocs")
        .expect("allocations")
        + 8;
    let end = start + drover_rpc::msgpack::end_of(&body[start..]).expect("an allocation");
    for _ in 0..count {
        reply.extend(&body[start..end]);
    }
    reply
}

#[test]
#[ignore = "measures"]
fn decoding_recorded_allocations() {
    let bodies = recorded();
    let bytes: usize = bodies.iter().map(Vec::len).sum();
    let (began, before) = (Instant::now(), processor_time());
    let mut rounds = 0;
    while began.elapsed() < Duration::from_secs(2) {
        for body in &bodies {
            let read: Allocations = decode(black_box(body)).expect("they are read");
            black_box(&read);
        }
        rounds += 1;
    }
    let read = (processor_time() - before).as_secs_f64() / f64::from(rounds);
    let (began, before) = (Instant::now(), processor_time());
    let mut rounds = 0;
    while began.elapsed() < Duration::from_secs(1) {
        for body in &bodies {
            black_box(Scanner::new(1 << 20).scan(black_box(body))).expect("they are scanned");
        }
        rounds += 1;
    }
    let scanned = (processor_time() - before).as_secs_f64() / f64::from(rounds);
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
    println!(
        "decoded {:.0} MB/s, scanned {:.0} MB/s",
        rate(read),
        rate(scanned)
    );
}

#[tokio::test]
#[ignore = "measures"]
async fn pulling_a_thousand_allocations() {
    let reply = reply_of(1000);
    let size = reply.len();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let (_peer, incoming, _) = Peer::start(stream);
        answer(incoming, move |_, _| {
            Does::Reply(Duration::ZERO, reply.clone())
        })
        .await;
    });
    let stream = TcpStream::connect(address).await.expect("it listens");
    let (node, work) = open(stream, "server", Arc::new(Node), Limits::default());
    tokio::spawn(work);
    for _ in 0..5 {
        let began = Instant::now();
        let reply = node
            .call(&AllocGetAllocs::default(), Duration::from_secs(60))
            .await;
        let reply = reply.expect("a reply");
        assert_eq!(reply.allocs.len(), 1000);
        println!("{size} bytes in {:?}", began.elapsed());
        black_box(encode(&reply.index).expect("a number"));
    }
}
