//! Evaluations and deployments, as they are reported.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::placement::PlacementFailure;
use crate::ids::{AllocId, DeploymentId, EvalId, GroupName, JobKey};
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
    /// An allocation was stopped because its node is drained.
    NodeDrain,
    /// The node takes new allocations again.
    NodeUpdate,
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
            Trigger::NodeDrain => "node-drain",
            Trigger::NodeUpdate => "node-update",
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
    /// It waits no longer: its job was stopped, a newer one waits instead, or another one replaced what failed.
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

/// What becomes of the copies of a group by a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupChanges {
    /// Of which nothing changes, those included that are not made yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub ignore: u32,
    /// Made where none runs, those included whose placement failed for now.
    #[serde(skip_serializing_if = "is_zero")]
    pub place: u32,
    /// Ended, and not replaced.
    #[serde(skip_serializing_if = "is_zero")]
    pub stop: u32,
    /// Canaries that are made beside what they are to replace.
    #[serde(skip_serializing_if = "is_zero")]
    pub canary: u32,
    /// Updated as they run.
    #[serde(skip_serializing_if = "is_zero")]
    pub in_place: u32,
    /// Ended and replaced, those included whose placement failed for now.
    #[serde(skip_serializing_if = "is_zero")]
    pub destructive: u32,
    /// Allocations that are preempted for the group.
    #[serde(skip_serializing_if = "is_zero")]
    pub preemptions: u32,
    /// Failed, and replaced now, if there is a place.
    #[serde(skip_serializing_if = "is_zero")]
    pub reschedule_now: u32,
    /// Failed, and replaced when their pause is over.
    #[serde(skip_serializing_if = "is_zero")]
    pub reschedule_later: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The replacement of a failed allocation that had to wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FollowUp {
    /// What failed.
    pub alloc: AllocId,
    /// When it is due.
    pub wait_until: Timestamp,
    /// Whether that is still to come. (It is no status of its own: the version before would not read it.)
    pub waits: bool,
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
    /// What the plan did that completed it, by group. Evaluations that were completed by the same plan all say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<(String, GroupChanges)>,
    /// The blocked evaluation that waits for what this one could not place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_eval: Option<EvalId>,
    /// The evaluation whose failed groups a blocked one waits for, or that made what failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_eval: Option<EvalId>,
    /// What it waits for, or did, where it follows on the failure of an allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up: Option<FollowUp>,
    /// The state's index when it was made.
    pub create_index: u64,
    /// The state's index of its last change.
    pub modify_index: u64,
}

impl Evaluation {
    /// Whether it waits for the time at which a failed allocation is replaced.
    pub fn is_waiting(&self) -> bool {
        self.status == EvalStatus::Pending && self.follow_up.as_ref().is_some_and(|it| it.waits)
    }

    /// Whether the next plan of its job decides what becomes of it.
    pub fn awaits_plan(&self) -> bool {
        self.status.is_open() && !self.is_waiting()
    }
}

/// How far a roll-out is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeploymentStatus {
    /// Under way.
    Running,
    /// Under way, and nothing more is started until somebody says so.
    Paused,
    /// Every allocation of the new version is healthy.
    Successful,
    /// An allocation did not become healthy in time.
    Failed,
    /// A newer version or a stop came before the end.
    Cancelled,
}

impl DeploymentStatus {
    /// Whether it may still go on.
    pub fn is_active(self) -> bool {
        match self {
            DeploymentStatus::Running | DeploymentStatus::Paused => true,
            DeploymentStatus::Successful
            | DeploymentStatus::Failed
            | DeploymentStatus::Cancelled => false,
        }
    }

    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            DeploymentStatus::Running => "running",
            DeploymentStatus::Paused => "paused",
            DeploymentStatus::Successful => "successful",
            DeploymentStatus::Failed => "failed",
            DeploymentStatus::Cancelled => "cancelled",
        }
    }
}

/// How the roll-out of one group goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupRollout {
    /// How many copies of the new version run beside the old ones before any of these is replaced.
    pub canaries: u32,
    /// Since when the canaries are promoted: they are copies as all others, and the rest follows.
    pub promoted: Option<Timestamp>,
    /// Which these were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub promoted_canaries: Vec<AllocId>,
}

impl GroupRollout {
    /// Whether nothing of the old version is replaced yet.
    pub fn awaits_promotion(&self) -> bool {
        self.canaries > 0 && self.promoted.is_none()
    }
}

impl Deployment {
    /// Whether it may still go on.
    pub fn is_active(&self) -> bool {
        self.status.is_active()
    }

    /// Whether canaries of a group are to be promoted before anything of the old version is replaced.
    pub fn awaits_promotion(&self, group: &str) -> bool {
        let group = self.groups.get(&GroupName::from(group));
        group.is_some_and(GroupRollout::awaits_promotion)
    }

    /// The groups whose canaries are not promoted.
    pub fn unpromoted(&self) -> impl Iterator<Item = (&GroupName, &GroupRollout)> {
        let groups = self.groups.iter();
        groups.filter(|(_, group)| group.awaits_promotion())
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
    /// The groups that have canaries.
    #[serde(
        default,
        with = "crate::pairs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub groups: BTreeMap<GroupName, GroupRollout>,
    /// When it last went on after a pause, or took what runs in place after it had waited: its time to make progress
    /// begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Timestamp>,
    /// When it last changed.
    #[serde(default)]
    pub modify_time: Timestamp,
    /// The state's index when it was made.
    pub create_index: u64,
    /// The state's index of its last change.
    pub modify_index: u64,
}
