//! Evaluations and deployments, as they are reported.

use serde::{Deserialize, Serialize};

use crate::ids::{DeploymentId, EvalId, JobKey};
use crate::time::Timestamp;

/// Why a job was considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// A job was submitted.
    JobRegister,
    /// A job was stopped.
    JobDeregister,
    /// An allocation was stopped by an operator.
    AllocStop,
    /// An allocation failed.
    AllocFailure,
    /// A roll-out went on.
    DeploymentWatcher,
    /// An allocation gave its place to a more important one.
    Preemption,
}

impl Trigger {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::JobRegister => "job-register",
            Trigger::JobDeregister => "job-deregister",
            Trigger::AllocStop => "alloc-stop",
            Trigger::AllocFailure => "alloc-failure",
            Trigger::DeploymentWatcher => "deployment-watcher",
            Trigger::Preemption => "preemption",
        }
    }
}

/// One consideration of a job. On one node it is complete as soon as it is made.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Evaluation {
    /// Its id.
    pub id: EvalId,
    /// Which job.
    pub job: JobKey,
    /// Why.
    pub trigger: Trigger,
    /// When.
    pub time: Timestamp,
    /// The roll-out it belongs to.
    pub deployment: Option<DeploymentId>,
    /// Groups for which no place was found, with the reasons.
    pub failed_groups: Vec<(String, String)>,
    /// The state's index when it was made.
    pub create_index: u64,
    /// The state's index of its last change.
    pub modify_index: u64,
}

/// How far a roll-out is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeploymentStatus {
    /// Under way.
    Running,
    /// Every allocation of the new version is healthy.
    Successful,
    /// An allocation did not become healthy in time.
    Failed,
    /// A newer version or a stop came before the end.
    Cancelled,
}

impl DeploymentStatus {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            DeploymentStatus::Running => "running",
            DeploymentStatus::Successful => "successful",
            DeploymentStatus::Failed => "failed",
            DeploymentStatus::Cancelled => "cancelled",
        }
    }
}

/// The roll-out of one version of a service job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Deployment {
    /// Its id.
    pub id: DeploymentId,
    /// Which job.
    pub job: JobKey,
    /// Which version of it.
    pub job_version: u64,
    /// How far it is.
    pub status: DeploymentStatus,
    /// Why the status is what it is.
    pub description: String,
    /// The state's index when it was made.
    pub create_index: u64,
    /// The state's index of its last change.
    pub modify_index: u64,
}
