//! What is left of containers and images when their agent is not there: it is found, shown with its owner, and removed
//! only where it is proved to be the agent's. Without root or an engine, these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "support/containers.rs"]
mod containers;
mod support;

use std::fs;

use containers::engine::{Engine, IMAGE};
use containers::registry::Registry;
use containers::{agent, alloc, run};
use serde_json::Value;
use support::{Agent, Ended, Lone, Program, World};

/// A launch that no agent ever made.
const NOBODY: &str = "5ee0e0aa-4ba1-4c5e-9d1c-4a1b5a0f7c11";

/// Runs a job of one container, which stays. Its name.
fn run_web(lone: &Lone, engine: &Engine) -> String {
    let stays = "command = \"/bin/sleep\"\n args = [\"1000\"]";
    run(
        lone,
        "web",
        &format!("config {{\n image = \"{IMAGE}\"\n {stays}\n }}"),
    );
    alloc(lone, "web", |task| task["State"] == "running");
    engine.containers().remove(0)
}

/// Runs a job of one container of an image that the agent fetches, and that stays. The image.
fn run_fetched(lone: &Lone, engine: &Engine, registry: &Registry) -> String {
    registry.put("web", "1", &engine.layer(), &["WHO=web"]);
    let image = registry.image("web:1");
    let stays = "command = \"/bin/sleep\"\n args = [\"1000\"]";
    run(
        lone,
        "fetched",
        &format!("config {{\n image = \"{image}\"\n {stays}\n }}"),
    );
    alloc(lone, "fetched", |task| task["State"] == "running");
    image
}

fn has(engine: &Engine, image: &str) -> bool {
    let found = engine.docker(&["image", "inspect", image]);
    found.status.success()
}

/// What `system audit` says of images, with these words.
fn audit_images(addr: &str, words: &[&str]) -> Vec<Value> {
    let mut all = audit_of("image", addr, words);
    for _ in 1..ATTEMPTS {
        if !all.is_empty() {
            break;
        }
        all = audit_of("image", addr, words);
    }
    all
}

/// How often an engine is asked that has too much to do to answer in time.
const ATTEMPTS: usize = 5;

/// What `system audit` says of containers, with these words, of an engine that answers.
fn audit(addr: &str, words: &[&str]) -> Vec<Value> {
    let is_away = |it: &Value| {
        it["Owner"] == "unknown" && it["Name"].as_str().unwrap().starts_with("engine ")
    };
    let mut all = audit_once(addr, words);
    for _ in 1..ATTEMPTS {
        if !all.iter().any(is_away) {
            break;
        }
        all = audit_once(addr, words);
    }
    all
}

/// The same, whether the engine answers or not. The code is not that of success while one is leaked; what else there is
/// on this machine is other tests' matter.
fn audit_once(addr: &str, words: &[&str]) -> Vec<Value> {
    audit_of("container", addr, words)
}

fn audit_of(kind: &str, addr: &str, words: &[&str]) -> Vec<Value> {
    let address = format!("http://{addr}");
    let args = ["system", "audit", "-json", "-address", &address];
    let ended = Program::run([&args[..], words].concat());
    let all: Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
    let all = all.as_array().unwrap().iter();
    let of_kind = all.filter(|it| it["Kind"] == kind);
    let is_leaked = |it: &&Value| it["Owner"] == "leaked" && it["Done"] == "";
    if of_kind.clone().any(|it| is_leaked(&it)) {
        assert_eq!(ended.code, 2, "{ended:?}");
    }
    of_kind.cloned().collect()
}

#[test]
fn audit_shows_containers_and_removes_none_that_is_not_proved() {
    let Some((lone, engine)) = agent("") else {
        return;
    };
    let own = run_web(&lone, &engine);
    let found = audit(&lone.agent.addr, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    for (field, expected) in [("Name", own.as_str()), ("Owner", "task"), ("Task", "t")] {
        assert_eq!(found[0][field], expected);
    }
    // A person's container, that has the label of some launch; and one that says that this agent made it.
    let data = lone.world.data();
    let marked = engine.says(&[
        "inspect",
        "--format",
        "{{index .Config.Labels \"drover.agent\"}}",
        &own,
    ]);
    assert!(marked.ends_with(data.to_str().unwrap()), "{marked}");
    let launch = format!("drover.launch={NOBODY}");
    let mark = format!("drover.agent={marked}");
    for (name, labels) in [("copied", vec![&launch]), ("claimed", vec![&launch, &mark])] {
        let mut args = vec!["create", "--name", name];
        labels
            .iter()
            .for_each(|label| args.extend(["--label", label.as_str()]));
        engine.says(&[&args[..], &[IMAGE, "/bin/true"]].concat());
    }
    for words in [vec![], vec!["-fix"]] {
        let found = audit(&lone.agent.addr, &words);
        let of = |name: &str| found.iter().find(|it| it["Name"] == name).unwrap();
        assert_eq!(of("copied")["Owner"], "unknown");
        assert_eq!(of("claimed")["Owner"], "leaked");
        for name in ["copied", "claimed"] {
            let reported = format!("{}{}", of(name)["Remark"], of(name)["Error"]);
            assert!(reported.contains(&format!("rm -f -v {name}")), "{reported}");
        }
    }
    assert_eq!(engine.containers().len(), 3, "none was removed");
}

/// The next agent, whose state is lost.
fn without_state(lone: Lone) -> (World, Agent) {
    let Lone { agent, world, .. } = lone;
    let addr = agent.addr.clone();
    agent.kill_9();
    fs::remove_dir_all(world.data().join("state")).unwrap();
    let settings = world.path("agent.hcl");
    let options = ["-config", settings.to_str().unwrap(), "-accept-state-loss"];
    let agent = Agent::start_with(&world.data(), &addr, &options);
    (world, agent)
}

#[test]
fn container_that_state_does_not_know_is_leaked_and_removed() {
    let Some((lone, engine)) = agent("") else {
        return;
    };
    let own = run_web(&lone, &engine);
    let (_world, agent) = without_state(lone);
    let addr = agent.addr.clone();
    let found = audit(&addr, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    let of = |field: &str| found[0][field].as_str().unwrap().to_owned();
    assert_eq!((of("Name"), of("Owner")), (own, "leaked".to_owned()));
    let found = audit(&addr, &["-fix"]);
    assert_eq!(found[0]["Done"], "removed");
    assert_eq!(engine.containers(), [""; 0]);
    assert!(audit(&addr, &[]).is_empty());
    drop(agent);
}

#[test]
fn image_that_state_does_not_know_is_leaked_and_removed() {
    let registry = Registry::start();
    let Some((lone, engine)) = agent("gc {\n image_delay = \"1ms\"\n }") else {
        return;
    };
    let image = run_fetched(&lone, &engine, &registry);
    let found = audit_images(&lone.agent.addr, &[]);
    assert_eq!(found.len(), 1, "nothing of other images: {found:?}");
    for (field, expected) in [("Owner", "task"), ("Task", "t"), ("Program", &image)] {
        assert_eq!(found[0][field], expected, "{found:?}");
    }
    let (_world, agent) = without_state(lone);
    let addr = agent.addr.clone();
    assert_eq!(audit_images(&addr, &[])[0]["Owner"], "leaked");
    // With its container.
    let found = audit_images(&addr, &["-fix"]);
    assert_eq!(found[0]["Done"], "removed", "{found:?}");
    assert!(!has(&engine, &image) && has(&engine, IMAGE));
    assert!(audit_of("image", &addr, &[]).is_empty());
    drop(agent);
}

#[test]
fn data_directory_is_destroyed_with_the_images_it_brought() {
    let registry = Registry::start();
    let Some((lone, engine)) = agent("gc {\n image = false\n }") else {
        return;
    };
    let image = run_fetched(&lone, &engine, &registry);
    lone.run(&["job", "stop", "-detach", "-purge", "fetched"])
        .ok();
    let kept = support::until(|| {
        let found = audit_images(&lone.agent.addr, &[]);
        let kept = found.first()?["Remark"].as_str()?.to_owned();
        Some(kept).filter(|kept| kept.contains("the settings keep it"))
    });
    assert!(kept.contains("rmi") && has(&engine, &image), "{kept}");
    let Lone { agent, world, .. } = lone;
    agent.kill_9();
    let data = world.data();
    let args = ["system", "destroy", "-data-dir", data.to_str().unwrap()];
    let asks = Program::run(args);
    assert!(asks.err.contains(&image), "{asks:?}");
    let destroyed = Program::run([&args[..], &["-yes", "-stop-tasks"]].concat());
    assert_eq!(destroyed.code, 0, "{destroyed:?}");
    assert!(!has(&engine, &image) && has(&engine, IMAGE));
}

#[test]
fn data_directory_is_destroyed_with_its_containers() {
    let Some((lone, mut engine)) = agent("") else {
        return;
    };
    let own = run_web(&lone, &engine);
    let Lone { agent, world, .. } = lone;
    agent.kill_9();
    let destroy = |words: &[&str]| -> Ended {
        let data = world.data();
        let args = [
            "system",
            "destroy",
            "-yes",
            "-data-dir",
            data.to_str().unwrap(),
        ];
        Program::run([&args[..], words].concat())
    };
    let refused = destroy(&[]);
    assert!(
        refused.err.contains(&own) && refused.err.contains("-stop-tasks"),
        "{refused:?}"
    );
    engine.kill_9();
    let refused = destroy(&["-stop-tasks"]);
    for part in [
        "cannot be asked",
        own.rsplit('-').next().unwrap(),
        "Nothing was removed",
    ] {
        assert!(refused.err.contains(part), "{part}: {refused:?}");
    }
    engine.begin();
    assert_eq!(engine.containers(), [own]);
    let destroyed = destroy(&["-stop-tasks"]);
    assert_eq!(destroyed.code, 0, "{destroyed:?}");
    assert!(!world.data().exists());
    assert_eq!(engine.containers(), [""; 0]);
}

#[test]
fn unreachable_engine_is_reported_in_one_line() {
    let Some((lone, mut engine)) = agent("") else {
        return;
    };
    run_web(&lone, &engine);
    engine.kill_9();
    let found = audit_once(&lone.agent.addr, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    let of = |field: &str| found[0][field].as_str().unwrap().to_owned();
    let name = format!("engine unix://{}", engine.socket().display());
    assert_eq!((of("Name"), of("Owner")), (name, "unknown".to_owned()));
    assert!(of("Remark").contains("does not answer"), "{found:?}");
    engine.begin();
}
