//! The agent as a client node of a real server of Nomad. Where there is no program `nomad` on the PATH, these tests
//! say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::env;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use support::{Lone, TIMEOUT, exchange, free_addr};

/// A server of its own, which ends with the test.
struct Nomad {
    child: Child,
    dir: tempfile::TempDir,
    rpc: String,
    http: String,
}

impl Drop for Nomad {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Nomad {
    fn start() -> Option<Nomad> {
        let path = env::var_os("PATH")?;
        let mut programs = env::split_paths(&path).map(|dir| dir.join("nomad"));
        let Some(program) = programs.find(|program| program.is_file()) else {
            eprintln!("skipped: there is no program nomad");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let [http, rpc, serf] = [free_addr(), free_addr(), free_addr()];
        let port = |addr: &str| addr.rsplit(':').next().unwrap().to_owned();
        let settings = format!(
            "data_dir = \"{}/data\"\nbind_addr = \"127.0.0.1\"\ndisable_update_check = true\nports {{\n http = {}\n \
             rpc = {}\n serf = {}\n}}\nadvertise {{\n http = \"{http}\"\n rpc = \"{rpc}\"\n serf = \"{serf}\"\n}}\n\
             server {{\n enabled = true\n bootstrap_expect = 1\n heartbeat_grace = \"2s\"\n}}\n",
            dir.path().display(),
            port(&http),
            port(&rpc),
            port(&serf),
        );
        let nomad = Nomad {
            child: run(&program, dir.path().join("server.hcl"), &settings),
            dir,
            rpc,
            http,
        };
        nomad.wait("/v1/status/leader", |leader| {
            leader.as_str().filter(|it| !it.is_empty()).map(|_| ())
        });
        Some(nomad)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.http,
            body.len()
        );
        let (status, text) = exchange(&self.http, request.as_bytes()).ok()?;
        (status == 200).then(|| serde_json::from_str(&text).ok())?
    }

    fn wait<T>(&self, path: &str, found: impl Fn(&Value) -> Option<T>) -> T {
        let until = Instant::now() + TIMEOUT;
        loop {
            let seen = self.ask("GET", path, "");
            if let Some(found) = seen.as_ref().and_then(&found) {
                return found;
            }
            let log = || fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "{path}: {seen:?}\n{}", log());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn submit(&self, job: &Value) {
        let body = json!({ "Job": job }).to_string();
        assert!(self.ask("PUT", "/v1/jobs", &body).is_some());
    }

    /// The allocation of a job, once its status at the server is this one.
    fn alloc(&self, job: &str, status: &str) -> Value {
        self.wait(&format!("/v1/job/{job}/allocations"), |all| {
            let all = all.as_array()?;
            all.iter().find(|it| it["ClientStatus"] == status).cloned()
        })
    }

    fn node(&self, status: &str) -> Value {
        self.wait("/v1/nodes", |nodes| {
            let node = nodes.get(0)?;
            (node["Status"] == status).then(|| node.clone())
        })
    }
}

fn run(program: &PathBuf, file: PathBuf, settings: &str) -> Child {
    fs::write(&file, settings).unwrap();
    let log = || File::create(file.with_file_name("log")).unwrap();
    Command::new(program)
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", file.parent().unwrap())
        .args(["agent", "-config"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(log())
        .stderr(log())
        .spawn()
        .unwrap()
}

/// An agent that is a node of this server.
fn node_of(nomad: &Nomad) -> Lone {
    Lone::configured(&format!(
        "name = \"here\"\nclient {{\n servers = [\"{}\"]\n}}\n",
        nomad.rpc
    ))
}

fn job(name: &str, kind: &str, script: &str) -> Value {
    json!({
        "ID": name,
        "Name": name,
        "Type": kind,
        "Datacenters": ["dc1"],
        "TaskGroups": [{
            "Name": "g",
            "Count": 1,
            "RestartPolicy": { "Attempts": 0, "Mode": "fail" },
            "ReschedulePolicy": { "Attempts": 0, "Unlimited": false },
            "Tasks": [{
                "Name": "t",
                "Driver": "raw_exec",
                "Config": { "command": "/bin/sh", "args": ["-c", script] },
                "Resources": { "CPU": 20, "MemoryMB": 20 },
            }],
        }],
    })
}

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
