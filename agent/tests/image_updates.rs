//! A job whose image's tag moves in its registry gets a new version, which runs the new content. Without root or an
//! engine, this test says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "support/containers.rs"]
mod containers;
mod support;

use std::time::{Duration, Instant};

use containers::agent;
use containers::engine::Engine;
use containers::registry::Registry;
use serde_json::Value;
use support::{Lone, TIMEOUT, until};

/// How long a version may take: after a look that fails, the next one comes a minute later.
const LONG_TIMEOUT: Duration = TIMEOUT.saturating_mul(3);

/// Registers a job whose task says which image it has, and stays. Nobody waits for its health, which would be a reason
/// to look later.
fn run(lone: &Lone, image: &str, more: &str) {
    run_updated(lone, image, "max_parallel = 0", more);
}

/// The same, with this in its block `update`.
fn run_updated(lone: &Lone, image: &str, update: &str, more: &str) {
    let job = format!(
        r#"job "web" {{
  group "g" {{
    update {{
      {update}
    }}
    restart {{
      attempts = 0
      mode     = "fail"
    }}
    task "t" {{
      driver = "docker"
      config {{
        image   = "{image}"
        command = "/bin/sh"
        args    = ["-c", "echo $WHO; test $WHO != bad && exec sleep 1000"]
        auth {{
          username = "me"
          password = "s3cret"
        }}
      }}
      {more}
    }}
  }}
}}
"#
    );
    let file = lone.world.file("web.hcl", &job);
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
}

/// Each second is a time to look at what the tag means.
const FOLLOWS: &str = "image_update {\n schedule = \"* * * * * * *\"\n }";

/// A registry that wants a password and has the image, and an agent with an engine.
fn begin() -> Option<(Registry, Lone, Engine)> {
    let registry = Registry::start();
    registry.asks_for("me", "s3cret");
    let (lone, engine) = agent("")?;
    registry.put("web", "1", &engine.layer(), &["WHO=first"]);
    Some((registry, lone, engine))
}

/// What is found in an answer of the agent, once it is there.
fn patiently<T>(lone: &Lone, path: &str, find: impl Fn(&Value) -> Option<T>) -> T {
    let end = Instant::now() + LONG_TIMEOUT;
    loop {
        let answer = lone.agent.get(path);
        if let Some(found) = find(&answer) {
            return found;
        }
        if Instant::now() >= end {
            let explained = lone.run(&["explain", "web"]);
            panic!("{path} never became what was awaited: {answer:#}\n{explained:?}");
        }
        std::thread::yield_now();
    }
}

/// What the running allocation of the job says, once it is of this version.
fn output_of(lone: &Lone, version: u64) -> String {
    let runs =
        |it: &&Value| it["JobVersion"] == version && it["TaskStates"]["t"]["State"] == "running";
    let id = patiently(lone, "/v1/job/web/allocations", |all| {
        let found = all.as_array().unwrap().iter().find(runs);
        Some(found?["ID"].as_str()?.to_owned())
    });
    until(|| Some(lone.run(&["alloc", "logs", &id]).ok()).filter(|it| !it.is_empty()))
}

#[test]
fn moved_tag_becomes_a_version_that_runs_what_it_means() {
    let Some((registry, lone, engine)) = begin() else {
        return;
    };
    let image = registry.image("web:1");
    run(&lone, &image, "");
    assert_eq!(output_of(&lone, 0), "first");
    registry.put("web", "1", &engine.layer(), &["WHO=second"]);
    // What runs stays for this.
    run(&lone, &image, FOLLOWS);
    assert_eq!(output_of(&lone, 2), "second");
    let job = lone.agent.get("/v1/job/web");
    let task = &job["TaskGroups"][0]["Tasks"][0];
    let digest = task["ImageDigest"].as_str().unwrap();
    assert!(digest.starts_with("sha256:"), "{digest}");
    assert_eq!(task["Config"]["image"], image, "its name stays");
    let explained = lone.run(&["explain", "web"]).ok();
    assert!(explained.contains(digest), "{explained}");
    // Its file changes nothing.
    run(&lone, &image, FOLLOWS);
    assert_eq!(lone.agent.get("/v1/job/web")["Version"], 2);
    assert_eq!(output_of(&lone, 2), "second");
}

#[test]
fn moved_tag_that_does_not_become_healthy_is_taken_back() {
    let Some((registry, lone, engine)) = begin() else {
        return;
    };
    let image = registry.image("web:1");
    let update = "min_healthy_time = \"500ms\"\n auto_revert = true";
    // Rarely, so that the first version is done before the first look: one that comes sooner waits for a minute.
    let follows = "image_update {\n schedule = \"*/10 * * * * * *\"\n }";
    run_updated(&lone, &image, update, follows);
    assert_eq!(output_of(&lone, 0), "first");
    lone.agent.wait_for("/v1/job/web/deployment", |deployment| {
        (deployment["Status"] == "successful").then_some(())
    });
    registry.put("web", "1", &engine.layer(), &["WHO=bad"]);
    let failed = patiently(&lone, "/v1/job/web/deployments", |all| {
        let mut all = all.as_array().unwrap().iter();
        all.find(|it| it["Status"] == "failed").cloned()
    });
    let bad = failed["JobVersion"].as_u64().unwrap();
    assert!(bad > 0);
    // The version that was well is there again, as the next one.
    assert_eq!(output_of(&lone, bad + 1), "first");
}
