//! The API stays usable whatever one client does with its connections.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use support::{Lone, TIMEOUT, request};

/// More than the agent serves from one address.
const MANY: usize = 600;

fn connect(addr: &str) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

#[test]
fn idle_connections_leave_agent_usable() {
    let setup = Lone::new();
    let addr = setup.agent.addr.clone();
    let idle: Vec<TcpStream> = (0..MANY).map(|_| connect(&addr)).collect();
    assert_eq!(
        request(&addr, "GET", "/v1/jobs", None).unwrap(),
        (200, "[]".to_owned())
    );
    setup.run(&["job", "status"]).ok();
    drop(idle);
}

#[test]
fn stalled_bodies_leave_agent_usable() {
    let setup = Lone::new();
    let addr = setup.agent.addr.clone();
    let head = format!("PUT /v1/jobs HTTP/1.1\r\nHost: {addr}\r\nContent-Length: 1000\r\n\r\n{{");
    let mut stalled: Vec<TcpStream> = (0..MANY).map(|_| connect(&addr)).collect();
    for stream in &mut stalled {
        // Some were answered, and others closed, before this.
        let _ = stream.write_all(head.as_bytes());
    }
    setup.run(&["job", "status"]).ok();
    let mut last = stalled.pop().unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).unwrap();
    let refused = answer.starts_with("HTTP/1.1 429 ") || answer.starts_with("HTTP/1.1 408 ");
    assert!(refused, "{answer}");
    assert!(
        answer.contains("this agent") || answer.contains("did not arrive"),
        "{answer}"
    );
}
