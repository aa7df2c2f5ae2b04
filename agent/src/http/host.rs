//! `/v1/agent/host`: facts of the machine for whoever looks for a mistake: its system, networks, names and
//! the disk of the agent's data. The agent's environment is not shown.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use axum::extract::State;
use serde::Serialize;
use serde_json::json;

use super::Api;
use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::Params;

/// Bytes that are shown of a file of the machine at most.
const MOST: u64 = 64 * 1024;
/// Networks that are shown at most.
const MOST_NETWORKS: usize = 256;
const MIB: u64 = 1024 * 1024;

/// What is told of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct HostData {
    #[serde(rename = "OS")]
    pub(crate) os: String,
    /// For each network: its name, address, size of packets and state.
    #[serde(rename = "Network")]
    pub(crate) networks: Vec<BTreeMap<String, String>>,
    #[serde(rename = "ResolvConf")]
    pub(crate) resolv_conf: String,
    #[serde(rename = "Hosts")]
    pub(crate) hosts: String,
    /// Always empty: it may hold secrets.
    #[serde(rename = "Environment")]
    environment: BTreeMap<String, String>,
    /// By directory.
    #[serde(rename = "Disk")]
    pub(crate) disks: BTreeMap<String, DiskSpace>,
}

/// The disk below a directory, in MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct DiskSpace {
    #[serde(rename = "DiskMB")]
    pub(crate) size: u64,
    #[serde(rename = "UsedMB")]
    pub(crate) used: u64,
}

pub(super) async fn facts(State(api): State<Api>, params: Params) -> Answer {
    let id = api.agent_handle.ask(|view| view.node().id).await?;
    let facts = of_this_machine(&api.settings.data_dir).await?;
    let value = json!({ "AgentID": id.to_string(), "HostData": facts });
    answer::json(&params, &value)
}

/// What there is to tell of this machine, and of the disk of this directory.
///
/// # Errors
/// It cannot be told.
pub(crate) async fn of_this_machine(data_dir: &str) -> Result<HostData, ApiError> {
    let data_dir = data_dir.to_owned();
    // Asking a disk may take a while.
    let facts = tokio::task::spawn_blocking(move || HostData {
        os: system(),
        networks: networks(),
        resolv_conf: text("/etc/resolv.conf"),
        hosts: text("/etc/hosts"),
        environment: BTreeMap::new(),
        disks: disk(Path::new(&data_dir)),
    });
    let facts = facts.await;
    facts.map_err(|_| ApiError::failed("the machine could not be inspected"))
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

fn networks() -> Vec<BTreeMap<String, String>> {
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
            [
                ("name", name.clone()),
                ("address", fact(name, "address")),
                ("mtu", fact(name, "mtu")),
                ("state", fact(name, "operstate")),
            ]
            .map(|(what, value)| (what.to_owned(), value))
            .into()
        })
        .collect()
}

fn disk(data_dir: &Path) -> BTreeMap<String, DiskSpace> {
    let Ok(found) = rustix::fs::statvfs(data_dir) else {
        return BTreeMap::new();
    };
    let mib = |blocks: u64| blocks.saturating_mul(found.f_frsize) / MIB;
    let space = DiskSpace {
        size: mib(found.f_blocks),
        used: mib(found.f_blocks.saturating_sub(found.f_bfree)),
    };
    [(data_dir.display().to_string(), space)].into()
}
