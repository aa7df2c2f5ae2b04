//! Plugins beside a real agent: each of them crashes, hangs, prints garbage or is killed, and
//! nothing happens to anybody else's task.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "support/plugins.rs"]
mod programs;
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use programs::Plugins;
use serde_json::Value;
use support::{Program, World, exchange};

const JOB: &str = r#"
job "both" {
  type = "service"
  group "g" {
    task "plain" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo files=$EXAMPLE_FILES; exec sleep 1000"]
      }
      resources {
        device "example/file" {}
      }
    }
    task "guest" {
      driver = "example_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
    }
  }
}
"#;

/// Plugins that work, and some that do not.
fn plugins(world: &World) -> Option<Plugins> {
    let programs = [("files", "device_plugin"), ("child", "driver_plugin")];
    let plugins = Plugins::of(&world.path("plugins"), &programs)?;
    for (name, mischief) in [
        ("crashing", "crash"),
        ("talking", "garbage"),
        ("hanging", "hang:PluginInfo"),
    ] {
        let program = plugins.dir.join("files");
        let script = format!(
            "#!/bin/sh\nEXAMPLE_PLUGIN_MISCHIEF={mischief} exec {}\n",
            program.display()
        );
        let path = plugins.dir.join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    Some(plugins)
}

fn get(addr: &str, path: &str) -> Value {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let (status, body) = exchange(addr, request.as_bytes()).unwrap();
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// Waits until what is shown of the node holds; each question waits for a change.
fn until(addr: &str, what: &str, holds: impl Fn(&Value) -> bool) {
    let nodes = get(addr, "/v1/nodes");
    let id = nodes[0]["ID"].as_str().unwrap().to_owned();
    let began = std::time::Instant::now();
    let mut index = 0;
    loop {
        let node = get(addr, &format!("/v1/node/{id}?index={index}&wait=5s"));
        if holds(&node) {
            return;
        }
        assert!(began.elapsed().as_secs() < 60, "{what}: {node}");
        index = node["ModifyIndex"].as_u64().unwrap();
    }
}

/// What is wrong with one of this list; empty if nothing is, and none if it is not in the list.
fn trouble<'a>(list: &'a Value, name: &str) -> Option<&'a str> {
    let of_name = |one: &&Value| one["Name"] == name;
    let found = list.as_array().unwrap().iter().find(of_name);
    found.map(|one| one["Trouble"].as_str().unwrap())
}

/// Whether one of this list is in trouble.
fn has_trouble(list: &Value, name: &str) -> bool {
    trouble(list, name).is_some_and(|why| !why.is_empty())
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// Every task runs, and none was ever started again.
fn nobody_noticed(addr: &str) {
    let allocs = get(addr, "/v1/allocations");
    let allocs = allocs.as_array().unwrap();
    assert_eq!(allocs.len(), 1, "{allocs:?}");
    for task in ["plain", "guest"] {
        let state = &allocs[0]["TaskStates"][task];
        assert_eq!(
            (&state["State"], &state["Restarts"]),
            (&"running".into(), &0.into()),
            "{task}"
        );
    }
}

/// What the plugins measure is shown as soon as they have measured it.
fn all_are_measured(addr: &str) {
    let allocs = get(addr, "/v1/allocations");
    let path = format!(
        "/v1/client/allocation/{}/stats",
        allocs[0]["ID"].as_str().unwrap()
    );
    let began = std::time::Instant::now();
    loop {
        let stats = get(addr, &path);
        let guest = &stats["Tasks"]["guest"]["ResourceUsage"]["MemoryStats"];
        let files = &stats["ResourceUsage"]["DeviceStats"][0]["InstanceStats"];
        if guest["RSS"].as_u64() > Some(0) && files["a"]["Summary"]["IntNumeratorVal"] == 0 {
            assert_eq!(guest["Measured"], serde_json::json!(["RSS"]));
            return;
        }
        assert!(began.elapsed().as_secs() < 60, "{stats}");
    }
}

/// What the list of plugins says of one.
fn plugin(addr: &str, name: &str) -> Value {
    let all = get(addr, "/v1/agent/plugins");
    let mut of_name = all
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["Name"] == name);
    let found = of_name.next().cloned();
    assert!(found.is_some() && of_name.next().is_none(), "{name}: {all}");
    found.unwrap()
}

/// The list of plugins knows processes, who needs whom, and what is wrong.
fn plugin_list_is_right(addr: &str, plugins: &Plugins) {
    for (name, program, kind) in [
        ("example-files", "files", "device"),
        ("example_exec", "child", "driver"),
    ] {
        let shown = plugin(addr, name);
        // Plugins that misbehave run the same program.
        let pids = plugins.processes(program);
        let mut pids = pids.iter().map(|pid| pid.as_raw_nonzero().get());
        assert!(pids.any(|pid| shown["Pid"] == pid), "{shown}");
        assert_eq!(
            (&shown["State"], &shown["Kind"], &shown["Program"]),
            (&"running".into(), &kind.into(), &program.into())
        );
        assert_eq!(
            (&shown["Tasks"], &shown["Restarts"]),
            (&1.into(), &0.into())
        );
        assert!(is_text(&shown["Since"]), "{shown}");
    }
    assert_eq!(plugin(addr, "example-files")["Devices"], 1);
    let crashing = plugin(addr, "crashing");
    assert_eq!(crashing["State"], "backing off", "{crashing}");
    assert!(
        crashing["Message"]
            .as_str()
            .unwrap()
            .contains("exit code 2")
    );
    assert!(is_text(&crashing["NextTry"]), "{crashing}");
    let own = plugin(addr, "raw_exec");
    assert_eq!(
        (&own["State"], &own["Program"]),
        (&"running".into(), &"".into())
    );
}

#[test]
fn plugin_failures_leave_tasks_undisturbed() {
    let world = World::new();
    let Some(plugins) = plugins(&world) else {
        return;
    };
    let files = world.path("files");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("a"), "").unwrap();
    let config = format!(
        r#"
        plugin_dir = "{}"
        plugin "files" {{
          config {{
            dir   = "{}"
            files = ["a"]
          }}
        }}
        plugin "child" {{}}
        plugin "crashing" {{}}
        plugin "talking" {{}}
        plugin "hanging" {{}}
        "#,
        plugins.dir.display(),
        files.display()
    );
    let config = world.file("agent.hcl", &config);
    let job = world.file("both.nomad.hcl", JOB);
    let mut args = world.up(&job);
    args.extend(["-config".to_owned(), config.to_string_lossy().into_owned()]);
    let up = Program::start(args);
    let addr = up.addr();
    up.line("files=a");
    until(&addr, "bad plugins are told of", |node| {
        ["crashing", "talking", "hanging"]
            .iter()
            .all(|name| has_trouble(&node["Probes"], &format!("plugin {name}")))
    });
    nobody_noticed(&addr);
    all_are_measured(&addr);
    plugin_list_is_right(&addr, &plugins);
    plugins.kill("files");
    until(&addr, "the plugin of devices is missed", |node| {
        has_trouble(&node["DevicePlugins"], "example-files")
    });
    nobody_noticed(&addr);
    plugins.kill("child");
    until(&addr, "the driver is missed", |node| {
        node["Drivers"]["example_exec"]["Healthy"] == false
    });
    until(&addr, "both come back", |node| {
        node["Drivers"]["example_exec"]["Healthy"] == true
            && trouble(&node["DevicePlugins"], "example-files") == Some("")
    });
    let allocs = get(&addr, "/v1/allocations");
    all_are_measured(&addr);
    let plain = &allocs[0]["TaskStates"]["plain"];
    assert_eq!(plain["State"], "running", "{plain}");
    let files = plugin(&addr, "example-files");
    assert!(files["Restarts"].as_u64() >= Some(1), "{files}");
    up.interrupt();
    up.end();
}

const PLAIN: &str = r#"
job "plain" {
  type = "service"
  group "g" {
    task "plain" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo it runs; exec sleep 1000"]
      }
    }
  }
}
"#;

/// Names of the metrics in one list of the JSON.
fn metrics(addr: &str, list: &str) -> Vec<String> {
    let all = get(addr, "/v1/metrics");
    let names = all[list].as_array().unwrap().iter();
    let names = names.map(|it| it["Name"].as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn disabled_plugin_is_not_started_and_shown() {
    let world = World::new();
    let Some(plugins) = plugins(&world) else {
        return;
    };
    let config = format!(
        r#"
        plugin_dir = "{}"
        plugin "child" {{}}
        client {{
          options = {{
            "fingerprint.denylist" = "memory"
            "driver.denylist"      = "mock,example_exec"
          }}
        }}
        telemetry {{
          prometheus_metrics         = false
          publish_allocation_metrics = false
          publish_node_metrics       = false
          prefix_filter              = ["-drover.queue"]
        }}
        "#,
        plugins.dir.display(),
    );
    let config = world.file("agent.hcl", &config);
    let mut args = world.up(&world.file("plain.nomad.hcl", PLAIN));
    args.extend(["-config".to_owned(), config.to_string_lossy().into_owned()]);
    let up = Program::start(args);
    let addr = up.addr();
    up.line("it runs");
    let began = std::time::Instant::now();
    let ended = |child: &Value| child["State"] == "denied" && child["Pid"].is_null();
    while !ended(&plugin_of_program(&addr, "child")) {
        assert!(began.elapsed().as_secs() < 60, "the driver is not denied");
    }
    assert_eq!(plugin_of_program(&addr, "child")["Name"], "example_exec");
    assert!(plugins.processes("child").is_empty(), "it was ended");
    assert_eq!(plugin(&addr, "mock")["State"], "denied");
    let nodes = get(&addr, "/v1/nodes");
    let node = get(
        &addr,
        &format!("/v1/node/{}", nodes[0]["ID"].as_str().unwrap()),
    );
    assert_eq!(
        trouble(&node["Probes"], "memory"),
        Some("denied by fingerprint.denylist")
    );
    assert_eq!(trouble(&node["Probes"], "cpu"), Some(""));
    let attributes = node["Attributes"].as_object().unwrap();
    assert!(!attributes.contains_key("memory.totalbytes"));
    assert!(!attributes.contains_key("driver.mock") && attributes.contains_key("driver.raw_exec"));
    let gauges = metrics(&addr, "Gauges");
    let has = |prefix: &str| gauges.iter().any(|name| name.starts_with(prefix));
    assert!(has("nomad.client.allocated.cpu") && has("drover.core."));
    assert!(!has("nomad.client.allocs.") && !has("nomad.client.host.") && !has("drover.queue"));
    assert!(metrics(&addr, "Samples").contains(&"drover.core.step_seconds".to_owned()));
    let text = "GET /v1/metrics?format=prometheus HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let (status, body) = exchange(&addr, text.as_bytes()).unwrap();
    assert_eq!((status, body.as_str()), (415, "Prometheus is not enabled"));
    up.interrupt();
    up.end();
}

/// What the list says of the plugin of this program.
fn plugin_of_program(addr: &str, program: &str) -> Value {
    let all = get(addr, "/v1/agent/plugins");
    let found = all
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["Program"] == program);
    found.cloned().unwrap_or_default()
}
