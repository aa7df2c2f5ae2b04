//! What drivers' plugins report of their tasks, before it is validated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::float::Float;
use crate::time::Timestamp;

/// Something that happened to a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedTaskEvent {
    /// By the id that it was started with.
    pub task_id: String,
    /// Its allocation.
    pub alloc_id: String,
    /// Its name there.
    pub task_name: String,
    /// When.
    pub time: Option<Timestamp>,
    /// What, for people.
    pub message: String,
    /// More about it.
    pub annotations: BTreeMap<String, String>,
}

/// What a task uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedUsage {
    /// When it was measured.
    pub time: Option<Timestamp>,
    /// All of the task.
    pub total: ReportedProcess,
    /// Each of its processes, by its number.
    pub by_pid: BTreeMap<String, ReportedProcess>,
}

/// What one process uses, or several together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedProcess {
    /// Of the processor.
    pub cpu: Option<ReportedCpu>,
    /// Of memory.
    pub memory: Option<ReportedMemory>,
}

/// What is used of the processor; what was not measured is not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedCpu {
    /// In the kernel.
    pub system: Option<Float>,
    /// In programs.
    pub user: Option<Float>,
    /// MHz.
    pub ticks: Option<Float>,
    /// Of one core.
    pub percent: Option<Float>,
    /// How often it had to wait for its share.
    pub throttled_periods: Option<u64>,
    /// For how long, in ns.
    pub throttled_time: Option<u64>,
}

/// What is used of memory, in bytes; what was not measured is not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedMemory {
    /// Anonymous memory.
    pub rss: Option<u64>,
    /// Of files.
    pub cache: Option<u64>,
    /// Swapped out.
    pub swap: Option<u64>,
    /// All, now.
    pub usage: Option<u64>,
    /// All, at most.
    pub max_usage: Option<u64>,
    /// In the kernel.
    pub kernel: Option<u64>,
    /// In the kernel, at most.
    pub kernel_max: Option<u64>,
}
