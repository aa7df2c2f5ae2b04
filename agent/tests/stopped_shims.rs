//! Tasks that are enemies of their shims, through the whole program: all shims are stopped, the agent is
//! killed and started again, and the tasks end when their job is stopped.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Agent, World, free_addr, shims};

const TASKS: usize = 6;

fn register(agent: &Agent, script: &str) {
    let task = json!({
        "Name": "enemy",
        "Driver": "raw_exec",
        "Config": { "command": "/bin/sh", "args": ["-c", script] },
        "Resources": { "CPU": 10, "MemoryMB": 16 },
        "KillTimeout": 1_000_000_000_i64,
    });
    let group = json!({ "Name": "g", "Count": TASKS, "Tasks": [task] });
    let job = json!({ "Job": { "ID": "enemies", "Type": "service", "TaskGroups": [group] } });
    let (status, body) = agent.put("/v1/jobs", &job).expect("an answer");
    assert_eq!(status, 200, "{body}");
    agent.wait_for("/v1/allocations", |allocs| {
        let allocs = allocs.as_array().unwrap();
        let running = |alloc: &&Value| alloc["ClientStatus"] == "running";
        (allocs.iter().filter(running).count() == TASKS).then_some(())
    });
}

/// Stops the job and waits until all of it is dead. The task states.
fn stop(agent: &Agent) -> Vec<Value> {
    let stopped = agent.delete("/v1/job/enemies?purge=false");
    assert_eq!(stopped.map(|(status, _)| status), Some(200));
    agent.wait_for("/v1/allocations", |allocs| {
        let allocs = allocs.as_array().unwrap();
        let tasks = allocs.iter().map(|alloc| &alloc["TaskStates"]["enemy"]);
        let tasks: Vec<Value> = tasks.cloned().collect();
        let dead = tasks.iter().all(|task| task["State"] == "dead");
        dead.then_some(tasks)
    })
}

fn has_event(task: &Value, words: &str) -> bool {
    let events = task["Events"].as_array().unwrap();
    let message = |event: &Value| event["DisplayMessage"].as_str().unwrap().contains(words);
    events.iter().any(message)
}

#[test]
fn tasks_with_stopped_shims_are_killed_by_next_agent() {
    let world = World::new();
    let (data, addr) = (world.data(), free_addr());
    let agent = Agent::start(&data, &addr);
    register(&agent, "trap '' INT TERM; while :; do sleep 1000; done");
    let launches = world.launches_of_tasks(TASKS);
    for pid in shims(&data) {
        let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
    }
    agent.kill_9();
    let agent = Agent::start(&data, &addr);
    for task in stop(&agent) {
        assert!(has_event(&task, "shim was stopped"), "{task:#}");
    }
    world.is_left_clean(&launches);
}

#[test]
fn task_that_keeps_stopping_its_shim_is_killed() {
    let world = World::new();
    let (data, addr) = (world.data(), free_addr());
    let agent = Agent::start(&data, &addr);
    let stops = "sleep 0.3; kill -STOP $PPID";
    register(
        &agent,
        &format!("trap '' INT TERM; while :; do {stops}; done"),
    );
    let launches = world.launches_of_tasks(TASKS);
    stop(&agent);
    world.is_left_clean(&launches);
}
