//! The flight recorder of a real agent: what it leaves on disk plays the same, stays within its
//! bounds, holds no secrets, and never disturbs the agent.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Agent, Program, World, free_addr};

/// A job whose only task is pretended, and ends after `run_for`.
fn job(id: &str, run_for: &str, config: &Value) -> Value {
    let mut all = json!({ "run_for": run_for });
    let given = config.as_object().unwrap().clone();
    all.as_object_mut().unwrap().extend(given);
    json!({ "Job": {
        "ID": id,
        "Type": "batch",
        "Datacenters": ["*"],
        "TaskGroups": [{
            "Name": "group",
            "RestartPolicy": {
                "Attempts": 100_000, "Interval": 3_600_000_000_000_i64, "Delay": 1_000_000,
                "Mode": "fail",
            },
            "Tasks": [{ "Name": "task", "Driver": "mock_driver", "Config": all }],
        }],
    }})
}

fn register(agent: &Agent, job: &Value) {
    let (status, body) = agent.put("/v1/jobs", job).unwrap();
    assert_eq!(status, 200, "{body}");
}

/// Waits until a job's allocation has this status.
fn wait_for(agent: &Agent, job: &str, status: &str) {
    agent.wait_for(&format!("/v1/job/{job}/allocations"), |allocs| {
        let first = allocs.as_array()?.first()?;
        (first["ClientStatus"] == status).then_some(())
    });
}

/// The recording's files, oldest first.
fn files(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("recording")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// What is in a file of a recording, if it is still there.
fn text(file: &Path) -> Option<String> {
    let (lines, _) = drover_recorder::file::read(&fs::read(file).ok()?);
    String::from_utf8(lines).ok()
}

/// Waits until the recording's file of this place has these words in it.
fn recorded(data: &Path, place: usize, words: &str) {
    let until = std::time::Instant::now() + support::TIMEOUT;
    let there = || {
        let text = text(files(data).get(place)?)?;
        text.contains(words).then_some(())
    };
    while there().is_none() {
        assert!(
            std::time::Instant::now() < until,
            "{words:?} is never recorded"
        );
        std::thread::yield_now();
    }
}

fn replay(data: &Path) -> String {
    let dir = data.join("recording");
    Program::run(["replay".as_ref(), dir.as_os_str()]).ok()
}

/// How many steps the recording has, if it plays the same.
#[track_caller]
fn steps(output: &str) -> usize {
    let (number, rest) = output.split_once(' ').unwrap();
    assert!(rest.starts_with("steps, same effects"), "{output}");
    number.parse().unwrap()
}

#[test]
fn recording_of_killed_agent_replays_identically() {
    let world = World::new();
    let data = world.data();
    let addr = free_addr();
    let agent = Agent::start(&data, &addr);
    let tasks = json!({ "Job": {
        "ID": "sleepers", "Type": "service", "Datacenters": ["*"],
        "TaskGroups": [{ "Name": "group", "Count": 3, "Tasks": [{
            "Name": "task", "Driver": "raw_exec",
            "Config": { "command": "/bin/sleep", "args": ["1000"] },
        }]}],
    }});
    register(&agent, &tasks);
    wait_for(&agent, "sleepers", "running");
    recorded(&data, 0, "\"Started\"");
    agent.kill_9();

    let agent = Agent::start(&data, &addr);
    wait_for(&agent, "sleepers", "running");
    let (status, _) = agent.delete("/v1/job/sleepers").unwrap();
    assert_eq!(status, 200);
    wait_for(&agent, "sleepers", "complete");
    // What the recorder has not written when the agent is killed is lost.
    recorded(&data, 1, "\"Destroyed\"");
    agent.kill_9();

    let output = replay(&data);
    assert!(steps(&output) > 20, "{output}");
    assert!(output.contains("2 runs of the agent"), "{output}");
    assert_eq!(files(&data).len(), 2);
    for file in files(&data) {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

/// An agent with these further options, and where its API is.
fn agent_with(world: &World, options: &[&str]) -> (Program, String) {
    let addr = free_addr();
    let data = world.data();
    let mut args = vec!["agent", "-log-level", "warn", "-http", &addr, "-data-dir"];
    args.push(data.to_str().unwrap());
    args.extend(options);
    let program = Program::start(&args);
    let until = std::time::Instant::now() + support::TIMEOUT;
    while !matches!(
        support::request(&addr, "GET", "/v1/agent/health", None),
        Ok((200, _))
    ) {
        assert!(
            std::time::Instant::now() < until,
            "the agent does not answer"
        );
        std::thread::yield_now();
    }
    (program, addr)
}

fn put(addr: &str, job: &Value) {
    let (status, body) = support::request(addr, "PUT", "/v1/jobs", Some(job)).unwrap();
    assert_eq!(status, 200, "{body}");
}

fn wait_for_job(addr: &str, job: &str, status: &str) {
    let until = std::time::Instant::now() + support::TIMEOUT;
    loop {
        let (_, body) = support::request(addr, "GET", &format!("/v1/job/{job}"), None).unwrap();
        let job: Value = serde_json::from_str(&body).unwrap();
        if job["Status"] == status {
            return;
        }
        assert!(std::time::Instant::now() < until, "{job:#}");
        std::thread::yield_now();
    }
}

/// Waits until the task of a job was started again so often.
fn wait_for_restarts(addr: &str, job: &str, restarts: u64) {
    let until = std::time::Instant::now() + support::TIMEOUT;
    loop {
        let path = format!("/v1/job/{job}/allocations");
        let (_, body) = support::request(addr, "GET", &path, None).unwrap();
        let allocs: Value = serde_json::from_str(&body).unwrap();
        let seen = &allocs[0]["TaskStates"]["task"]["Restarts"];
        if seen.as_u64().is_some_and(|seen| seen >= restarts) {
            return;
        }
        assert!(std::time::Instant::now() < until, "{allocs:#}");
        std::thread::yield_now();
    }
}

#[test]
fn bounded_recording_replays_from_remaining_segments() {
    const SIZE: u64 = 48 * 1024;
    let world = World::new();
    let (agent, addr) = agent_with(&world, &["-recording-size", "48K"]);
    put(&addr, &job("again", "1ms", &json!({ "exit_code": 1 })));
    wait_for_restarts(&addr, "again", 150);
    agent.kill_9();

    let files = files(&world.data());
    let total: u64 = files
        .iter()
        .map(|file| fs::metadata(file).unwrap().len())
        .sum();
    assert!(total <= SIZE, "{total} bytes in {files:?}");
    assert!(files.len() > 1, "{files:?}");
    let first = files[0].file_name().unwrap().to_str().unwrap();
    assert!(first > "00000001.rec", "nothing was dropped: {files:?}");
    let output = replay(&world.data());
    assert!(steps(&output) > 100, "{output}");
}

#[test]
fn full_disk_ends_recording_with_one_warning() {
    let world = World::new();
    let (agent, addr) = agent_with(&world, &["-recording-size", "512"]);
    agent.err_line("the recording ends here");
    put(&addr, &job("quick", "1ms", &json!({})));
    wait_for_job(&addr, "quick", "dead");
    agent.interrupt();
    let ended = agent.end();
    let all = format!("{}{}", ended.out, ended.err);
    assert_eq!(all.matches("the recording ends here").count(), 1, "{all}");
    assert_eq!(ended.code, 0, "{all}");
    assert_eq!(files(&world.data()), Vec::<PathBuf>::new());
}

#[test]
fn recording_size_zero_records_nothing() {
    let world = World::new();
    let (agent, addr) = agent_with(&world, &["-recording-size", "0"]);
    put(&addr, &job("quick", "1ms", &json!({})));
    agent.kill_9();
    assert!(!world.data().join("recording").exists());
}

#[test]
fn recording_dir_is_configurable() {
    let world = World::new();
    let elsewhere = world.path("tapes");
    let (agent, addr) = agent_with(&world, &["-recording-dir", elsewhere.to_str().unwrap()]);
    put(&addr, &job("quick", "1ms", &json!({})));
    agent.interrupt();
    agent.end();
    assert!(!world.data().join("recording").exists());
    let output = Program::run(["replay".as_ref(), elsewhere.as_os_str()]).ok();
    assert!(steps(&output) > 2, "{output}");
}

/// Secrets, each at another place; every one of them has this in it.
const SECRET: &str = "hunter2";

#[test]
fn job_secret_never_reaches_recording() {
    let world = World::new();
    let (agent, addr) = agent_with(&world, &["-recording-size", "1M"]);
    let mut secret = job(
        "secret",
        "1ms",
        &json!({
            "exit_code": 1,
            "exit_err_msg": "hunter2-message with ${PASSWORD}",
            "stdout_string": "hunter2-config",
        }),
    );
    secret["Job"]["Meta"] = json!({ "owner": "hunter2-meta" });
    secret["Job"]["TaskGroups"][0]["Meta"] = json!({ "key": "hunter2-group" });
    secret["Job"]["TaskGroups"][0]["RestartPolicy"]["Attempts"] = json!(2);
    let task = &mut secret["Job"]["TaskGroups"][0]["Tasks"][0];
    task["Meta"] = json!({ "key": "hunter2-task" });
    task["Env"] = json!({ "PASSWORD": "hunter2-env", "URL": "db://me:${PASSWORD}@hunter2-host" });
    put(&addr, &secret);
    wait_for_restarts(&addr, "secret", 2);
    agent.kill_9();

    let (agent, addr) = agent_with(&world, &["-recording-size", "1M"]);
    // A command that is not there: its name is in the driver's message.
    let missing = json!({ "Job": {
        "ID": "missing", "Type": "batch", "Datacenters": ["*"],
        "TaskGroups": [{
            "Name": "group",
            "RestartPolicy": {
                "Attempts": 1, "Interval": 3_600_000_000_000_i64, "Delay": 1_000_000,
                "Mode": "fail",
            },
            "Tasks": [{
                "Name": "task", "Driver": "raw_exec",
                "Env": { "PASSWORD": "hunter2-env" },
                "Config": { "command": "/no/such/${PASSWORD}", "args": ["hunter2-argument"] },
            }],
        }],
    }});
    put(&addr, &missing);
    wait_for_job(&addr, "missing", "dead");
    agent.interrupt();
    agent.end();

    for file in files(&world.data()) {
        let text = text(&file).unwrap();
        let found = text
            .find(SECRET)
            .map(|at| &text[at.saturating_sub(80)..at + 40]);
        assert_eq!(found, None, "{}", file.display());
        assert!(text.contains("secret"), "the name of the job is there");
    }
    let output = replay(&world.data());
    assert!(steps(&output) > 20, "{output}");
}
