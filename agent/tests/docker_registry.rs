//! Images that tasks of `docker` fetch, from a registry of the tests' own. Without root or an engine, these tests say
//! so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "support/containers.rs"]
mod containers;
mod support;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use containers::registry::{Does, Registry};
use containers::{agent, agent_with_programs, alloc, alloc_of, run, run_all};
use serde_json::Value;
use support::{Lone, until};
use tempfile::TempDir;

/// A task that says which image it has, and stays.
fn who(image: &str, more: &str) -> String {
    format!(
        "config {{\n image = \"{image}\"\n command = \"/bin/sh\"\n args = [\"-c\", \"echo $WHO; exec sleep 1000\"]\n \
         {more}\n }}"
    )
}

/// What the task of a job says, once it runs.
fn output_of(lone: &Lone, job: &str) -> String {
    let found = alloc(lone, job, |task| task["State"] == "running");
    let id = found["ID"].as_str().unwrap();
    until(|| Some(lone.run(&["alloc", "logs", id]).ok()).filter(|it| !it.is_empty()))
}

/// Why the task of a job could not be started.
fn refused(lone: &Lone, job: &str) -> String {
    let failed = alloc(lone, job, |task| task["State"] == "dead");
    assert_eq!(failed["TaskStates"]["t"]["Failed"], true, "{job}");
    failed["TaskStates"]["t"]["Events"].to_string()
}

#[test]
fn tasks_of_one_image_share_download_and_its_progress() {
    let registry = Registry::start();
    let Some((lone, engine)) = agent("") else {
        return;
    };
    registry.put("shared", "1", &engine.layer(), &["WHO=both"]);
    registry.put("single", "1", &engine.layer(), &["WHO=one"]);
    registry.does(Does::Hold);
    let task = who(&registry.image("shared:1"), "");
    run_all(&lone, "shared", &[("a", &task), ("b", &task)]);
    // What is told while it goes on says how far it is.
    let has_progress = |task: &Value| {
        let events = task["Events"].to_string();
        events.contains("Downloading image") && events.contains("of 1 layers")
    };
    alloc_of(&lone, "shared", |all| {
        has_progress(&all["a"]) && has_progress(&all["b"])
    });
    registry.does(Does::Serve);
    let runs = |task: &Value| task["State"] == "running";
    alloc_of(&lone, "shared", |all| runs(&all["a"]) && runs(&all["b"]));
    run(&lone, "single", &who(&registry.image("single:1"), ""));
    alloc(&lone, "single", runs);
    let asked = |name: &str| registry.count(&format!("/{name}/manifests/"));
    assert_eq!(asked("shared"), asked("single"), "one download for both");
}

#[test]
fn password_is_that_of_the_task_or_of_the_agents_file() {
    let registry = Registry::start();
    registry.asks_for("me", "s3cret");
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("config.json");
    let other = "{\"auths\":{\"127.0.0.2:1\":{\"username\":\"x\",\"password\":\"y\"}}}";
    std::fs::write(&file, other).unwrap();
    let Some((lone, engine)) = agent(&format!("auth {{\n config = \"{}\"\n }}", file.display()))
    else {
        return;
    };
    for name in ["task", "file"] {
        registry.put(name, "1", &engine.layer(), &["WHO=me"]);
    }
    run(&lone, "nobody", &who(&registry.image("task:1"), ""));
    let why = refused(&lone, "nobody");
    assert!(why.contains("basic auth"), "{why}");
    let auth =
        |password: &str| format!("auth {{\n username = \"me\"\n password = \"{password}\"\n }}");
    run(
        &lone,
        "wrong",
        &who(&registry.image("task:1"), &auth("gu3ss")),
    );
    let why = refused(&lone, "wrong");
    assert!(!why.contains("gu3ss"), "{why}");
    run(
        &lone,
        "task",
        &who(&registry.image("task:1"), &auth("s3cret")),
    );
    assert_eq!(output_of(&lone, "task"), "me");
    // The file is read whenever an image is fetched.
    let own = other
        .replace("127.0.0.2:1", &registry.addr())
        .replace("\"x\"", "\"me\"")
        .replace("\"y\"", "\"s3cret\"");
    std::fs::write(&file, own).unwrap();
    run(&lone, "file", &who(&registry.image("file:1"), ""));
    assert_eq!(output_of(&lone, "file"), "me");
}

#[test]
fn password_is_that_of_the_agents_helper() {
    let registry = Registry::start();
    registry.asks_for("me", "s3cret");
    let dir = TempDir::new().unwrap();
    let helper = dir.path().join("docker-credential-of-the-test");
    let says = format!(
        "#!/bin/sh\nread registry\n[ \"$1 $registry\" = 'get {}' ] || {{ echo 'credentials not found'; exit 1; }}\n\
         echo '{{\"Username\": \"me\", \"Secret\": \"s3cret\"}}'\n",
        registry.addr()
    );
    std::fs::write(&helper, says).unwrap();
    std::fs::set_permissions(&helper, Permissions::from_mode(0o755)).unwrap();
    let Some((lone, engine)) =
        agent_with_programs(dir.path(), "auth {\n helper = \"of-the-test\"\n }")
    else {
        return;
    };
    registry.put("web", "1", &engine.layer(), &["WHO=me"]);
    run(&lone, "web", &who(&registry.image("web:1"), ""));
    assert_eq!(output_of(&lone, "web"), "me");
}

#[test]
fn tag_that_moved_is_followed_by_force_pull_alone() {
    let registry = Registry::start();
    let Some((lone, engine)) = agent("") else {
        return;
    };
    let image = registry.image("web:1");
    registry.put("web", "1", &engine.layer(), &["WHO=first"]);
    run(&lone, "before", &who(&image, ""));
    assert_eq!(output_of(&lone, "before"), "first");
    registry.put("web", "1", &engine.layer(), &["WHO=second"]);
    run(&lone, "usual", &who(&image, ""));
    assert_eq!(output_of(&lone, "usual"), "first");
    run(&lone, "forced", &who(&image, "force_pull = true"));
    assert_eq!(output_of(&lone, "forced"), "second");
    assert_eq!(
        output_of(&lone, "before"),
        "first",
        "what runs has what it had"
    );
}

#[test]
fn bad_registry_costs_a_task_that_says_why() {
    let registry = Registry::start();
    let Some((lone, engine)) = agent("") else {
        return;
    };
    for (name, does, more, expected) in [
        ("wrong", Does::Lie, "", "digest"),
        (
            "slow",
            Does::Hold,
            "image_pull_timeout = \"1s\"",
            "(image_pull_timeout)",
        ),
        (
            "endless",
            Does::Babble,
            "image_pull_timeout = \"1s\"",
            "(image_pull_timeout)",
        ),
        ("missing", Does::Serve, "", "manifest unknown"),
    ] {
        if name != "missing" {
            registry.put(name, "1", &engine.layer(), &["WHO=nobody"]);
        }
        registry.does(does);
        let image = registry.image(&format!("{name}:1"));
        run(&lone, name, &who(&image, more));
        let why = refused(&lone, name);
        assert!(why.contains(expected), "{name}: {why}");
        assert!(why.contains(&image), "{name}: {why}");
        registry.does(Does::Serve);
    }
    assert_eq!(engine.containers(), [""; 0]);
    // It is none the worse for that.
    registry.put("good", "1", &engine.layer(), &["WHO=good"]);
    run(&lone, "good", &who(&registry.image("good:1"), ""));
    assert_eq!(output_of(&lone, "good"), "good");
}
