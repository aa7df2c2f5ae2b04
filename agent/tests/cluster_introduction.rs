//! The agent as a node of servers that take only nodes that were introduced. Where there is no program `nomad` on the
//! PATH, these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::nomad::Nomad;
use support::{Program, World, command, free_addr};

const STRICT: &str = "server {\n client_introduction {\n enforcement = \"strict\"\n }\n}\n";

/// An agent of these servers.
fn start(world: &World, nomad: &Nomad, token: Option<&str>) -> Program {
    let (data, addr) = (world.data(), free_addr());
    let data = data.to_str().unwrap();
    let words = [
        "agent",
        "-http",
        &addr,
        "-data-dir",
        data,
        "-servers",
        &nomad.rpc,
    ];
    let mut command = command(words);
    if let Some(token) = token {
        command.env("NOMAD_CLIENT_INTRO_TOKEN", token);
    }
    Program::of(&mut command)
}

/// A token that introduces a node.
fn token(nomad: &Nomad) -> String {
    let asked = json!({ "TTL": "10m" }).to_string();
    let made: Value = nomad
        .ask("PUT", "/v1/acl/identity/client-introduction-token", &asked)
        .unwrap();
    made["JWT"].as_str().unwrap().to_owned()
}

#[test]
fn node_is_taken_by_strict_servers_when_it_is_introduced() {
    let Some(nomad) = Nomad::start_with(|_| STRICT.to_owned()) else {
        return;
    };
    let world = World::new();
    let agent = start(&world, &nomad, None);
    let line = agent.err_line("refused Node.Register");
    assert!(line.contains("introduction token"), "{line}");
    // It is looked for before each try.
    fs::write(world.data().join("intro_token.jwt"), token(&nomad) + "\n").unwrap();
    nomad.node("ready");
    drop(agent.kill_9());
    // Servers know it from now on.
    fs::remove_file(world.data().join("intro_token.jwt")).unwrap();
    let agent = start(&world, &nomad, None);
    agent.err_line("is ready");
    nomad.node("ready");
}

#[test]
fn node_whose_introduction_is_worth_nothing_is_taken_by_servers_that_want_none() {
    let Some(nomad) = Nomad::start() else { return };
    let world = World::new();
    let _agent = start(&world, &nomad, Some("eyJhbGciOiJSUzI1NiJ9.e30.eA"));
    nomad.node("ready");
}
