//! The agent as a client node of a real server of Nomad. Where there is no program `nomad` on the PATH, these tests
//! say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use serde_json::{Value, json};
use support::Lone;
use support::nomad::{Nomad, job, node_of};

fn events(alloc: &Value) -> Vec<String> {
    let events = alloc["TaskStates"]["t"]["Events"].as_array();
    let events = events.into_iter().flatten();
    events
        .map(|event| event["Type"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn node_runs_what_server_places_and_reports_it() {
    let Some(nomad) = Nomad::start() else { return };
    let mut lone = node_of(&nomad);
    let node = nomad.node("ready");
    assert_eq!(node["Name"], "here");
    assert_eq!(node["Drivers"]["raw_exec"]["Healthy"], true);
    nomad.submit(&job("sleeper", "service", "echo out; exec sleep 1000"));
    nomad.submit(&job("done", "batch", "exit 0"));
    nomad.submit(&job("broken", "batch", "exit 3"));
    let done = nomad.alloc("done", "complete");
    assert_eq!(
        events(&done),
        ["Received", "Task Setup", "Started", "Terminated"]
    );
    let broken = nomad.alloc("broken", "failed");
    let ended = broken["TaskStates"]["t"]["Events"].to_string();
    assert!(ended.contains("\"exit_code\":\"3\""), "{ended}");
    let running = nomad.alloc("sleeper", "running");
    let id = running["ID"].as_str().unwrap();
    // An agent that is killed changes nothing of that.
    let shown = |lone: &Lone| lone.agent.get(&format!("/v1/allocation/{id}"));
    let before = shown(&lone)["TaskStates"]["t"]["StartedAt"].clone();
    lone = lone.next_agent();
    lone.agent
        .wait_for(&format!("/v1/allocation/{id}"), |alloc| {
            (alloc["ClientStatus"] == "running").then_some(())
        });
    nomad.node("ready");
    let after = &shown(&lone)["TaskStates"]["t"];
    assert_eq!(after["StartedAt"], before);
    assert_eq!(after["Restarts"], 0);
    assert!(nomad.ask("DELETE", "/v1/job/sleeper", "").is_some());
    nomad.alloc("sleeper", "complete");
    // The status goes ahead, the rest of the story follows.
    nomad.wait("/v1/job/sleeper/allocations", |all| {
        let told = events(all.get(0)?);
        told.contains(&"Killed".to_owned()).then_some(())
    });
}

#[test]
fn node_that_is_drained_ends_its_tasks() {
    let Some(nomad) = Nomad::start() else { return };
    let _lone = node_of(&nomad);
    let node = nomad.node("ready")["ID"].as_str().unwrap().to_owned();
    nomad.submit(&job("sleeper", "service", "exec sleep 1000"));
    nomad.alloc("sleeper", "running");
    let drain = json!({ "NodeID": node, "DrainSpec": { "Deadline": 60_000_000_000_i64 } });
    let path = format!("/v1/node/{node}/drain");
    assert!(nomad.ask("PUT", &path, &drain.to_string()).is_some());
    nomad.alloc("sleeper", "complete");
}
