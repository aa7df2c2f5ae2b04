//! Identities of tasks that a real server of Nomad placed. Where there is no program `nomad` on the PATH, these tests
//! say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use support::nomad::{Nomad, job, node_of};
use support::{Lone, files_with, until};

const SECOND: i64 = 1_000_000_000;

/// A part of a token.
fn part(token: &str, nth: usize) -> Value {
    let text = token.split('.').nth(nth).unwrap();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
}

/// A job whose task tells its tokens, and of each signal.
fn who(lone: &Lone) -> Value {
    let script = "trap 'echo hup >> \"$OUT\"' HUP; echo \"$NOMAD_TOKEN $NOMAD_TOKEN_db\" >> \"$OUT\"; \
                  while :; do sleep 0.05; done";
    let mut who = job("who", "service", script);
    let task = &mut who["TaskGroups"][0]["Tasks"][0];
    let out = lone.world.path("out");
    task["Env"] = json!({ "OUT": out.to_str().unwrap() });
    task["KillTimeout"] = json!(SECOND / 10);
    task["Identity"] = json!({ "Env": true, "File": true });
    task["Identities"] = json!([{
        "Name": "db",
        "Audience": ["db.example"],
        "Env": true,
        "File": true,
        "TTL": 4 * SECOND,
        "ChangeMode": "signal",
        "ChangeSignal": "SIGHUP",
    }]);
    who
}

/// The lines that the task wrote.
fn lines(lone: &Lone) -> Vec<String> {
    let text = fs::read_to_string(lone.world.path("out")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn secrets(lone: &Lone, alloc: &str) -> PathBuf {
    lone.world
        .data()
        .join("alloc")
        .join(alloc)
        .join("t/secrets")
}

#[test]
fn task_has_tokens_that_servers_signed_and_renew() {
    let Some(nomad) = Nomad::start() else { return };
    let mut lone = node_of(&nomad);
    nomad.node("ready");
    nomad.submit(&who(&lone));
    let alloc = nomad.alloc("who", "running")["ID"].clone();
    let alloc = alloc.as_str().unwrap();
    let first = until(|| lines(&lone).first().cloned());
    let (default, db) = first.split_once(' ').unwrap();
    // They are the servers', by their claims and by the keys that the servers publish.
    let keys = nomad.ask("GET", "/.well-known/jwks.json", "").unwrap();
    let keys = keys["keys"].as_array().unwrap();
    for (token, name, audience) in [
        (default, "default", "nomadproject.io"),
        (db, "db", "db.example"),
    ] {
        let claims = part(token, 1);
        assert_eq!(claims["sub"], format!("global:default:who:g:t:{name}"));
        assert_eq!(claims["nomad_allocation_id"], alloc);
        assert!(claims["aud"].to_string().contains(audience), "{claims}");
        let key = &part(token, 0)["kid"];
        assert!(keys.iter().any(|known| known["kid"] == *key), "{key}");
    }
    let dir = secrets(&lone, alloc);
    assert_eq!(
        fs::read_to_string(dir.join("nomad_token")).unwrap(),
        default
    );
    // The one that is good for seconds is made anew, again and again, and the task is told.
    let of_db = |lone: &Lone| fs::read_to_string(secrets(lone, alloc).join("nomad_db.jwt")).ok();
    let second = until(|| of_db(&lone).filter(|it| it != db && !it.is_empty()));
    let time = |token: &str| part(token, 1)["exp"].as_i64().unwrap();
    assert!(time(&second) > time(db));
    until(|| lines(&lone).contains(&"hup".to_owned()).then_some(()));
    // Also by the next agent.
    lone = lone.next_agent();
    let third = until(|| of_db(&lone).filter(|it| *it != second && !it.is_empty()));
    assert!(time(&third) > time(&second));
    let starts = lines(&lone).iter().filter(|line| *line != "hup").count();
    assert_eq!(starts, 1, "it ran on");
    // Nobody else has any: neither the node's state nor its recordings.
    let signature = default.rsplit('.').next().unwrap();
    let held = files_with(&lone.world.data(), signature);
    assert_eq!(held, [secrets(&lone, alloc).join("nomad_token")]);
    let shown = lone.agent.get(&format!("/v1/allocation/{alloc}"));
    assert!(!shown.to_string().contains(signature));
    assert!(nomad.ask("DELETE", "/v1/job/who", "").is_some());
    nomad.alloc("who", "complete");
}
