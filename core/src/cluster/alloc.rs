//! Allocations, as servers place them here, and as they are reported to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AllocId, DeploymentId, EvalId, GroupName, TaskName};
use crate::model::alloc::{ClientStatus, DeploymentHealth, DesiredStatus, TaskState};
use crate::model::device::AssignedDevices;
use crate::model::job::Job;
use crate::model::network::{Ipv4, PluginNetwork};
use crate::model::secret::Secret;
use crate::store::record::{AssignedCores, AssignedPort};
use crate::time::Timestamp;

/// Which allocations a node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AllocIndexes {
    /// The servers' index at which that was so.
    pub index: u64,
    /// Each allocation, with the index of the last change that servers made to it. One that is missing is to be
    /// removed.
    pub allocs: BTreeMap<AllocId, u64>,
    /// What the nodes of those that they replace want to see before they give away their disks, for each that gets one
    /// from another node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub migrate_tokens: BTreeMap<AllocId, Secret>,
}

/// Allocations in full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PulledAllocs {
    /// The servers' index at which they were so.
    pub index: u64,
    /// The allocations; of those that were asked for, some may be missing.
    pub allocs: Vec<Arc<PlacedAlloc>>,
    /// Those that servers sent and that cannot be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<(AllocId, String)>,
}

/// An allocation that servers placed on this node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlacedAlloc {
    /// Its id.
    pub id: AllocId,
    /// The servers' index of the last change that servers made to it.
    pub modify_index: u64,
    /// `job.group[index]`.
    pub name: Arc<str>,
    /// Its job, in the version that it is to run, with its defaults filled in; or why that cannot be read.
    pub job: Result<Arc<Job>, String>,
    /// Its group.
    pub group: GroupName,
    /// The evaluation that placed it.
    pub eval: EvalId,
    /// The roll-out that it counts for.
    pub deployment: Option<DeploymentId>,
    /// Whether it is a canary that is not promoted.
    pub canary: bool,
    /// The allocation that it replaces.
    pub previous: Option<AllocId>,
    /// The allocations that end for it.
    pub preempts: Vec<AllocId>,
    /// What is wanted of it.
    pub desired: DesiredStatus,
    /// Why that is wanted.
    pub desired_description: Arc<str>,
    /// Whether it ends without its shutdown delays.
    pub no_shutdown_delay: bool,
    /// What the servers think that became of it.
    pub client_status: ClientStatus,
    /// Its ports.
    pub ports: Vec<AssignedPort>,
    /// The cores that its tasks have for themselves.
    pub cores: Vec<AssignedCores>,
    /// Its devices; which plugin has them is this node's business.
    pub devices: Vec<AssignedDevices>,
    /// When it was placed.
    pub create_time: Timestamp,
}

impl PlacedAlloc {
    /// Which copy of its group it is, as its name says; 0 if it does not say so.
    pub fn index(&self) -> u32 {
        let inside = self.name.rsplit_once('[').map(|(_, rest)| rest);
        let number = inside.and_then(|rest| rest.strip_suffix(']'));
        number.and_then(|it| it.parse().ok()).unwrap_or(0)
    }
}

/// What became of an allocation, as it is reported: all that servers know of that is replaced by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AllocReport {
    /// Its id.
    pub id: AllocId,
    /// Its status.
    pub status: ClientStatus,
    /// Why that is its status.
    pub description: Arc<str>,
    /// Its tasks.
    pub tasks: BTreeMap<TaskName, TaskState>,
    /// Whether it is healthy, for its roll-out, once that is known.
    pub health: Option<DeploymentHealth>,
    /// The address of its own network, if it has one.
    pub address: Option<Ipv4>,
    /// What plugins said of its network, if they made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<PluginNetwork>,
}
