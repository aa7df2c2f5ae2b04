//! Streaming calls: their header, acknowledgement, requests and objects.

use serde::{Deserialize, Serialize};

use crate::msgpack::{Raw, Secret};

/// The first object on a stream: which method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StreamHeader {
    pub method: String,
}

/// The answer to it, before the request is read; empty: go on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StreamAck {
    pub error: String,
}

/// What a node sends, again and again. One with an error is the last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StreamOut {
    pub error: Option<StreamError>,
    pub payload: Raw,
}

/// Why a stream ended; the code is one of HTTP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StreamError {
    pub code: Option<i64>,
    pub message: String,
}

/// Logs of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FileSystemLogs {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub auth_token: Secret,
    pub follow: bool,
    /// `stdout` or `stderr`.
    pub log_type: String,
    pub namespace: String,
    pub offset: i64,
    /// `start` or `end`.
    pub origin: String,
    pub plain_text: bool,
    pub task: String,
}

/// A file of an allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FileSystemStream {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub auth_token: Secret,
    pub follow: bool,
    /// 0: none.
    pub limit: i64,
    pub namespace: String,
    pub offset: i64,
    pub origin: String,
    pub path: String,
    pub plain_text: bool,
}

/// Runs a command in a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocationsExec {
    pub action: String,
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub auth_token: Secret,
    pub cmd: Vec<String>,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub namespace: String,
    pub task: String,
    pub tty: bool,
}

/// Follows the agent's own log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AgentMonitor {
    pub auth_token: Secret,
    pub log_include_location: bool,
    #[serde(rename = "LogJSON")]
    pub log_json: bool,
    pub log_level: String,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub plain_text: bool,
}

/// What the terminal of an exec session says; nothing in it: a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ExecInput {
    pub stdin: Option<ExecData>,
    pub tty_size: Option<TerminalSize>,
}

/// Input, or its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ExecData {
    pub close: bool,
    pub data: Raw,
}

/// The size of the terminal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TerminalSize {
    pub height: i32,
    pub width: i32,
}
