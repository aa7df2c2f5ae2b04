//! `/v1/agent/host`: facts of the machine for whoever looks for a mistake: its system, networks, names and
//! the disk of the agent's data. The agent's environment is not shown.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use axum::extract::State;
use serde_json::{Value, json};

use super::Api;
use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::Params;

/// Bytes that are shown of a file of the machine at most.
const MOST: u64 = 64 * 1024;
/// Networks that are shown at most.
const MOST_NETWORKS: usize = 256;
const MIB: u64 = 1024 * 1024;

pub(super) async fn facts(State(api): State<Api>, params: Params) -> Answer {
    let id = api.agent_handle.ask(|view| view.node().id).await?;
    let data_dir = api.settings.data_dir.clone();
    // Asking a disk may take a while.
    let facts = tokio::task::spawn_blocking(move || of_this_machine(Path::new(&data_dir))).await;
    let facts = facts.map_err(|_| ApiError::failed("the machine could not be inspected"))?;
    let value = json!({ "AgentID": id.to_string(), "HostData": facts });
    answer::json(&params, &value)
}

fn of_this_machine(data_dir: &Path) -> Value {
    json!({
        "OS": system(),
        "Network": networks(),
        "ResolvConf": text("/etc/resolv.conf"),
        "Hosts": text("/etc/hosts"),
        "Environment": BTreeMap::<String, String>::new(),
        "Disk": disk(data_dir),
    })
}

/// The beginning of a file; nothing if it cannot be read.
fn text(path: &str) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    read.map_or_else(
        |_| String::new(),
        |_| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

/// The name of the distribution, and what the kernel says of itself.
fn system() -> String {
    let release = text("/etc/os-release");
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = name.map_or("Linux", |name| name.trim_matches('"'));
    format!("{name}; {}", text("/proc/version").trim_end())
}

fn networks() -> Vec<Value> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.take(MOST_NETWORKS).collect();
    names.sort();
    let fact = |name: &str, what: &str| {
        let value = text(&format!("/sys/class/net/{name}/{what}"));
        value.trim_end().to_owned()
    };
    names
        .iter()
        .map(|name| {
            json!({
                "name": name,
                "address": fact(name, "address"),
                "mtu": fact(name, "mtu"),
                "state": fact(name, "operstate"),
            })
        })
        .collect()
}

fn disk(data_dir: &Path) -> Value {
    let Ok(found) = rustix::fs::statvfs(data_dir) else {
        return json!({});
    };
    let mib = |blocks: u64| blocks.saturating_mul(found.f_frsize) / MIB;
    let used = found.f_blocks.saturating_sub(found.f_bfree);
    json!({
        data_dir.display().to_string(): {
            "DiskMB": mib(found.f_blocks),
            "UsedMB": mib(used),
        }
    })
}
