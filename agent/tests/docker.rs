//! Tasks of `docker`, as people run them, with an engine of the tests' own. Without root or an engine, these tests say
//! so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "../../io-real/tests/common/engine.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod engine;
mod support;

use engine::{Engine, IMAGE};
use serde_json::Value;
use support::Lone;

/// An agent whose engine it is; none where there is no engine.
fn agent(more: &str) -> Option<(Lone, Engine)> {
    let engine = Engine::start(false)?;
    let endpoint = engine.socket();
    let lone = Lone::configured(&format!(
        "plugin \"docker\" {{\nconfig {{\nendpoint = \"unix://{}\"\n{more}\n}}\n}}\n",
        endpoint.display()
    ));
    lone.agent.wait_for("/v1/nodes?resources=true", |nodes| {
        let driver = &nodes.get(0)?["Drivers"]["docker"];
        (driver["Healthy"] == true).then_some(())
    });
    Some((lone, engine))
}

fn run(lone: &Lone, name: &str, task: &str) {
    let job = format!(
        "job \"{name}\" {{\n group \"g\" {{\n restart {{\n attempts = 0\n mode = \"fail\"\n }}\n reschedule \
         {{\n attempts = 0\n unlimited = false\n }}\n task \"t\" {{\n driver = \"docker\"\n {task}\n }}\n }}\n}}\n"
    );
    let file = lone.world.file(&format!("{name}.hcl"), &job);
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
}

/// The allocation of a job, once it is so far.
fn alloc(lone: &Lone, job: &str, far: impl Fn(&Value) -> bool) -> Value {
    lone.agent
        .wait_for(&format!("/v1/job/{job}/allocations"), |all| {
            let alloc = all.get(0)?;
            far(&alloc["TaskStates"]["t"]).then(|| alloc.clone())
        })
}

#[test]
fn container_outlives_agent_and_leaves_nothing() {
    let Some((mut lone, engine)) = agent("") else {
        return;
    };
    run(
        &lone,
        "web",
        &format!(
            "config {{\n image = \"{IMAGE}\"\n command = \"/bin/sh\"\n args = [\"-c\", \"cat /local/text; echo \
             $NOMAD_TASK_NAME $PATH; exec sleep 1000\"]\n }}\n template {{\n data = \"in {{{{ env \
             \\\"NOMAD_ALLOC_DIR\\\" }}}}\\n\"\n destination = \"local/text\"\n }}"
        ),
    );
    let found = alloc(&lone, "web", |task| task["State"] == "running");
    let id = found["ID"].as_str().unwrap();
    let script = "cat /local/text; id -u";
    let look = |lone: &Lone| loop {
        let ended = lone.run(&["alloc", "exec", id, "/bin/sh", "-c", script]);
        // An agent that just started asks the engine for its containers first.
        if !ended.err.contains("Task not recovered yet") {
            return ended.ok();
        }
    };
    assert_eq!(look(&lone), "in /alloc\n0");
    let container = engine.containers();
    lone = lone.next_agent();
    alloc(&lone, "web", |task| task["State"] == "running");
    assert_eq!(look(&lone), "in /alloc\n0");
    assert_eq!(engine.containers(), container);
    assert_eq!(
        alloc(&lone, "web", |_| true)["TaskStates"]["t"]["Restarts"],
        0
    );
    let logs = lone.run(&["alloc", "logs", id]).ok();
    // The host's PATH is nothing to an image.
    assert_eq!(logs.lines().next(), Some("in /alloc"));
    assert!(
        logs.contains("\nt /usr/local/sbin:") || logs.contains("\nt /sbin:"),
        "{logs}"
    );
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    alloc(&lone, "web", |task| task["State"] == "dead");
    assert_eq!(engine.containers(), [""; 0]);
}

#[test]
fn job_that_asks_for_too_much_is_told_why() {
    let Some((lone, engine)) = agent("") else {
        return;
    };
    let image = format!("image = \"{IMAGE}\"\n command = \"/bin/true\"");
    for (name, config, expected) in [
        ("privileged", "privileged = true", "allow_privileged"),
        ("caps", "cap_add = [\"sys_admin\"]", "allow_caps"),
        ("pids", "pid_mode = \"host\"", "allowed_modes"),
        ("bind", "volumes = [\"/etc:/x\"]", "volumes { enabled }"),
        ("ports", "ports = [\"http\"]", "no port \\\"http\\\""),
    ] {
        run(&lone, name, &format!("config {{\n {image}\n {config}\n }}"));
        let failed = alloc(&lone, name, |task| task["State"] == "dead");
        let events = failed["TaskStates"]["t"]["Events"].to_string();
        assert!(
            events.contains(expected) || events.contains(&expected.replace('\\', "\\\\\\")),
            "{name}: {events}"
        );
    }
    assert_eq!(engine.containers(), [""; 0]);
    for (option, expected) in [
        ("port_map { http = 80 }", "is not supported"),
        ("comand = \"x\"", "did you mean \"command\"?"),
        (
            "mount {\n type = \"bind\"\n }",
            "mount[0].target: must be given",
        ),
    ] {
        let job = format!(
            "job \"x\" {{\n group \"g\" {{\n task \"t\" {{\n driver = \"docker\"\n config {{\n image = \"a:1\"\n \
             {option}\n }}\n }}\n }}\n}}\n"
        );
        let file = lone.world.file("x.hcl", &job);
        let refused = lone
            .run(&["job", "validate", file.to_str().unwrap()])
            .failed();
        assert!(refused.contains(expected), "{option}: {refused}");
    }
}
