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
use std::process::Command;

use serde_json::{Value, json};
use support::nomad::Nomad;
use support::{Program, World, command, free_addr};

/// A server that takes only nodes that were introduced.
fn strict() -> Option<Nomad> {
    let settings = "server {\n client_introduction {\n enforcement = \"strict\"\n }\n}\n";
    Nomad::start_with(|_| settings.to_owned())
}

/// What starts an agent of this server.
fn agent(world: &World, nomad: &Nomad) -> Command {
    command(world.node_of(&nomad.rpc, &free_addr()))
}

const VARIABLE: &str = "NOMAD_CLIENT_INTRO_TOKEN";
const OPTION: &str = "-client-intro-token";

/// A token that no server has signed.
const WORTHLESS: &str = "eyJhbGciOiJSUzI1NiJ9.e30.eA";

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
    let Some(nomad) = strict() else { return };
    let world = World::new();
    let program = Program::of(&mut agent(&world, &nomad));
    let line = program.err_line("refused Node.Register");
    assert!(line.contains("introduction token"), "{line}");
    // It is looked for before each try.
    fs::write(world.data().join("intro_token.jwt"), token(&nomad) + "\n").unwrap();
    nomad.node("ready");
    drop(program.kill_9());
    // Servers know it from now on.
    fs::remove_file(world.data().join("intro_token.jwt")).unwrap();
    let program = Program::of(&mut agent(&world, &nomad));
    program.err_line("is ready");
    nomad.node("ready");
}

/// The variable goes first, as with Nomad's client.
#[test]
fn node_is_introduced_by_an_option_unless_there_is_the_variable() {
    let Some(nomad) = strict() else { return };
    let [by_option, by_variable] = [World::new(), World::new()];
    let _one = Program::of(agent(&by_option, &nomad).args([OPTION, &token(&nomad)]));
    let _other = Program::of(
        agent(&by_variable, &nomad)
            .args([OPTION, WORTHLESS])
            .env(VARIABLE, token(&nomad)),
    );
    nomad.wait("/v1/nodes", |nodes| {
        let nodes = nodes.as_array()?.iter();
        (nodes.filter(|it| it["Status"] == "ready").count() == 2).then_some(())
    });
}

#[test]
fn invalid_introduction_token_is_ignored_by_servers_that_need_none() {
    let Some(nomad) = Nomad::start() else { return };
    let world = World::new();
    let _program = Program::of(agent(&world, &nomad).env(VARIABLE, WORTHLESS));
    nomad.node("ready");
}
