//! The agent as a node of a real server of Nomad, where all is encrypted. Where there is no program `nomad` on the
//! PATH, this says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "../../tls/tests/authority/mod.rs"]
mod authority;
mod support;
#[path = "support/tls_files.rs"]
mod tls_files;

use std::env;
use std::process::Command;

use authority::Authority;
use serde_json::json;
use support::nomad::{Nomad, job};
use support::{Program, World, free_addr};
use tls_files::tls;

/// Both the wire and the node's own API are encrypted, and both sides show certificates.
#[test]
fn node_is_in_a_cluster_with_tls() {
    let ca = Authority::new();
    let server = ca.member("server.global");
    let Some(nomad) = Nomad::start_with(|folder| tls(folder, &ca, &server, false)) else {
        return;
    };
    let (world, addr) = (World::new(), free_addr());
    let node_tls = tls(&world.path(""), &ca, &ca.member("client.global"), true);
    let settings = |servers: &str, tls: &str| {
        format!(
            "name = \"here\"\ndata_dir = \"{}\"\nports {{\n http = {}\n}}\nclient {{\n servers = [\"{servers}\"]\n}}\n{tls}",
            world.data().display(),
            addr.rsplit(':').next().unwrap(),
        )
    };
    // A node that no authority of the cluster knows stays out, and says why.
    let stranger = Authority::new();
    let elsewhere = World::new();
    let foreign = tls(
        &elsewhere.path(""),
        &ca,
        &stranger.member("client.global"),
        false,
    );
    let file = world.file("agent.hcl", &settings(&nomad.rpc, &foreign));
    let args = ["agent", "-config", file.to_str().unwrap()];
    let refused = Program::start(args);
    refused.err_line("it does not take our certificate");
    drop(refused);
    assert_eq!(nomad.ask("GET", "/v1/nodes", ""), Some(json!([])));

    world.file("agent.hcl", &settings(&nomad.rpc, &node_tls));
    let _agent = Program::start(args);
    let node = nomad.node("ready");
    let id = node["ID"].as_str().unwrap();
    let node = nomad.ask("GET", &format!("/v1/node/{id}"), "").unwrap();
    assert_eq!(
        (&node["TLSEnabled"], &node["HTTPAddr"]),
        (&json!(true), &json!(addr))
    );
    nomad.submit(&job("sleeper", "service", "echo out; exec sleep 1000"));
    let alloc = nomad.alloc("sleeper", "running");

    // Nomad's program asks the server, and then the node.
    let user = ca.member("cli.global");
    let path = env::var_os("PATH").unwrap();
    let shown = Program::of(
        Command::new("nomad")
            .env_clear()
            .env("PATH", path)
            .env("HOME", world.path("home"))
            .env("NOMAD_ADDR", format!("http://{}", nomad.http))
            .env("NOMAD_CACERT", world.path("ca.pem"))
            .env(
                "NOMAD_CLIENT_CERT",
                world.file("user.pem", &user.certificate),
            )
            .env("NOMAD_CLIENT_KEY", world.file("user-key.pem", &user.key))
            .args(["alloc", "logs", alloc["ID"].as_str().unwrap()]),
    );
    assert_eq!(shown.end().ok(), "out");
    assert!(nomad.ask("DELETE", "/v1/job/sleeper", "").is_some());
    nomad.alloc("sleeper", "complete");
}
