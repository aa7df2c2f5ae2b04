//! Evaluations and deployments, as they are reported.

use serde::{Deserialize, Serialize};

use super::placement::PlacementFailure;
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
    /// An allocation was preempted by one of higher priority.
    Preemption,
    /// Not everything that an earlier evaluation asked for could be placed.
    QueuedAllocs,
    /// A time of a periodic job came.
    PeriodicJob,
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
            Trigger::QueuedAllocs => "queued-allocs",
            Trigger::PeriodicJob => "periodic-job",
        }
    }
}

/// How far an evaluation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvalStatus {
    /// A plan was made: what could be placed was, and the rest is in its failed groups. (Also what an
    /// evaluation is that was saved before there were statuses.)
    #[default]
    Complete,
    /// No plan was made for it yet: too little is known of the node.
    Pending,
    /// It waits for what an earlier one could not place.
    Blocked,
    /// It waits no longer: its job was stopped, or a newer one waits instead.
    Canceled,
}

impl EvalStatus {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            EvalStatus::Pending => "pending",
            EvalStatus::Complete => "complete",
            EvalStatus::Blocked => "blocked",
            EvalStatus::Canceled => "canceled",
        }
    }

    /// Whether a plan still has to be made for it.
    pub fn is_open(self) -> bool {
        match self {
            EvalStatus::Pending | EvalStatus::Blocked => true,
            EvalStatus::Complete | EvalStatus::Canceled => false,
        }
    }
}

/// One consideration of a job: pending until a plan was made with a node that is known.
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
    /// How far it is.
    #[serde(default)]
    pub status: EvalStatus,
    /// Groups that could not be placed as a whole when it was planned, with the reasons.
    pub failed_groups: Vec<(String, PlacementFailure)>,
    /// The blocked evaluation that waits for what this one could not place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_eval: Option<EvalId>,
    /// The evaluation whose failed groups a blocked one waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_eval: Option<EvalId>,
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

impl Deployment {
    /// Whether it may still go on.
    pub fn is_active(&self) -> bool {
        self.status == DeploymentStatus::Running
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
