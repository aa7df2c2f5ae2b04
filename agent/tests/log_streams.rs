//! Logs that are followed through the API, as Nomad's programs do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use support::{Lone, TIMEOUT};

const TALKER: &str = r#"
job "talker" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "while :; do echo line; sleep 0.05; done"]
      }
    }
  }
}
"#;

/// Nomad's command line reads both outputs in turns: one of which nothing came would hold up the other for ever.
#[test]
fn silent_output_has_heartbeats_while_the_other_is_written() {
    let lone = Lone::new();
    let file = lone.world.file("talker.hcl", TALKER);
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
    let id = lone.agent.wait_for("/v1/job/talker/allocations", |allocs| {
        let alloc = allocs.get(0)?;
        (alloc["ClientStatus"] == "running").then(|| alloc["ID"].as_str().unwrap().to_owned())
    });
    let mut stream = TcpStream::connect(&lone.agent.addr).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let asked = format!(
        "GET /v1/client/fs/logs/{id}?task=t&type=stderr&follow=true HTTP/1.1\r\nHost: {}\r\n\r\n",
        lone.agent.addr
    );
    stream.write_all(asked.as_bytes()).unwrap();
    let mut received = String::new();
    while !received.contains("{}") {
        let mut bytes = [0; 1024];
        let count = stream.read(&mut bytes).expect("a heartbeat");
        assert!(count > 0, "it ended: {received}");
        received.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
}
