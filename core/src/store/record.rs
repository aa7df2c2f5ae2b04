//! The records of jobs, allocations and tasks.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::copies::Copies;
use super::image::{ImageRecord, JobTask};
use crate::ids::{AllocId, DeploymentId, EvalId, GroupName, JobKey, LaunchId, Run, Slot, TaskName};
use crate::model::alloc::{
    ClientStatus, DeploymentHealth, DesiredStatus, DriverNetwork, ExitResult, TaskState,
};
use crate::model::authority::Authority;
use crate::model::device::{AssignedDevices, Reserved};
use crate::model::job::Job;
use crate::model::network::{INTERFACE, Ipv4, PluginNetwork};
use crate::model::notice::Subject;
use crate::model::remote::{RemotePrevious, Takeover};
use crate::model::scaling::ScalingEvent;
use crate::model::version::VersionTag;
use crate::time::Timestamp;

/// How many versions of a job are kept for people, the latest one included. The last stable one, those with a
/// tag and those in use are kept anyway.
pub const KEPT_VERSIONS: usize = 6;

/// A job, its latest version and the earlier ones that are still of use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobRecord {
    /// The latest version.
    pub job: Arc<Job>,
    /// Earlier versions, oldest first.
    pub versions: Vec<Arc<Job>>,
    /// Whether the job vanishes when its last allocation is gone.
    pub purge: bool,
    /// The roll-out of the latest version, if it has one.
    pub deployment: Option<DeploymentId>,
    /// Copies of the latest version that need nothing more though their allocations were
    /// garbage-collected: without this a finished batch job would run again.
    pub done: Copies,
    /// The names of versions, by version.
    #[serde(
        default,
        with = "crate::pairs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub tags: BTreeMap<u64, Arc<VersionTag>>,
    /// The last of what was asked of the counts of groups, oldest first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scaling_events: BTreeMap<GroupName, Vec<Arc<ScalingEvent>>>,
    /// What is known of the images of tasks that follow their tags.
    #[serde(
        default,
        with = "crate::pairs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub images: BTreeMap<JobTask, ImageRecord>,
    /// Read where earlier versions saved it; [`Disk`](super::disk::Disk) has it now.
    #[serde(default, skip_serializing)]
    pub handed: Vec<Takeover>,
}

impl JobRecord {
    /// The version of this number, if it is still kept.
    pub fn version(&self, version: u64) -> Option<&Arc<Job>> {
        core::iter::once(&self.job)
            .chain(&self.versions)
            .find(|job| job.version == version)
    }

    /// All versions that are kept, the latest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Arc<Job>> {
        core::iter::once(&self.job).chain(self.versions.iter().rev())
    }

    /// The version with this tag, if there is one.
    pub fn tagged(&self, name: &str) -> Option<u64> {
        let mut tags = self.tags.iter();
        tags.find(|(_, tag)| &*tag.name == name)
            .map(|(version, _)| *version)
    }

    /// Whether a submission changes nothing.
    pub fn is_same(&self, new: &Job) -> bool {
        !self.job.stop && same_specification(&self.job, new)
    }
}

/// Whether two versions of a job say the same: what this node itself writes does not count.
pub fn same_specification(known: &Job, new: &Job) -> bool {
    let mut new = new.clone();
    new.stop = known.stop;
    new.version = known.version;
    new.stable = known.stable;
    new.status.clone_from(&known.status);
    new.status_description.clone_from(&known.status_description);
    new.submit_time = known.submit_time;
    new.create_index = known.create_index;
    new.modify_index = known.modify_index;
    new.job_modify_index = known.job_modify_index;
    new == *known
}

/// A port that an allocation holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AssignedPort {
    /// Its name in the group.
    pub label: String,
    /// The number on the host.
    pub value: u16,
    /// The number inside, where it differs; 0 for the same.
    pub to: u16,
    /// The host's address.
    pub host_ip: String,
    /// The name of the network of the host that it is reached through, where that is not the default one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host_network: String,
}

/// The network of an allocation's own: what it holds of the node for it, until the network is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct AllocNetwork {
    /// Its address behind the node's bridge, if it is there.
    pub address: Option<Ipv4>,
    /// What plugins said of it, if they made it. They choose its address, which nobody here gives away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<PluginNetwork>,
    /// Whether it is removed, and nothing of it is left.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub removed: bool,
}

/// Cores that a task has for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AssignedCores {
    /// The task.
    pub task: String,
    /// Their numbers.
    pub ids: Vec<u32>,
}

/// An allocation: what is wanted of it, and what became of it.
///
/// Its texts are shared, not owned: the record is copied whenever something of it changes, and
/// compared whenever it is remembered. (Two empty `String`s are slow to compare: they point
/// nowhere, and a vectorised comparison touches that address.)
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct AllocRecord {
    /// Its id.
    pub id: AllocId,
    /// `job.group[index]`.
    pub name: Arc<str>,
    /// Which copy of the group it is, from 0.
    pub index: u32,
    /// In which of the two places of that copy: a canary is made in the one beside that of the old version.
    #[serde(skip_serializing_if = "crate::ids::is_zero")]
    pub lane: u8,
    /// Whether it is a canary that is not promoted.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub canary: bool,
    /// Its job.
    pub job: JobKey,
    /// Which version of the job it runs.
    pub job_version: u64,
    /// Its group.
    pub group: GroupName,
    /// Whether the servers of a cluster placed it: it is of no job of this node.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub of_servers: bool,
    /// The evaluation that made it.
    pub eval: EvalId,
    /// The roll-out that it counts for.
    pub deployment: Option<DeploymentId>,
    /// The allocation that it replaces: for people to read, and one that servers placed starts after it.
    pub previous: Option<AllocId>,
    /// The allocations that end for it: for people to read, and one that servers placed starts after them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preempts: Vec<AllocId>,
    /// The allocation of higher priority for which it ends, for people to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preempted_by: Option<AllocId>,
    /// Read where earlier versions saved it; [`Disk`](super::disk::Disk) has it now, and the two below.
    #[serde(skip_serializing)]
    pub inherits: Vec<AllocId>,
    /// The same.
    #[serde(skip_serializing)]
    pub remote: Option<RemotePrevious>,
    /// The same.
    #[serde(skip_serializing)]
    pub promised: Option<Timestamp>,
    /// The allocation that replaced it.
    pub next: Option<AllocId>,
    /// Whether it ends because its node is drained.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub drained: bool,
    /// Whether it ends without its shutdown delays.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub skip_shutdown_delay: bool,
    /// What is wanted of it.
    pub desired: DesiredStatus,
    /// Why that is wanted.
    pub desired_description: Arc<str>,
    /// What became of it.
    pub status: ClientStatus,
    /// Why that became of it.
    pub status_description: Arc<str>,
    /// A status that its tasks' states no longer decide.
    pub forced: bool,
    /// Whether its run is over: hooks of the end done, nothing of it alive.
    pub finished: bool,
    /// Whether it is being garbage-collected.
    pub destroying: bool,
    /// When the allocations before it in this place were given up and replaced, oldest first.
    pub reschedules: Vec<Timestamp>,
    /// Whether it is healthy, once that is known.
    pub health: Option<DeploymentHealth>,
    /// The ports that it holds.
    pub ports: Vec<AssignedPort>,
    /// Its network, if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<AllocNetwork>,
    /// The devices that it holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<AssignedDevices>,
    /// The cores that it holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<AssignedCores>,
    /// Of its tasks, the launches that may be alive or whose remains are not garbage-collected yet:
    /// what the tasks' records say too, for when one of those cannot be read.
    pub launches: BTreeMap<TaskName, LaunchId>,
    /// When it was made.
    pub create_time: Timestamp,
    /// When it last changed.
    pub modify_time: Timestamp,
    /// The state's index when it was made.
    pub create_index: u64,
    /// The state's index of its last change.
    pub modify_index: u64,
}

impl AllocRecord {
    /// What a notice about it, or a task of it, is about.
    pub fn subject(&self, task: Option<TaskName>) -> Subject {
        Subject {
            job: Some(self.job.clone()),
            version: Some(self.job_version),
            group: Some(self.group.clone()),
            alloc: Some(self.id),
            alloc_name: Some(self.name.clone()),
            task,
            deployment: self.deployment,
        }
    }

    /// Whether nothing more is to run: somebody wants it to end, or it did.
    pub fn is_terminal(&self) -> bool {
        self.desired.is_terminal() || self.status.is_terminal()
    }

    /// By which the latest allocation of a copy is found: the version that it runs, and when it was made.
    pub fn age(&self) -> (u64, u64) {
        (self.job_version, self.create_index)
    }

    /// Its address behind the node's bridge, if it is there.
    pub fn address(&self) -> Option<Ipv4> {
        self.network.as_ref()?.address
    }

    /// The address at which others reach its own network, whoever gave it, with the name of the interface in there;
    /// none if it has none.
    pub fn own_address(&self) -> Option<(IpAddr, &str)> {
        let network = self.network.as_ref()?;
        match (network.address, &network.found) {
            (Some(address), _) => Some((address.into(), INTERFACE)),
            (None, Some(found)) => Some((found.reached_at()?, found.interface.as_str())),
            (None, None) => None,
        }
    }

    /// Whether it has a network of its own that may still be there.
    pub fn has_network(&self) -> bool {
        let network = self.network.as_ref();
        network.is_some_and(|network| !network.removed)
    }

    /// Who placed it.
    pub fn authority(&self) -> Authority {
        match self.of_servers {
            true => Authority::Servers,
            false => Authority::Node,
        }
    }

    /// Whether it is for this copy.
    pub fn is_for(&self, slot: &Slot) -> bool {
        slot.alloc.is_none() != self.of_servers
            && slot.alloc.is_none_or(|id| id == self.id)
            && self.index == slot.index
            && self.lane == slot.lane
            && self.group == slot.group
            && self.job == slot.job
    }

    /// Which copy of which group it is.
    pub fn slot(&self) -> Slot {
        Slot {
            job: self.job.clone(),
            group: self.group.clone(),
            index: self.index,
            lane: self.lane,
            alloc: self.of_servers.then_some(self.id),
        }
    }
}

/// One start of a task, from the moment it is decided until its remains are garbage-collected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Launch {
    /// Its name in the world.
    pub id: LaunchId,
    /// Its running number.
    pub run: Run,
    /// How it ended, once that is known.
    pub exit: Option<ExitResult>,
    /// If it could not be started: whether another try may help.
    pub start_failed: Option<bool>,
    /// If its program is not the reason that it is over: what is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Loss>,
    /// What the driver told of its network when it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<DriverNetwork>,
}

/// Why a launch is over, where its program is not the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Loss {
    /// The machine restarted while it ran.
    Reboot,
    /// What was to start it was killed before it could say how that went.
    Start,
}

/// How much of a task's restart budget is used. Wall time, because it must outlive the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct RestartBudget {
    /// Starts in this interval.
    pub used: u32,
    /// When this interval began.
    pub since: Option<Timestamp>,
    /// How many starts in a row were lost through no fault of the program.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_starts: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A task: everything of it that must outlive the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskRecord {
    /// The state that is reported.
    pub state: TaskState,
    /// The start that may be alive, or whose remains are not garbage-collected yet.
    pub launch: Option<Launch>,
    /// The number of the last start.
    pub runs: Run,
    /// How much of the restart budget is used.
    pub budget: RestartBudget,
    /// Prestart hooks that need not run again, with what they gave to the environment.
    pub hooks_done: BTreeMap<String, BTreeMap<String, String>>,
    /// What it was given with its devices, besides variables.
    #[serde(skip_serializing_if = "Reserved::is_nothing")]
    pub reserved: Reserved,
    /// What of its templates the last start found, or was told of since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<Arc<str>>,
    /// When its tokens were made that are made anew after a while, by identity.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub identities: BTreeMap<String, Timestamp>,
    /// Into which secrets directory artifacts were fetched.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub secrets: String,
    /// When the pause before the next start ends. Wall time, because it must outlive the agent.
    pub paused_until: Option<Timestamp>,
    /// Whether the end of this launch is a restart that an operator asked for.
    pub restarting: bool,
    /// Whether that restart is asked for by a check that fails, and is paid for as an exit is.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub unhealthy: bool,
    /// Whether it is ended for good because a script of it failed.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub failing: bool,
}
