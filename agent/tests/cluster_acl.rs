//! Tokens of a cluster at the API of one of its nodes. Where there is no program `nomad` on the PATH, this test says
//! so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::nomad::{Nomad, job};
use support::{Lone, TIMEOUT, exchange};

const ACL: &str = "acl {\n enabled = true\n token_ttl = \"1s\"\n}\n";

/// A server that needs tokens, with its first one, and a node of it that needs them, too.
fn cluster() -> Option<(Nomad, Lone)> {
    let mut nomad = Nomad::start_with(|_| ACL.to_owned())?;
    let root = nomad.wait_for_answer("PUT", "/v1/acl/bootstrap");
    nomad.token = root["SecretID"].as_str().unwrap().to_owned();
    // Nobody listens at that address: `nomad` asks a server.
    let settings = format!(
        "{ACL}advertise {{\n http = \"127.0.0.1:1\"\n}}\nclient {{\n servers = [\"{}\"]\n}}\n\
         plugin \"raw_exec\" {{\n config {{\n enabled = true\n }}\n}}\n",
        nomad.rpc
    );
    let lone = Lone::configured(&settings);
    nomad.node("ready");
    Some((nomad, lone))
}

/// What the node answers.
fn ask(lone: &Lone, token: &str, method: &str, path: &str) -> (u16, String) {
    let addr = &lone.agent.addr;
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: {addr}\r\nX-Nomad-Token: {token}\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    exchange(addr, request.as_bytes()).unwrap()
}

fn made(nomad: &Nomad, path: &str, body: &Value) -> String {
    let (status, text) = nomad.request("PUT", path, &body.to_string()).unwrap();
    assert_eq!(status, 200, "{path}: {text}");
    text
}

/// A token of the cluster that reads nodes by a policy, and agents by a role.
fn reader(nomad: &Nomad) -> (String, String) {
    for (name, block) in [("nodes", "node"), ("agents", "agent")] {
        let rules = format!("{block} {{ policy = \"read\" }}");
        let policy = json!({ "Name": name, "Rules": rules });
        made(nomad, &format!("/v1/acl/policy/{name}"), &policy);
    }
    let role = json!({ "Name": "ops", "Policies": [{ "Name": "agents" }] });
    made(nomad, "/v1/acl/role", &role);
    let token = json!({
        "Name": "reader", "Type": "client", "Policies": ["nodes"], "Roles": [{ "Name": "ops" }],
    });
    let token: Value = serde_json::from_str(&made(nomad, "/v1/acl/token", &token)).unwrap();
    let text = |name: &str| token[name].as_str().unwrap().to_owned();
    (text("SecretID"), text("AccessorID"))
}

/// The secret of a token of the cluster with these capabilities in the namespace.
fn capable(nomad: &Nomad, name: &str, capabilities: &[&str]) -> String {
    let rules = format!("namespace \"default\" {{ capabilities = {capabilities:?} }}");
    let policy = json!({ "Name": name, "Rules": rules });
    made(nomad, &format!("/v1/acl/policy/{name}"), &policy);
    let token = json!({ "Name": name, "Type": "client", "Policies": [name] });
    let token: Value = serde_json::from_str(&made(nomad, "/v1/acl/token", &token)).unwrap();
    token["SecretID"].as_str().unwrap().to_owned()
}

/// Servers let pass who may run programs in tasks. That this task sees the files of the host only its node knows.
#[test]
fn session_through_servers_beside_a_task_of_the_host_needs_a_capability_more() {
    let Some((nomad, _lone)) = cluster() else {
        return;
    };
    nomad.submit(&job("sleeper", "service", "exec sleep 1000"));
    let alloc = nomad.alloc("sleeper", "running");
    let alloc = alloc["ID"].as_str().unwrap();
    let exec = |token: &str| nomad.exec(token, alloc, &["/bin/echo", "hello"]);
    let common = ["list-jobs", "read-job", "alloc-exec"];
    let without = capable(&nomad, "without", &common);
    let (code, printed) = exec(&without);
    assert!(
        code != 0 && printed.contains("Permission denied"),
        "{code}: {printed}"
    );
    let with = capable(
        &nomad,
        "with",
        &[&common[..], &["alloc-node-exec"]].concat(),
    );
    assert_eq!(exec(&with), (0, "hello\n".to_owned()));
}

#[test]
fn token_of_the_servers_counts_at_a_node() {
    let Some((nomad, lone)) = cluster() else {
        return;
    };
    let denied = (403, "Permission denied".to_owned());
    let root = nomad.token.clone();
    assert_eq!(ask(&lone, &root, "GET", "/v1/jobs").0, 200);
    assert_eq!(ask(&lone, "", "GET", "/v1/client/stats"), denied);
    assert_eq!(ask(&lone, "", "PUT", "/v1/acl/bootstrap"), denied);
    let unknown = "2b778dd9-f5f1-4f29-b4b4-9a5fa948757a";
    let words = (403, "ACL token not found".to_owned());
    assert_eq!(ask(&lone, unknown, "GET", "/v1/client/stats"), words);

    let (reader, accessor) = reader(&nomad);
    for (path, status) in [
        ("/v1/client/stats", 200),
        ("/v1/agent/self", 200),
        ("/v1/jobs", 403),
    ] {
        let (found, text) = ask(&lone, &reader, "GET", path);
        assert_eq!(found, status, "{path}: {text}");
    }
    assert_eq!(ask(&lone, &reader, "PUT", "/v1/client/gc"), denied);

    let path = format!("/v1/acl/token/{accessor}");
    let (status, text) = nomad.request("DELETE", &path, "").unwrap();
    assert_eq!(status, 200, "{text}");
    let until = Instant::now() + TIMEOUT;
    while ask(&lone, &reader, "GET", "/v1/client/stats").0 == 200 {
        assert!(Instant::now() < until, "the token is gone");
        sleep(Duration::from_millis(50));
    }

    // Whoever looks after the node needs it most now.
    drop(nomad);
    assert_eq!(ask(&lone, &root, "GET", "/v1/client/stats").0, 200);
    assert_eq!(ask(&lone, &reader, "GET", "/v1/client/stats").0, 503);
}
