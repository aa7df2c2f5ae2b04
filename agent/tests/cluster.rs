//! The agent as a client node of a real server of Nomad. Where there is no program `nomad` on the PATH, these tests
//! say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Instant;

use drover_core::text::parse_duration;
use drover_core::time::Span;
use serde_json::{Value, json};
use support::nomad::{Nomad, job, node_of, settings_at};
use support::{Lone, TIMEOUT, has, until};

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
        let reported = events(all.get(0)?);
        reported.contains(&"Killed".to_owned()).then_some(())
    });
}

/// Servers forget it at once, and give its place away.
#[test]
fn job_that_is_purged_ends_without_waiting_for_a_heartbeat() {
    let Some(nomad) = Nomad::start() else { return };
    let lone = node_of(&nomad);
    nomad.node("ready");
    // The next heartbeat is ten seconds away at least.
    nomad.submit(&job("sleeper", "service", "exec sleep 1000"));
    nomad.alloc("sleeper", "running");
    assert_eq!(lone.world.launches().len(), 1);
    let began = Instant::now();
    assert!(
        nomad
            .ask("DELETE", "/v1/job/sleeper?purge=true", "")
            .is_some()
    );
    while !lone.world.launches().is_empty() {
        assert!(began.elapsed() < TIMEOUT, "it runs on");
        thread::yield_now();
    }
    let stats = lone.agent.get("/v1/agent/self");
    let beaten = &stats["stats"]["client"]["last_heartbeat"];
    eprintln!(
        "purged and gone after {:?}; the last heartbeat: {beaten}",
        began.elapsed()
    );
}

/// The time is shorter than that between two heartbeats.
#[test]
fn allocation_that_may_not_run_alone_goes_on_until_servers_are_silent() {
    let Some(mut nomad) = Nomad::start() else {
        return;
    };
    let lone = node_of(&nomad);
    nomad.node("ready");
    let mut lonely = job("lonely", "service", "exec sleep 1000");
    let disconnect = json!({ "StopOnClientAfter": SECOND, "Replace": false });
    lonely["TaskGroups"][0]["Disconnect"] = disconnect;
    nomad.submit(&lonely);
    let alloc = nomad.alloc("lonely", "running");
    let path = format!("/v1/allocation/{}", alloc["ID"].as_str().unwrap());
    // Servers did not hear of the node for longer, and did not want to.
    lone.agent.wait_for("/v1/agent/self", |itself| {
        let ago = itself["stats"]["client"]["last_heartbeat"].as_str()?;
        let ago = parse_duration(ago).unwrap();
        (ago > Span::secs(3)).then_some(())
    });
    assert_eq!(lone.agent.get(&path)["DesiredStatus"], "run");
    nomad.kill_9();
    lone.agent.wait_for(&path, |alloc| {
        (alloc["ClientStatus"] == "complete").then_some(())
    });
}

/// The id of the only allocation here, once it runs, and what its task wrote.
fn only_alloc(lone: &Lone) -> (String, String) {
    let id = lone.agent.wait_for("/v1/allocations", |all| {
        let alloc = all.get(0)?;
        let runs = alloc["ClientStatus"] == "running";
        runs.then(|| alloc["ID"].as_str().unwrap().to_owned())
    });
    let written = || Some(lone.run(&["alloc", "logs", &id]).ok()).filter(|it| !it.is_empty());
    let written = until(written);
    (id, written)
}

/// The commands and the API say of each of them who placed it.
fn are_distinguished(lone: &Lone, own: &str, theirs: &str) {
    let all = lone.agent.get("/v1/allocations");
    assert_eq!(lone.agent.get("/v1/allocations?pretty"), all);
    let lists = ["alloc status", "node status -self"]
        .map(|words| lone.run(&words.split(' ').collect::<Vec<_>>()).ok());
    let cases = [
        (own, true, "node", "this node itself"),
        (theirs, false, "servers", "the servers of the cluster"),
    ];
    for (id, is_local, word, words) in cases {
        let mut each = all.as_array().unwrap().iter();
        let alloc = each.find(|it| it["ID"] == id).unwrap();
        assert_eq!(alloc["Local"], is_local, "{alloc}");
        for list in &lists {
            let mut lines = list.lines();
            let line = lines.find(|line| line.starts_with(&id[..8])).unwrap();
            assert_eq!(line.split_whitespace().nth(4), Some(word), "{list}");
        }
        let shown = lone.run(&["alloc", "status", id]).ok();
        has(&shown, &["Placed By ", words]);
        let explained = lone.run(&["explain", id]).ok();
        has(&explained, &["placed by ", words]);
    }
}

#[test]
fn job_of_agent_alone_goes_on_beside_those_of_servers_until_it_is_theirs() {
    let Some(nomad) = Nomad::start() else { return };
    let mut lone = Lone::configured("name = \"here\"\n");
    let own = json!({ "Job": job("own", "service", "echo $$; exec sleep 1000") });
    assert_eq!(lone.agent.put("/v1/jobs", &own).unwrap().0, 200);
    let (id, pid) = only_alloc(&lone);
    assert_eq!(lone.agent.get("/v1/allocations")[0]["Local"], Value::Null);
    assert!(!lone.run(&["alloc", "status"]).ok().contains("Placed By"));
    // The next agent is told of servers.
    lone.world.file("agent.hcl", &settings_at(&nomad.rpc));
    lone = lone.next_agent();
    nomad.node("ready");
    nomad.submit(&job("theirs", "service", "exec sleep 1000"));
    let theirs = nomad.alloc("theirs", "running")["ID"].clone();
    are_distinguished(&lone, &id, theirs.as_str().unwrap());
    let jobs = lone.agent.get("/v1/jobs");
    assert_eq!(jobs.as_array().unwrap().len(), 1, "{jobs}");
    assert_eq!(lone.run(&["alloc", "logs", &id]).ok(), pid, "started anew");
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert_eq!(line, "sleep\x001000\0");
    // Servers take what it is shown as.
    let shown = lone.run(&["job", "inspect", "own"]).ok();
    let (status, words) = nomad.request("PUT", "/v1/jobs", &shown).unwrap();
    assert_eq!(status, 200, "{words}");
    let moved = nomad.alloc("own", "running")["ID"].clone();
    assert_ne!(moved, id.as_str());
    lone.run(&["job", "stop", "own"]).ok();
    let over = |alloc: &Value| (alloc["ClientStatus"] == "complete").then_some(());
    (lone.agent).wait_for(&format!("/v1/allocation/{id}"), over);
    assert_eq!(nomad.alloc("own", "running")["ID"], moved);
    lone.world.launches_of_tasks(2);
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

/// Somebody who answers every request with success; the port.
fn answering() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 1024];
            if stream.read(&mut request).is_ok() {
                drop(stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                ));
            }
        }
    });
    port
}

const SECOND: i64 = 1_000_000_000;

/// A job whose service, with this tag, has a check; another release is another process.
fn web(port: u16, tag: &str, release: &str) -> Value {
    let mut web = job("web", "service", "exec sleep 1000");
    let group = &mut web["TaskGroups"][0];
    group["Services"] = json!([{
        "Name": "web",
        "Provider": "nomad",
        "PortLabel": port.to_string(),
        "Tags": [tag],
        "Checks": [{
            "Name": "up",
            "Type": "http",
            "Path": "/",
            "Interval": SECOND,
            "Timeout": SECOND,
        }],
    }]);
    group["Update"] = json!({
        "MaxParallel": 1,
        "HealthCheck": "checks",
        "MinHealthyTime": SECOND / 10,
        "HealthyDeadline": 30 * SECOND,
        "ProgressDeadline": 60 * SECOND,
    });
    group["Tasks"][0]["Env"] = json!({ "RELEASE": release });
    web
}

impl Nomad {
    /// The only instance of the service, once it has this tag.
    fn instance(&self, tag: &str) -> Value {
        self.wait("/v1/service/web", |all| match all.as_array()?.as_slice() {
            [one] if one["Tags"] == json!([tag]) => Some(one.clone()),
            _ => None,
        })
    }

    fn wait_for_no_instance(&self) {
        self.wait("/v1/service/web", |all| {
            all.as_array()?.is_empty().then_some(())
        });
    }

    /// The roll-out of this version of the job succeeds.
    fn rolled_out(&self, version: u64) {
        self.wait("/v1/job/web/deployments", |all| {
            let all = all.as_array()?;
            let of_it = all.iter().find(|it| it["JobVersion"] == version)?;
            (of_it["Status"] == "successful").then_some(())
        });
    }
}

#[test]
fn service_is_registered_at_server_as_long_as_it_runs() {
    let Some(nomad) = Nomad::start() else { return };
    let _lone = node_of(&nomad);
    let node = nomad.node("ready")["ID"].clone();
    let port = answering();
    nomad.submit(&web(port, "first", "a"));
    let first = nomad.instance("first");
    let alloc = nomad.alloc("web", "running")["ID"].clone();
    let id = format!("_nomad-task-{}-group-g-web-{port}", alloc.as_str().unwrap());
    assert_eq!(first["ID"], id);
    assert_eq!((&first["AllocID"], &first["NodeID"]), (&alloc, &node));
    assert_eq!(
        (&first["JobID"], &first["Port"]),
        (&json!("web"), &json!(port))
    );
    assert_eq!(
        (&first["Namespace"], &first["Datacenter"]),
        (&json!("default"), &json!("dc1"))
    );
    nomad.rolled_out(0);
    // A tag changes in place.
    nomad.submit(&web(port, "second", "a"));
    assert_eq!(nomad.instance("second")["ID"], id);
    nomad.rolled_out(1);
    // Another process takes its place, which has to be healthy.
    nomad.submit(&web(port, "third", "b"));
    nomad.rolled_out(2);
    assert_ne!(nomad.instance("third")["AllocID"], alloc);
    assert!(nomad.ask("DELETE", "/v1/job/web", "").is_some());
    nomad.wait_for_no_instance();
}

#[test]
fn service_outlives_agent_and_is_removed_by_the_next_one() {
    let Some(nomad) = Nomad::start() else { return };
    let mut lone = node_of(&nomad);
    nomad.node("ready");
    nomad.submit(&web(answering(), "first", "a"));
    let first = nomad.instance("first");
    nomad.rolled_out(0);
    lone = lone.next_agent();
    nomad.node("ready");
    let path = format!("/v1/allocation/{}", first["AllocID"].as_str().unwrap());
    lone.agent.wait_for(&path, |alloc| {
        (alloc["ClientStatus"] == "running").then_some(())
    });
    assert_eq!(nomad.instance("first"), first);
    let _lone = lone.next_agent_after(|| {
        assert!(nomad.ask("DELETE", "/v1/job/web", "").is_some());
    });
    nomad.wait_for_no_instance();
    nomad.alloc("web", "complete");
}
