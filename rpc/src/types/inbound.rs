//! What servers ask of a node, and what it answers. Requests are read only, so what they have in
//! common with every read is left out, but for the token and namespace of who asks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::inbound_request;
use super::query::Empty;
use super::registration::WriteReply;
use crate::msgpack::{Secret, Time, Value};

/// Sends a signal to a task, or to all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocationsSignal {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub auth_token: Secret,
    pub namespace: String,
    pub signal: String,
    pub task: String,
}

inbound_request!(AllocationsSignal, "Allocations.Signal", WriteReply);

/// Restarts a task, the running ones, or all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocationsRestart {
    pub all_tasks: bool,
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub auth_token: Secret,
    pub namespace: String,
    pub task_name: String,
}

inbound_request!(AllocationsRestart, "Allocations.Restart", WriteReply);

/// Removes an allocation that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocationsGarbageCollect {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub auth_token: Secret,
    pub namespace: String,
}

inbound_request!(
    AllocationsGarbageCollect,
    "Allocations.GarbageCollect",
    WriteReply
);

/// Removes all that have ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocationsGarbageCollectAll {
    pub auth_token: Secret,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
}

inbound_request!(
    AllocationsGarbageCollectAll,
    "Allocations.GarbageCollectAll",
    WriteReply
);

/// Asks for results of checks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocationsChecks {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub auth_token: Secret,
    pub namespace: String,
}

inbound_request!(AllocationsChecks, "Allocations.Checks", Checks);

/// Results by the checks' ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Checks {
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
    pub results: BTreeMap<String, CheckQueryResult>,
}

/// The last result of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CheckQueryResult {
    pub check: String,
    pub group: String,
    #[serde(rename = "ID")]
    pub id: String,
    pub mode: String,
    pub output: String,
    pub service: String,
    pub status: String,
    pub status_code: i64,
    pub task: String,
    /// Seconds since 1970.
    pub timestamp: i64,
}

/// Lists a directory of an allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FileSystemList {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub auth_token: Secret,
    pub namespace: String,
    pub path: String,
}

inbound_request!(FileSystemList, "FileSystem.List", FileList);

/// The entries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FileList {
    pub files: Vec<FileInfo>,
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
}

/// Asks what a file is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FileSystemStat {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub auth_token: Secret,
    pub namespace: String,
    pub path: String,
}

inbound_request!(FileSystemStat, "FileSystem.Stat", FileStat);

/// What it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FileStat {
    pub index: u64,
    pub info: Option<FileInfo>,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
}

/// A file or directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FileInfo {
    pub content_type: String,
    /// As `-rw-r--r--`.
    pub file_mode: String,
    pub is_dir: bool,
    pub mod_time: Time,
    pub name: String,
    pub size: i64,
}

/// Asks for the node's metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeMetaRead {
    pub auth_token: Secret,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
}

inbound_request!(NodeMetaRead, "NodeMeta.Read", NodeMeta);

/// Sets metadata; nil removes a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeMetaApply {
    pub auth_token: Secret,
    pub meta: BTreeMap<String, Option<String>>,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
}

inbound_request!(NodeMetaApply, "NodeMeta.Apply", NodeMeta);

/// The metadata: of the settings, set since, and both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeMeta {
    pub dynamic: BTreeMap<String, Option<String>>,
    pub meta: BTreeMap<String, String>,
    pub r#static: BTreeMap<String, String>,
}

/// Asks for the claims of the node's token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeIdentityGet {
    pub auth_token: Secret,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
}

inbound_request!(NodeIdentityGet, "NodeIdentity.Get", NodeIdentityClaims);

/// The claims; numbers are floats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeIdentityClaims {
    pub claims: BTreeMap<String, Value>,
}

/// Has the next heartbeat ask for a new token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NodeIdentityRenew {
    pub auth_token: Secret,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
}

inbound_request!(NodeIdentityRenew, "NodeIdentity.Renew", Empty);

/// Makes a volume by a plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostVolumeCreate {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub parameters: BTreeMap<String, String>,
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
    pub requested_capacity_max_bytes: i64,
    pub requested_capacity_min_bytes: i64,
}

inbound_request!(HostVolumeCreate, "HostVolume.Create", HostVolumeCreated);

/// The volume that was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostVolumeCreated {
    pub capacity_bytes: i64,
    pub host_path: String,
    #[serde(rename = "VolumeID")]
    pub volume_id: String,
    pub volume_name: String,
}

/// Takes a directory that exists for a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostVolumeRegister {
    pub capacity_bytes: i64,
    pub host_path: String,
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub parameters: BTreeMap<String, String>,
}

inbound_request!(HostVolumeRegister, "HostVolume.Register", Empty);

/// Removes a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostVolumeDelete {
    pub host_path: String,
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub parameters: BTreeMap<String, String>,
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
}

inbound_request!(HostVolumeDelete, "HostVolume.Delete", HostVolumeDeleted);

/// The volume that was removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostVolumeDeleted {
    #[serde(rename = "VolumeID")]
    pub volume_id: String,
    pub volume_name: String,
}
