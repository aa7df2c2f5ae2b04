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

use std::cell::OnceCell;
use std::env;
use std::process::Command;

use authority::Authority;
use rustix::process::Signal;
use serde_json::json;
use support::nomad::{Nomad, job};
use support::{Program, World, free_addr};
use tls_files::tls;

/// Nomad's own program, with a certificate of this authority.
fn nomads(world: &World, nomad: &Nomad, ca: &Authority, args: &[&str]) -> Program {
    let user = ca.member("cli.global");
    let path = env::var_os("PATH").unwrap();
    Program::of(
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
            .args(args),
    )
}

/// The settings of a node of this server.
fn settings(world: &World, addr: &str, nomad: &Nomad, tls: &str) -> String {
    format!(
        "name = \"here\"\ndata_dir = \"{}\"\nports {{\n http = {}\n}}\nclient {{\n servers = [\"{}\"]\n}}\n{tls}",
        world.data().display(),
        addr.rsplit(':').next().unwrap(),
        nomad.rpc,
    )
}

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
    // A node that no authority of the cluster knows stays out, and says why.
    let stranger = Authority::new();
    let elsewhere = World::new();
    let foreign = tls(
        &elsewhere.path(""),
        &ca,
        &stranger.member("client.global"),
        false,
    );
    let file = world.file("agent.hcl", &settings(&world, &addr, &nomad, &foreign));
    let args = ["agent", "-config", file.to_str().unwrap()];
    let refused = Program::start(args);
    refused.err_line("it does not take our certificate");
    drop(refused);
    assert_eq!(nomad.ask("GET", "/v1/nodes", ""), Some(json!([])));

    world.file("agent.hcl", &settings(&world, &addr, &nomad, &node_tls));
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
    let id = alloc["ID"].as_str().unwrap();
    let shown = nomads(&world, &nomad, &ca, &["alloc", "logs", id]);
    assert_eq!(shown.end().ok(), "out");
    assert!(nomad.ask("DELETE", "/v1/job/sleeper", "").is_some());
    nomad.alloc("sleeper", "complete");
}

#[test]
fn certificates_to_servers_are_read_anew_and_open_streams_go_on() {
    let ca = Authority::new();
    let folder = OnceCell::new();
    let started = Nomad::start_with(|dir| {
        folder.set(dir.to_owned()).unwrap();
        tls(dir, &ca, &ca.member("server.global"), false)
    });
    let Some(mut nomad) = started else { return };
    let (world, addr) = (World::new(), free_addr());
    let own = tls(&world.path(""), &ca, &ca.member("client.global"), true);
    let file = world.file("agent.hcl", &settings(&world, &addr, &nomad, &own));
    let agent = Program::start(["agent", "-config", file.to_str().unwrap()]);
    nomad.node("ready");
    let counts = "i=0; while :; do i=$((i + 1)); echo line $i end; sleep 0.1; done";
    nomad.submit(&job("counts", "service", counts));
    let alloc = nomad.alloc("counts", "running");
    let id = alloc["ID"].as_str().unwrap();
    let followed = nomads(&world, &nomad, &ca, &["alloc", "logs", "-f", id]);
    followed.line("line 3 end");

    // Another authority follows the first.
    let next = Authority::new();
    tls(&world.path(""), &next, &next.member("client.global"), true);
    agent.signal(Signal::HUP);
    agent.err_line("certificates were read anew");
    let seen = followed.count_lines();
    followed.line(&format!("line {} end", seen + 20));

    nomad.kill_9();
    let server = next.member("server.global");
    tls(folder.get().unwrap(), &next, &server, false);
    nomad.start_again();
    nomad.node("ready");
    nomad.submit(&job("more", "batch", "exit 0"));
    nomad.alloc("more", "complete");
}
