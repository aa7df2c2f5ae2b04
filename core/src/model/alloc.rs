//! An allocation and its tasks, as they are reported.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::{MAX_EVENTS, TaskEvent};
use crate::text::quote;
use crate::time::Timestamp;

/// What the scheduling side wants of an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DesiredStatus {
    /// It shall run.
    #[default]
    Run,
    /// It shall end.
    Stop,
    /// It shall end because something of higher priority needs its place.
    Evict,
}

impl DesiredStatus {
    /// Whether the allocation shall end.
    pub fn is_terminal(self) -> bool {
        self != DesiredStatus::Run
    }

    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            DesiredStatus::Run => "run",
            DesiredStatus::Stop => "stop",
            DesiredStatus::Evict => "evict",
        }
    }
}

/// What became of an allocation on its node.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum ClientStatus {
    /// No task runs yet.
    #[default]
    Pending,
    /// A task runs.
    Running,
    /// Every task ended well.
    Complete,
    /// A task failed.
    Failed,
    /// The node is gone.
    Lost,
    /// The node cannot be reached.
    Unknown,
}

impl ClientStatus {
    /// Whether nothing of the allocation will run again.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            ClientStatus::Complete | ClientStatus::Failed | ClientStatus::Lost
        )
    }

    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            ClientStatus::Pending => "pending",
            ClientStatus::Running => "running",
            ClientStatus::Complete => "complete",
            ClientStatus::Failed => "failed",
            ClientStatus::Lost => "lost",
            ClientStatus::Unknown => "unknown",
        }
    }
}

/// Where a task is in its life.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum TaskLife {
    /// Not started, or between two starts.
    #[default]
    Pending,
    /// Its process runs.
    Running,
    /// It ended and is not started again by itself.
    Dead,
}

impl TaskLife {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskLife::Pending => "pending",
            TaskLife::Running => "running",
            TaskLife::Dead => "dead",
        }
    }
}

/// A task's state as it is reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskState {
    /// Where it is in its life.
    pub state: TaskLife,
    /// Whether it failed; never taken back.
    pub failed: bool,
    /// How often it was started again.
    pub restarts: u64,
    /// When it was last started again.
    pub last_restart: Option<Timestamp>,
    /// When its process last started.
    pub started_at: Option<Timestamp>,
    /// When it was first dead.
    pub finished_at: Option<Timestamp>,
    /// The last [`MAX_EVENTS`] events, oldest first. Shared, because the state is copied whenever
    /// something of it changes.
    pub events: Vec<Arc<TaskEvent>>,
}

impl TaskState {
    /// Dead, and not failed.
    pub fn is_successful(&self) -> bool {
        self.state == TaskLife::Dead && !self.failed
    }

    /// Appends an event, dropping the oldest where there are too many.
    pub fn push(&mut self, event: Arc<TaskEvent>) {
        self.failed |= event.fails_task;
        if self.events.len() >= MAX_EVENTS {
            self.events.remove(0);
        }
        self.events.push(event);
    }
}

/// What a driver knows of a task's network after the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DriverNetwork {
    /// Its address.
    pub ip: String,
    /// Whether services are announced with that address.
    pub auto_advertise: bool,
    /// Port numbers inside by label.
    pub port_map: BTreeMap<String, u16>,
}

impl DriverNetwork {
    /// What can be believed of a report.
    ///
    /// # Errors
    /// The first thing that cannot be so.
    pub fn checked(self) -> Result<DriverNetwork, String> {
        if !self.ip.is_empty() && self.ip.parse::<IpAddr>().is_err() {
            return Err(format!("{} is no address", quote(&self.ip)));
        }
        if self.port_map.len() > MAX_PORTS {
            return Err(format!("it has more than {MAX_PORTS} ports"));
        }
        match self.port_map.iter().find(|(_, port)| **port == 0) {
            Some((label, _)) => Err(format!("the port {} is 0", quote(label))),
            None => Ok(self),
        }
    }

    /// Whether services that do not say otherwise are announced with its address.
    pub fn advertises(&self) -> bool {
        self.auto_advertise && !self.ip.is_empty()
    }
}

/// The most ports that a driver may report of a task.
const MAX_PORTS: usize = 1024;

/// How a task's process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ExitResult {
    /// The exit code; 128 plus the signal where a signal ended it; none where nobody can know.
    pub code: Option<i32>,
    /// The signal that ended it; 0 for none.
    pub signal: i32,
    /// Whether the kernel killed it for its memory.
    pub oom_killed: bool,
    /// What the driver has to say about it.
    pub message: Option<String>,
}

impl ExitResult {
    /// An exit with a code.
    pub fn code(code: i32) -> ExitResult {
        ExitResult {
            code: Some(code),
            ..ExitResult::default()
        }
    }

    /// The process is gone and nobody can know how it ended.
    pub fn unknown(why: impl Into<String>) -> ExitResult {
        ExitResult {
            code: None,
            message: Some(why.into()),
            ..ExitResult::default()
        }
    }

    /// Code 0, no signal, no error. An exit that nobody knows is no success.
    pub fn is_success(&self) -> bool {
        self.code == Some(0) && self.signal == 0 && self.message.is_none()
    }
}

/// Whether an allocation is healthy, once that is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeploymentHealth {
    /// The verdict.
    pub healthy: bool,
    /// When it was reached.
    pub timestamp: Timestamp,
}
