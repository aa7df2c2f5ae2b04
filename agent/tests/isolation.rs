//! Tasks of `exec`, as people run them. Without root, or without control groups, these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use support::{Ended, Lone};

const CONFIG: &str = r#"
plugin "exec" {
  config {
    denied_host_uids = "0"
  }
}
"#;

/// An agent, if it can isolate tasks here.
fn agent() -> Option<Lone> {
    let lone = Lone::configured(CONFIG);
    lone.isolating_node()?;
    Some(lone)
}

fn run(lone: &Lone, name: &str, task: &str) {
    run_by(lone, "exec", name, task);
}

fn run_by(lone: &Lone, driver: &str, name: &str, task: &str) {
    submit(lone, driver, name, task).ok();
}

/// Submits a job of one task that is never started again.
fn submit(lone: &Lone, driver: &str, name: &str, task: &str) -> Ended {
    let job = format!(
        "job \"{name}\" {{\n group \"g\" {{\n restart {{\n attempts = 0\n mode = \"fail\"\n }}\n reschedule \
         {{\n attempts = 0\n unlimited = false\n }}\n task \"t\" {{\n driver = \"{driver}\"\n {task}\n }}\n }}\n}}\n"
    );
    let file = lone.world.file(&format!("{name}.hcl"), &job);
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
}

/// Submits a job that is refused with these words, and of which nothing is made.
#[track_caller]
fn is_refused(lone: &Lone, driver: &str, name: &str, task: &str, expected: &str) {
    let ended = submit(lone, driver, name, task);
    let explained = ended.code != 0 && ended.err.contains(expected) && ended.err.contains("400");
    assert!(explained, "{name}: {ended:?}");
    assert!(ended.err.contains("group[\"g\"].task[\"t\"]."), "{ended:?}");
    let jobs = lone.agent.get("/v1/jobs");
    assert_eq!(jobs.as_array().unwrap().len(), 0, "{jobs}");
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
fn isolated_task_outlives_agent_and_leaves_nothing() {
    let Some(mut lone) = agent() else { return };
    run(
        &lone,
        "web",
        "config {\n command = \"sleep\"\n args = [\"1000\"]\n }\n template {\n data = \"in {{ env \
         \\\"NOMAD_ALLOC_DIR\\\" }}\"\n destination = \"/alloc/data/where\"\n }",
    );
    let found = alloc(&lone, "web", |task| task["State"] == "running");
    let id = found["ID"].as_str().unwrap();
    let run_inside = ["alloc", "exec", id, "/bin/sh", "-c"];
    let run_inside =
        |lone: &Lone, script: &str| lone.run(&[&run_inside[..], &[script]].concat()).ok();
    assert_eq!(
        run_inside(&lone, "cat /alloc/data/where; echo; id -un"),
        "in /alloc\nnobody"
    );
    let launches = lone.world.launches_of_tasks(1);
    lone = lone.next_agent();
    alloc(&lone, "web", |task| task["State"] == "running");
    assert_eq!(
        run_inside(&lone, "ls -d /proc/1 /proc/2"),
        "/proc/1\n/proc/2"
    );
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    alloc(&lone, "web", |task| task["State"] == "dead");
    lone.world.is_left_clean(&launches);
}

#[test]
fn job_that_asks_for_too_much_is_refused_with_reason() {
    let Some(lone) = agent() else { return };
    let command = "command = \"/bin/true\"";
    for (name, task, expected) in [
        (
            "caps",
            format!("config {{\n {command}\n cap_add = [\"sys_admin\"]\n }}"),
            "does not allow sys_admin",
        ),
        (
            "pids",
            format!("config {{\n {command}\n pid_mode = \"host\"\n }}"),
            "allow_host_pid",
        ),
        (
            "root",
            format!("user = \"root\"\n config {{\n {command}\n }}"),
            "denied_host_uids",
        ),
    ] {
        is_refused(&lone, "exec", name, &task, expected);
    }
    let job = "job \"x\" {\n group \"g\" {\n task \"t\" {\n driver = \"exec\"\n config {\n command = \"/bin/true\"\n \
               cgroup_v2_override = \"x\"\n }\n }\n }\n}\n";
    let file = lone.world.file("x.hcl", job);
    let refused = lone
        .run(&["job", "validate", file.to_str().unwrap()])
        .failed();
    assert!(
        refused.contains("unknown option \"cgroup_v2_override\""),
        "{refused}"
    );
}

#[test]
fn task_sees_the_parts_of_the_host_that_its_agent_names() {
    let tools = tempfile::tempdir().unwrap();
    std::fs::write(tools.path().join("hammer"), "").unwrap();
    std::fs::set_permissions(tools.path(), Permissions::from_mode(0o755)).unwrap();
    let own = tools.path().display();
    let lone = Lone::configured(&format!(
        "client {{\n chroot_env {{\n \"{own}\" = \"/tools\"\n \"/lib\" = \"/lib\"\n \"/lib64\" = \"/lib64\"\n \"/usr\" = \
         \"/usr\"\n }}\n}}\n"
    ));
    if lone.isolating_node().is_none() {
        return;
    }
    let config = "config {\n command = \"/usr/bin/ls\"\n args = [\"/\", \"/tools\"]\n }";
    run(&lone, "looks", config);
    let done = alloc(&lone, "looks", |task| task["State"] == "dead");
    let output = lone
        .run(&["alloc", "logs", done["ID"].as_str().unwrap()])
        .ok();
    let seen: Vec<&str> = output.split_whitespace().collect();
    for place in ["tools", "usr", "hammer"] {
        assert!(seen.contains(&place), "{output}");
    }
    for place in ["bin", "sbin", "home", "root", "var"] {
        assert!(!seen.contains(&place), "{output}");
    }
    lone.purge("looks");
}

#[test]
fn raw_exec_task_of_denied_user_or_group_is_refused() {
    let me = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    for (setting, id) in [("denied_host_uids", me), ("denied_host_gids", group)] {
        let lone = Lone::configured(&format!(
            "plugin \"raw_exec\" {{\n config {{\n {setting} = \"{id}\"\n }}\n}}\n"
        ));
        // Who names no user would run as the agent's, too.
        let own = ("own", "".to_owned());
        let named = ("named", format!("user = \"{me}\""));
        for (name, user) in [own, named] {
            let task = format!("{user}\n config {{\n command = \"/bin/true\"\n }}");
            is_refused(&lone, "raw_exec", name, &task, setting);
        }
    }
}

#[test]
fn job_of_driver_that_is_switched_off_is_refused_with_setting() {
    let lone = Lone::configured("plugin \"raw_exec\" {\n config {\n enabled = false\n }\n}\n");
    let task = "config {\n command = \"/bin/true\"\n }";
    is_refused(&lone, "raw_exec", "off", task, "enabled = false");
}
