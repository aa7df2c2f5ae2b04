//! Jobs as small as they come: what is measured is the agent.

use std::env;

use serde_json::{Value, json};

/// This program, as a task.
pub(crate) fn own() -> String {
    env::current_exe().unwrap().to_str().unwrap().to_owned()
}

pub(crate) fn task(command: &str, args: &[&str]) -> Value {
    json!({
        "Name": "t",
        "Driver": "raw_exec",
        "Config": { "command": command, "args": args },
        "Resources": { "CPU": 1, "MemoryMB": 10 },
        "LogConfig": { "MaxFiles": 1, "MaxFileSizeMB": 5 },
    })
}

pub(crate) fn group(name: &str, count: u64, task: &Value) -> Value {
    json!({
        "Name": name,
        "Count": count,
        "EphemeralDisk": { "SizeMB": 10 },
        "Tasks": [task],
    })
}

pub(crate) fn job(id: &str, kind: &str, groups: &[Value]) -> Value {
    json!({ "ID": id, "Name": id, "Type": kind, "Datacenters": ["dc1"], "TaskGroups": groups })
}

/// A job of one group of one task.
pub(crate) fn single(id: &str, kind: &str, count: u64, command: &str, args: &[&str]) -> Value {
    job(id, kind, &[group("g", count, &task(command, args))])
}

/// A service of this program.
pub(crate) fn own_service(id: &str, args: &[&str]) -> Value {
    single(id, "service", 1, &own(), args)
}

/// Where the allocations of a job are listed.
pub(crate) fn allocs_of(job: &str) -> String {
    format!("/v1/job/{job}/allocations")
}
