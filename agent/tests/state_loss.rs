//! A state that is older than its data directory: the agent does not start, and ends nothing. An
//! operator who accepts the loss goes on with what is there, and keeps the tasks that it does not know.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::{Agent, Program, World, command, free_addr, shims};

fn job(id: &str) -> Value {
    let config = json!({ "command": "/bin/sleep", "args": ["1000"] });
    let task = json!({ "Name": "t", "Driver": "raw_exec", "Config": config });
    json!({ "Job": { "ID": id, "TaskGroups": [{ "Name": "g", "Tasks": [task] }] } })
}

fn run_job(agent: &Agent, id: &str) {
    let (status, body) = agent.put("/v1/jobs", &job(id)).unwrap();
    assert_eq!(status, 200, "{body}");
    wait_for_running(agent, id);
}

fn wait_for_running(agent: &Agent, id: &str) {
    agent.wait_for(&format!("/v1/job/{id}/allocations"), |allocs| {
        let mut all = allocs.as_array().unwrap().iter();
        all.any(|alloc| alloc["ClientStatus"] == "running")
            .then_some(())
    });
}

fn running(data: &Path) -> BTreeSet<String> {
    shims(data).into_iter().collect()
}

/// An agent that does not start: what it says.
fn refused(data: &Path) -> String {
    let data = data.to_str().unwrap();
    let args = ["agent", "-http", "127.0.0.1:0", "-data-dir", data];
    let ended = Program::run(args);
    assert_eq!(ended.code, 1, "{ended:?}");
    ended.err
}

fn audit(agent: &Agent, words: &[&str]) -> Vec<Value> {
    let args = ["system", "audit", "-json"].iter().chain(words);
    let addr = format!("http://{}", agent.addr);
    let ended = Program::of(command(args).env("DROVER_ADDR", addr)).end();
    let found: Value = serde_json::from_str(&ended.out).unwrap();
    found.as_array().unwrap().clone()
}

/// The shims that no job of the agent has.
fn leaked(agent: &Agent, data: &Path) -> BTreeSet<String> {
    let shims = running(data);
    let all = audit(agent, &[]).into_iter();
    let leaked = all.filter(|it| it["Kind"] == "process" && it["Owner"] == "leaked");
    let names = leaked.map(|it| it["Name"].as_str().unwrap().to_owned());
    names.filter(|name| shims.contains(name)).collect()
}

#[test]
fn older_state_is_refused_and_accepted_loss_keeps_tasks() {
    let world = World::new();
    let data = world.data();
    let agent = Agent::start(&data, &free_addr());
    run_job(&agent, "early");
    let early = running(&data);
    agent.kill_9();
    let copied = Command::new("cp")
        .arg("-r")
        .args([data.join("state"), world.path("backup")])
        .status();
    assert!(copied.unwrap().success());
    let agent = Agent::start(&data, &free_addr());
    run_job(&agent, "late");
    let both = running(&data);
    let late: BTreeSet<String> = both.difference(&early).cloned().collect();
    assert_eq!((early.len(), late.len()), (1, 1));
    agent.kill_9();
    fs::remove_dir_all(data.join("state")).unwrap();
    fs::rename(world.path("backup"), data.join("state")).unwrap();

    let err = refused(&data);
    for part in [
        data.to_str().unwrap(),
        "ends with commit ",
        "-accept-state-loss",
    ] {
        assert!(err.contains(part), "no {part:?} in {err}");
    }
    assert_eq!(running(&data), both);
    let accept = ["-accept-state-loss"];
    for options in [&accept[..], &[]] {
        let agent = Agent::start_with(&data, &free_addr(), options);
        wait_for_running(&agent, "early");
        assert_eq!(agent.get("/v1/jobs").as_array().unwrap().len(), 1);
        assert_eq!(leaked(&agent, &data), late);
        assert_eq!(running(&data), both);
        agent.kill_9();
    }

    // Once the operator ended them, all is as ever.
    let agent = Agent::start(&data, &free_addr());
    audit(&agent, &["-fix"]);
    assert_eq!(running(&data), early);
    agent.kill_9();
    let agent = Agent::start(&data, &free_addr());
    wait_for_running(&agent, "early");
    // What the agent noted when it started is written before this job is.
    run_job(&agent, "last");
    agent.kill_9();
    let counter = fs::read_to_string(data.join("last-commit")).unwrap();
    assert!(!counter.contains("lost"), "{counter}");
}

#[test]
fn removed_state_is_refused_and_up_accepts_loss() {
    let world = World::new();
    let data = world.data();
    let agent = Agent::start(&data, &free_addr());
    run_job(&agent, "early");
    let early = running(&data);
    agent.kill_9();
    fs::remove_dir_all(data.join("state")).unwrap();
    for part in ["is not there (commit 0)", "was acknowledged"] {
        let err = refused(&data);
        assert!(err.contains(part), "no {part:?} in {err}");
    }
    let text = "job \"new\" {\n type = \"batch\"\n group \"g\" {\n task \"t\" {\n \
                driver = \"raw_exec\"\n config {\n command = \"/bin/true\"\n}\n}\n}\n}\n";
    let file = world.file("new.hcl", text);
    let mut args = world.up(&file);
    args.push("-accept-state-loss".to_owned());
    let ended = Program::run(&args);
    assert_eq!(ended.code, 0, "{ended:?}");
    let remark = "tasks that it does not know and that were left running: 1";
    assert!(ended.out.contains(remark), "{}", ended.out);
    assert_eq!(running(&data), early);
}
