//! What servers place by: devices, host volumes, processors and drivers of a node that is one of their cluster, and what
//! they do not place on it. Where there is no program `nomad` on the PATH, these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "support/plugins.rs"]
mod plugins;
mod support;

use std::fs;

use plugins::Plugins;
use serde_json::{Value, json};
use support::Lone;
use support::nomad::{Nomad, job};

/// A node with a device and a directory for jobs.
fn node_with(nomad: &Nomad, dir: &tempfile::TempDir) -> Lone {
    Lone::configured(&format!(
        "name = \"here\"\nclient {{\n servers = [\"{}\"]\n host_volume \"data\" {{\n path = \"{}\"\n }}\n}}\n\
         device \"acme/fpga/x1\" {{\n id = \"slot-3\"\n nodes = [\"/dev/null\"]\n env = {{ FPGA = \"slot-3\" }}\n}}\n",
        nomad.rpc,
        dir.path().display()
    ))
}

/// A service that takes the device, a processor and the directory, and writes down what it got.
fn taker(name: &str) -> Value {
    let text = "echo \"$FPGA $(grep Cpus_allowed_list /proc/self/status | cut -f2)\" > \"$NOMAD_VOLUME_data/got\"
                exec sleep 1000";
    let mut job = job(name, "service", text);
    let group = &mut job["TaskGroups"][0];
    group["Volumes"] = json!({ "data": { "Name": "data", "Type": "host", "Source": "data" } });
    let task = &mut group["Tasks"][0];
    task["VolumeMounts"] = json!([{ "Volume": "data", "Destination": "/data" }]);
    task["Resources"] = json!({
        "Cores": 1,
        "MemoryMB": 20,
        "Devices": [{ "Name": "acme/fpga/x1", "Count": 1 }],
    });
    job
}

impl Nomad {
    /// Why the group of a job is not placed.
    fn why_unplaced(&self, job: &str) -> Value {
        self.wait(&format!("/v1/job/{job}/evaluations"), |evals| {
            let mut evals = evals.as_array()?.iter();
            let failed = evals.find_map(|eval| eval["FailedTGAllocs"].get("g"));
            failed.cloned()
        })
    }
}

#[test]
fn node_gives_what_servers_placed_by() {
    let Some(nomad) = Nomad::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let lone = node_with(&nomad, &dir);
    nomad.node("ready");
    nomad.submit(&taker("first"));
    let alloc = nomad.alloc("first", "running");
    let got = support::until(|| {
        let got = fs::read_to_string(dir.path().join("got")).ok()?;
        got.ends_with('\n').then_some(got)
    });
    let path = format!("/v1/allocation/{}", alloc["ID"].as_str().unwrap());
    let alloc = nomad.ask("GET", &path, "").unwrap();
    let core = &alloc["AllocatedResources"]["Tasks"]["t"]["Cpu"]["ReservedCores"][0];
    assert_eq!(got, format!("slot-3 {core}\n"));

    // Each of these lacks something that only one can have, or that nobody has here.
    nomad.submit(&taker("second"));
    let mut of_java = job("java", "batch", "exit 0");
    of_java["TaskGroups"][0]["Tasks"][0]["Driver"] = json!("java");
    of_java["TaskGroups"][0]["Tasks"][0]["Config"] = json!({ "jar_path": "x.jar" });
    nomad.submit(&of_java);
    let mut of_consul = job("consul", "service", "exec sleep 1000");
    of_consul["TaskGroups"][0]["Services"] = json!([{ "Name": "x", "Provider": "consul" }]);
    nomad.submit(&of_consul);
    let why = nomad.why_unplaced("second").to_string();
    assert!(why.contains("devices"), "{why}");
    let why = nomad.why_unplaced("java")["ConstraintFiltered"].to_string();
    assert!(why.contains("missing drivers"), "{why}");
    let why = nomad.why_unplaced("consul")["ConstraintFiltered"].to_string();
    assert!(why.contains("consul"), "{why}");
    for job in ["second", "java", "consul"] {
        let shown = lone.agent.get(&format!("/v1/job/{job}/allocations"));
        assert_eq!(shown, json!([]), "{job}");
    }
}

#[test]
fn node_that_was_purged_is_there_again_with_one_process() {
    let Some(nomad) = Nomad::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let lone = node_with(&nomad, &dir);
    let id = nomad.node("ready")["ID"].as_str().unwrap().to_owned();
    nomad.submit(&taker("first"));
    nomad.alloc("first", "running");
    assert!(
        nomad
            .ask("POST", &format!("/v1/node/{id}/purge"), "")
            .is_some()
    );
    // It may be gone for a moment.
    nomad.wait("/v1/nodes", |nodes| {
        let node = nodes.as_array()?.iter().find(|node| node["ID"] == id)?;
        (node["Status"] == "ready").then_some(())
    });
    let running = |all: &Value| -> Option<usize> {
        let all = all.as_array()?.iter();
        Some(all.filter(|it| it["ClientStatus"] == "running").count())
    };
    nomad.wait("/v1/job/first/allocations", |all| {
        (running(all)? == 1).then_some(())
    });
    lone.agent
        .wait_for("/v1/allocations", |all| (running(all)? == 1).then_some(()));
}

/// What people read at the server of one of the node's drivers, the oldest first.
fn driver_events(node: &Value, driver: &str) -> Vec<String> {
    let events = node["Events"].as_array().into_iter().flatten();
    let of_it =
        events.filter(|it| it["Subsystem"] == "Driver" && it["Details"]["driver"] == driver);
    of_it
        .map(|it| it["Message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn failed_and_recovered_driver_is_reported_to_servers_once_each() {
    let Some(nomad) = Nomad::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(plugins) = Plugins::of(&dir.path().join("plugins"), &[("child", "driver_plugin")])
    else {
        return;
    };
    let _lone = Lone::configured(&format!(
        "plugin_dir = \"{}\"\nplugin \"child\" {{}}\nclient {{\n servers = [\"{}\"]\n}}\n",
        plugins.dir.display(),
        nomad.rpc
    ));
    let path = format!("/v1/node/{}", nomad.node("ready")["ID"].as_str().unwrap());
    let healthy = |node: &Value| node["Drivers"]["example_exec"]["Healthy"] == true;
    let before = nomad.wait(&path, |node| {
        healthy(node).then(|| driver_events(node, "example_exec").len())
    });
    plugins.kill("child");
    let driver_reports = nomad.wait(&path, |node| {
        let driver_reports = driver_events(node, "example_exec").split_off(before);
        (healthy(node) && driver_reports.len() > 1).then_some(driver_reports)
    });
    let [failed, back] = driver_reports.as_slice() else {
        panic!("{driver_reports:?}");
    };
    assert_ne!(failed, back);
    assert_eq!(back, "Healthy");
}
