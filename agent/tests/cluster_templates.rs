//! Templates of tasks that a real server of Nomad placed: what they read there, and what follows when it changes. Where
//! there is no program `nomad` on the PATH, these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::nomad::{Nomad, job, node_of};
use support::{Lone, until};

impl Nomad {
    /// Sets the only item of a variable.
    fn put(&self, path: &str, value: &str) {
        let body = json!({ "Path": path, "Items": { "value": value } }).to_string();
        let put = self.ask("PUT", &format!("/v1/var/{path}"), &body);
        assert!(put.is_some(), "{path}");
    }
}

/// A job whose task tells what its template shows, at its start and at each signal.
fn shows(lone: &Lone, text: &str) -> Value {
    let script = "trap 'cat \"$NOMAD_TASK_DIR/value\" >> \"$OUT\"' HUP; cat \"$NOMAD_TASK_DIR/value\" >> \"$OUT\"; \
                  while :; do sleep 0.05; done";
    let mut web = job("web", "service", script);
    let task = &mut web["TaskGroups"][0]["Tasks"][0];
    let out = lone.world.path("out");
    task["Env"] = json!({ "OUT": out.to_str().unwrap() });
    task["KillTimeout"] = json!(100_000_000);
    task["Templates"] = json!([{
        "EmbeddedTmpl": text,
        "DestPath": "local/value",
        "ChangeMode": "signal",
        "ChangeSignal": "SIGHUP",
        "Splay": 0,
    }]);
    web
}

/// What the task told.
fn lines(lone: &Lone) -> Vec<String> {
    let text = fs::read_to_string(lone.world.path("out")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn templates_read_variables_and_services_of_servers() {
    let Some(nomad) = Nomad::start() else { return };
    let mut lone = node_of(&nomad);
    nomad.node("ready");
    nomad.put("nomad/jobs/web", "one");
    nomad.put("nomad/jobs/web/g", "x");
    let text = "{{ with nomadVar \"nomad/jobs/web\" }}{{ .value }}{{ end }} \
                {{ range nomadVarList \"nomad/jobs/web\" }}[{{ .Path }}]{{ end }} \
                {{ nomadVarExists \"nomad/jobs/none\" }} \
                {{ range nomadService \"api\" }}{{ .Address }}:{{ .Port }} {{ .Tags }}{{ end }}\n";
    nomad.submit(&shows(&lone, text));
    let first = until(|| lines(&lone).first().cloned());
    assert_eq!(first, "one [nomad/jobs/web][nomad/jobs/web/g] false ");
    let alloc = nomad.alloc("web", "running")["ID"].clone();
    // A change of the variable reaches the task by its signal, and so does a service that comes.
    nomad.put("nomad/jobs/web", "two");
    until(|| lines(&lone).last()?.starts_with("two ").then_some(()));
    let mut api = job("api", "service", "exec sleep 1000");
    api["TaskGroups"][0]["Services"] = json!([{
        "Name": "api",
        "Provider": "nomad",
        "PortLabel": "8080",
        "Tags": ["blue"],
    }]);
    nomad.submit(&api);
    until(|| lines(&lone).last()?.ends_with(":8080 [blue]").then_some(()));
    // What changes while there is no agent, the next one tells.
    lone = lone.next_agent_after(|| nomad.put("nomad/jobs/web", "three"));
    until(|| lines(&lone).last()?.starts_with("three ").then_some(()));
    let running = nomad.alloc("web", "running");
    assert_eq!(running["ID"], alloc);
    assert_eq!(running["TaskStates"]["t"]["Restarts"], 0);
    for job in ["web", "api"] {
        assert!(nomad.ask("DELETE", &format!("/v1/job/{job}"), "").is_some());
        nomad.alloc(job, "complete");
    }
}

#[test]
fn task_waits_for_a_variable_that_servers_refuse() {
    let acl = |_: &std::path::Path| "acl {\n enabled = true\n}\n".to_owned();
    let Some(mut nomad) = Nomad::start_with(acl) else {
        return;
    };
    let root = nomad.wait_for_answer("PUT", "/v1/acl/bootstrap");
    nomad.token = root["SecretID"].as_str().unwrap().to_owned();
    let lone = node_of(&nomad);
    nomad.node("ready");
    nomad.put("secret/db", "precious");
    nomad.submit(&shows(&lone, "{{ (nomadVar \"secret/db\").value }}\n"));
    // Its own it may read; this one only when a policy says so.
    let events = nomad.wait("/v1/job/web/allocations", |all| {
        let events = all.get(0)?["TaskStates"]["t"]["Events"].to_string();
        events.contains("Permission denied").then_some(events)
    });
    assert!(events.contains("nomadVar secret/db"), "{events}");
    assert_eq!(lines(&lone), Vec::<String>::new());
    let policy = json!({
        "Name": "db",
        "Rules": "namespace \"default\" { variables { path \"secret/*\" { capabilities = [\"read\"] } } }",
        "JobACL": { "Namespace": "default", "JobID": "web" },
    });
    let made = nomad.request("PUT", "/v1/acl/policy/db", &policy.to_string());
    assert_eq!(made.unwrap().0, 200);
    until(|| (lines(&lone) == ["precious"]).then_some(()));
    nomad.alloc("web", "running");
    assert!(nomad.ask("DELETE", "/v1/job/web", "").is_some());
    nomad.alloc("web", "complete");
}
