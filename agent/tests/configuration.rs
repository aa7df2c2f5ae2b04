//! An agent with a configuration as one has it for Nomad, and what it writes about itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::net::TcpListener;
use std::time::Instant;

use serde_json::{Value, json};
use support::{Program, TIMEOUT, World, free_addr, request};

/// An agent with this configuration, once its API answers.
fn agent(world: &World, text: &str, addr: &str) -> Program {
    let (host, port) = addr.rsplit_once(':').unwrap();
    let data = world.data();
    let text = format!(
        "bind_addr = \"{host}\"\nports {{\n  http = {port}\n}}\ndata_dir = \"{}\"\n{text}",
        data.display()
    );
    let file = world.file("agent.hcl", &text);
    let agent = Program::start(["agent", "-config", file.to_str().unwrap()]);
    let until = Instant::now() + TIMEOUT;
    while !matches!(request(addr, "GET", "/v1/agent/health", None), Ok((200, _))) {
        assert!(Instant::now() < until, "the agent does not answer");
        std::thread::yield_now();
    }
    agent
}

fn get(addr: &str, path: &str) -> Value {
    let (status, body) = request(addr, "GET", path, None).unwrap();
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

fn put(addr: &str, job: &Value) -> (u16, String) {
    request(addr, "PUT", "/v1/jobs", Some(&json!({ "Job": job }))).unwrap()
}

fn wait(addr: &str, path: &str, done: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + TIMEOUT;
    loop {
        let seen = get(addr, path);
        if done(&seen) {
            return seen;
        }
        assert!(Instant::now() < until, "{path}: {seen:#}");
        std::thread::yield_now();
    }
}

fn shell(id: &str, script: &str) -> Value {
    json!({
        "ID": id, "Type": "service", "Datacenters": ["*"],
        "TaskGroups": [{
            "Name": "g",
            "RestartPolicy": { "Attempts": 1, "Delay": 1_000_000, "Interval": 5_000_000_000_i64, "Mode": "fail" },
            "ReschedulePolicy": { "Attempts": 0, "Unlimited": false },
            "Tasks": [{
                "Name": "t", "Driver": "raw_exec",
                "Config": { "command": "/bin/sh", "args": ["-c", script] },
                "Env": { "TOKEN": "s3cret" },
            }],
        }],
    })
}

#[test]
fn nomad_configuration_has_effect() {
    let world = World::new();
    let addr = free_addr();
    let text = r#"
        name       = "node-7"
        datacenter = "dc9"
        namespaces = ["ops"]
        leave_on_terminate = true
        client {
          enabled    = true
          node_class = "large"
          node_pool  = "gpus"
          meta {
            rack = "r1"
          }
          reserved {
            cpu = 100
          }
          host_network "here" {
            interface = "lo"
            cidr      = "127.0.0.0/8"
          }
        }
        server {
          enabled          = true
          bootstrap_expect = 1
        }
    "#;
    let agent = agent(&world, text, &addr);
    let warned = agent.err_line("settings without effect");
    assert!(
        warned.contains("leave_on_terminate, server.bootstrap_expect"),
        "{warned}"
    );
    let nodes = get(&addr, "/v1/nodes");
    let node = &nodes[0];
    let facts = ["Name", "Datacenter", "NodeClass", "NodePool", "Version"].map(|name| &node[name]);
    assert_eq!(facts, ["node-7", "dc9", "large", "gpus", "2.0.5"]);
    let path = format!("/v1/node/{}", node["ID"].as_str().unwrap());
    let node = wait(&addr, &path, |node| {
        node["Attributes"]["unique.network.host_network.here"].is_string()
            && node["Attributes"]["nomad.version"].is_string()
    });
    assert_eq!(node["Meta"]["rack"], "r1");
    assert_eq!(node["ReservedResources"]["Cpu"]["CpuShares"], 100);
    assert_eq!(node["Attributes"]["nomad.version"], "2.0.5");
    assert_eq!(
        node["Attributes"]["drover.version"],
        env!("CARGO_PKG_VERSION")
    );
    let mut job = shell("web", "exec sleep 1000");
    job["NodePool"] = json!("gpus");
    job["Namespace"] = json!("ops");
    job["Constraints"] = json!([
        { "LTarget": "${attr.nomad.version}", "RTarget": ">= 1.8", "Operand": "version" },
        { "LTarget": "${meta.rack}", "RTarget": "r1", "Operand": "=" },
    ]);
    let port = |network: &str| {
        json!([{ "DynamicPorts": [
        { "Label": "my-port", "To": 80, "HostNetwork": network },
    ] }])
    };
    job["TaskGroups"][0]["Networks"] = port("here");
    let (status, body) = put(&addr, &job);
    assert_eq!(status, 200, "{body}");
    let allocs = wait(&addr, "/v1/job/web/allocations?namespace=ops", |allocs| {
        allocs[0]["ClientStatus"] == "running"
    });
    let path = format!("/v1/allocation/{}", allocs[0]["ID"].as_str().unwrap());
    let ports = get(&addr, &path)["AllocatedResources"]["Shared"]["Ports"].clone();
    assert_eq!(
        (&ports[0]["HostIP"], &ports[0]["Label"]),
        (&json!("127.0.0.1"), &json!("my-port"))
    );
    job["ID"] = json!("lost");
    job["TaskGroups"][0]["Networks"] = port("nowhere");
    assert_eq!(put(&addr, &job).0, 200);
    let evals = wait(&addr, "/v1/job/lost/evaluations?namespace=ops", |evals| {
        !evals[0]["FailedTGAllocs"].is_null()
    });
    let why = evals[0]["FailedTGAllocs"].to_string();
    assert!(
        why.contains("missing host network") && why.contains("nowhere"),
        "{why}"
    );
    drop(agent);
}

#[test]
fn log_has_task_events_without_secrets() {
    let world = World::new();
    let addr = free_addr();
    let agent = agent(&world, "log_level = \"info\"\nlog_json = true\n", &addr);
    let (status, body) = put(&addr, &shell("web", "echo $TOKEN; exit 7"));
    assert_eq!(status, 200, "{body}");
    let fields = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    let id = {
        let allocs = wait(&addr, "/v1/job/web/allocations", |allocs| {
            allocs[0].is_object()
        });
        allocs[0]["ID"].as_str().unwrap().to_owned()
    };
    for (kind, level) in [
        ("Started", "INFO"),
        ("Terminated", "INFO"),
        ("Restarting", "INFO"),
        ("Not Restarting", "WARN"),
    ] {
        let line = fields(&agent.err_line(&format!("\"event\":\"{kind}\"")));
        assert_eq!(line["level"], level, "{line}");
        let whose = ["job", "group", "alloc", "task"].map(|name| &line[name]);
        assert_eq!(whose, ["web", "g", id.as_str(), "t"], "{line}");
    }
    let line = fields(&agent.err_line("\"event\":\"Terminated\""));
    assert!(
        line["message"].as_str().unwrap().contains("Exit Code: 7"),
        "{line}"
    );
    wait(&addr, "/v1/job/web/allocations", |allocs| {
        allocs[0]["ClientStatus"] == "failed"
    });
    request(&addr, "PUT", "/v1/system/gc", None).unwrap();
    let line = fields(&agent.err_line("garbage-collecting the allocation"));
    assert_eq!(line["alloc"], id.as_str(), "{line}");
    agent.interrupt();
    let ended = agent.end();
    assert!(!ended.err.contains("s3cret"), "{}", ended.err);
}

#[test]
fn command_line_overrides_configuration() {
    let world = World::new();
    let file = world.file(
        "agent.hcl",
        "bind_addr = \"203.0.113.9\"\nname = \"of-the-file\"\n",
    );
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let args = [
        "agent",
        "-config",
        file.to_str().unwrap(),
        "-http",
        addr.as_str(),
    ];
    let err = Program::run(args).failed();
    assert!(err.contains(&format!("cannot listen on {addr}")), "{err}");
    let err = Program::run(&args[..3]).failed();
    assert!(err.contains("cannot listen on 203.0.113.9:4646"), "{err}");
}

#[test]
fn restarting_task_is_in_top_and_services() {
    let world = World::new();
    let addr = free_addr();
    let agent = agent(&world, "", &addr);
    let mut job = shell("web", "sleep 0.2; exit 7");
    job["TaskGroups"][0]["RestartPolicy"] = json!({ "Attempts": 1, "Delay": 600_000_000_000_i64, "Interval": 1_800_000_000_000_i64, "Mode": "fail" });
    job["TaskGroups"][0]["Services"] = json!([{ "Name": "api", "Provider": "nomad" }]);
    assert_eq!(put(&addr, &job).0, 200);
    agent.err_line("event=\"Restarting\"");
    let url = format!("http://{addr}");
    let out = Program::run(["top", "-once", "-address", &url]).ok();
    assert!(
        out.contains("WAITS FOR") && out.contains("Task restarting in"),
        "{out}"
    );
    assert!(out.contains("1 task, 1 of them waiting"), "{out}");
    let services = get(&addr, "/v1/service/api");
    assert_eq!(services.as_array().unwrap().len(), 1, "{services}");
    assert_eq!(services[0]["Port"], 0);
}

#[test]
fn missing_driver_is_warned_about_at_validation() {
    let world = World::new();
    let addr = free_addr();
    let _agent = agent(&world, "", &addr);
    let file = world.file(
        "job.hcl",
        "job \"x\" {\n  group \"g\" {\n    task \"t\" {\n      driver = \"qemu\"\n      config {\n        image = \"x\"\n      }\n    }\n  }\n}\n",
    );
    wait(&addr, "/v1/nodes", |nodes| {
        nodes[0]["Drivers"]["raw_exec"]["Healthy"] == true
    });
    let url = format!("http://{addr}");
    let ended = Program::run(["job", "validate", "-address", &url, file.to_str().unwrap()]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        ended.err.contains("\"qemu\" is not on this node"),
        "{ended:?}"
    );
    assert!(ended.err.contains("raw_exec"), "{ended:?}");
}
