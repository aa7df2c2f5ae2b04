//! Groups with a network of their own that a real server of Nomad places on this node: it asks for plugins that Nomad's
//! own nodes need for them. In a network namespace that the test makes. Without root, or a program `nomad` on the PATH,
//! this test says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::time::Instant;

use serde_json::{Value, json};
use support::netns::{leave_network, set_up};
use support::nomad::{Nomad, job, node_of};
use support::{TIMEOUT, exchange};

/// An address of the host that is none of its loopback's.
const HOST: &str = "10.9.0.1";

/// A web server behind the bridge.
fn web() -> Value {
    let mut web = job("web", "service", "");
    let group = &mut web["TaskGroups"][0];
    group["Networks"] = json!([{
        "Mode": "bridge",
        "DynamicPorts": [{ "Label": "http", "To": 8080 }],
    }]);
    let task = &mut group["Tasks"][0];
    task["Driver"] = json!("exec");
    task["Config"] = json!({
        "command": "/bin/busybox",
        "args": ["httpd", "-f", "-p", "8080", "-h", "/local"],
    });
    task["Templates"] = json!([{ "EmbeddedTmpl": "hello\n", "DestPath": "local/index.html" }]);
    web
}

#[test]
fn web_server_behind_bridge_is_placed_by_server_and_reached() {
    if leave_network().is_none() || set_up(&["addr", "add", "10.9.0.1/32", "dev", "lo"]).is_none() {
        return;
    }
    let Some(nomad) = Nomad::start() else { return };
    let _lone = node_of(&nomad);
    nomad.submit(&web());
    let alloc = nomad.alloc("web", "running");
    let alloc = alloc["ID"].as_str().unwrap();
    let alloc = nomad.wait(&format!("/v1/allocation/{alloc}"), |alloc| {
        Some(alloc.clone())
    });
    let port = &alloc["AllocatedResources"]["Shared"]["Ports"][0]["Value"];
    let until = Instant::now() + TIMEOUT;
    let served = loop {
        if let Ok((200, body)) = exchange(&format!("{HOST}:{port}"), b"GET / HTTP/1.0\r\n\r\n") {
            break body;
        }
        assert!(
            Instant::now() < until,
            "nobody serves at {HOST}:{port}: {alloc}"
        );
        std::thread::yield_now();
    };
    assert_eq!(served, "hello\n");
    let address = alloc["NetworkStatus"]["Address"].as_str().unwrap();
    assert!(address.starts_with("172.26."), "{address}");
}
