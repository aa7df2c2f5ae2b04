//! What plugins want a task to be given along with its devices, before anybody looked at it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a task gets that reserved devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SaidReservation {
    /// Variables of its environment.
    pub envs: BTreeMap<String, String>,
    /// Directories and files of the machine that it sees.
    pub mounts: Vec<SaidMount>,
    /// Device nodes that it may open.
    pub devices: Vec<SaidNode>,
}

/// A file or directory of the machine, shown to a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SaidMount {
    /// Where the task sees it.
    pub task_path: String,
    /// Where it is.
    pub host_path: String,
    /// Whether the task cannot change it.
    pub read_only: bool,
}

/// A device node, shown to a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SaidNode {
    /// Where the task sees it.
    pub task_path: String,
    /// Where it is.
    pub host_path: String,
    /// What the task may do: letters of `rwm`.
    pub permissions: String,
}
