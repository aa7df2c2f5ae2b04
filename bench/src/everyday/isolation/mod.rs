//! Tasks that are kept apart: those of `exec` and `docker`, groups with networks of their own, cores that nobody else
//! has. Their program is `bench-task`, on a volume or in their image.

pub(crate) mod cpusets;
pub(crate) mod docker;
pub(crate) mod lives;
pub(crate) mod networks;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::api::{Api, REST};
use crate::jobs::{allocs_of, group, job};

/// Where tasks have their program.
const PROGRAM: &str = "/bench/bench-task";
/// The image of containers. No registry has it.
const IMAGE: &str = "drover-bench:1";
/// The volume of tasks that have no image.
const VOLUME: &str = "bench";
/// Megabytes of a task's memory. Some runtimes need more of it than the program does.
const MEMORY: u64 = 32;

/// A job of one group of tasks of this driver. What fails is not begun again.
fn isolated(id: &str, of_type: &str, count: u64, driver: &str, args: &[&str]) -> Value {
    let mut task = json!({
        "Name": "t",
        "Driver": driver,
        "Config": { "command": PROGRAM, "args": args },
        "Resources": { "CPU": 1, "MemoryMB": MEMORY },
        "LogConfig": { "MaxFiles": 1, "MaxFileSizeMB": 5 },
    });
    if driver == "docker" {
        task["Config"]["image"] = json!(IMAGE);
        task["Config"]["network_mode"] = json!("none");
        // It is the first process of its container, to which signals do nothing that it does not handle.
        task["KillSignal"] = json!("SIGKILL");
    } else {
        let mount = json!({ "Volume": VOLUME, "Destination": "/bench", "ReadOnly": true });
        task["VolumeMounts"] = json!([mount]);
    }
    let mut group = group("g", count, &task);
    if driver != "docker" {
        let volume = json!({ "Name": VOLUME, "Type": "host", "Source": VOLUME, "ReadOnly": true });
        group["Volumes"] = json!({ VOLUME: volume });
    }
    group["RestartPolicy"] = json!({
        "Attempts": 0,
        "Mode": "fail",
        "Interval": 1_800_000_000_000_u64,
        "Delay": 15_000_000_000_u64,
    });
    group["ReschedulePolicy"] = json!({ "Attempts": 0, "Unlimited": false });
    job(id, of_type, &[group])
}

/// The only group of a job.
fn group_of(job: &mut Value) -> &mut Value {
    &mut job["TaskGroups"][0]
}

/// The only task of a job.
fn task_of(job: &mut Value) -> &mut Value {
    &mut job["TaskGroups"][0]["Tasks"][0]
}

/// Waits until so many allocations of a job are so far. Gives the list of them.
async fn all_are(api: &mut Api, id: &str, count: u64, status: &str) -> Value {
    let are = |list: &Value| {
        let list = list.as_array().unwrap();
        let failed = list.iter().find(|one| one["ClientStatus"] == "failed");
        assert!(failed.is_none(), "a task failed: {failed:?}");
        let so = list.iter().filter(|one| one["ClientStatus"] == status);
        so.count() as u64 == count
    };
    api.await_change(&allocs_of(id), are).await
}

/// Forgets a job that is over. One that is submitted again before it is forgotten would go on with its versions and
/// allocations.
async fn purge(api: &mut Api, id: &str) {
    let path = format!("/v1/job/{id}");
    api.bytes("DELETE", &format!("{path}?purge=true"), "").await;
    let begin = Instant::now();
    while !api.get_json(&path).await.is_null() {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{id} is never forgotten"
        );
        sleep(REST).await;
    }
}

/// When the program of an allocation began, as it wrote.
async fn stamp(api: &mut Api, alloc: &str) -> Duration {
    let path = format!("/v1/client/fs/logs/{alloc}?task=t&type=stdout&plain=true");
    let begin = Instant::now();
    loop {
        // Not all agents have the file as soon as the task runs.
        if let Some(nanos) = api.get_json(&path).await.as_u64() {
            return Duration::from_nanos(nanos);
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "no output");
        sleep(REST).await;
    }
}

/// Starts a service. Prints how long it took until all of it ran.
pub(crate) async fn many(addr: &str, id: &str, driver: &str, count: u64, args: &[&str]) {
    let mut api = Api::new(addr).await;
    let begin = Instant::now();
    api.submit(&isolated(id, "service", count, driver, args))
        .await;
    all_are(&mut api, id, count, "running").await;
    println!("{}", begin.elapsed().as_micros());
}

/// Prints why the node cannot run tasks of this driver, or have networks of groups if that is `bridge`; nothing if it can.
/// It has so many seconds to find out.
pub(crate) async fn lacks(addr: &str, what: &str, seconds: u64) {
    let mut api = Api::new(addr).await;
    let begin = Instant::now();
    let why = loop {
        let nodes = api.get("/v1/nodes").await;
        let id = nodes[0]["ID"].as_str().unwrap_or_default().to_owned();
        let node = api.get_json(&format!("/v1/node/{id}")).await;
        let why = obstacle(&node, what);
        if why.is_none() || begin.elapsed() > Duration::from_secs(seconds) {
            break why;
        }
        sleep(REST).await;
    };
    let why = why.unwrap_or_default();
    println!("{}", why.lines().next().unwrap_or_default());
}

fn obstacle(node: &Value, what: &str) -> Option<String> {
    let reported = |value: &Value, otherwise: &str| {
        let reported = value.as_str().filter(|reported| !reported.is_empty());
        Some(reported.unwrap_or(otherwise).to_owned())
    };
    if what == "bridge" {
        let networks = node["NodeResources"]["Networks"].as_array();
        let has = networks.is_some_and(|all| all.iter().any(|one| one["Mode"] == "bridge"));
        let fault = &node["Attributes"]["network.bridge.fault"];
        return match has {
            true => None,
            false => reported(fault, "the node offers no networks of groups"),
        };
    }
    let driver = &node["Drivers"][what];
    match driver["Healthy"] == true {
        true => None,
        false => reported(&driver["HealthDescription"], "the node has no such driver"),
    }
}
