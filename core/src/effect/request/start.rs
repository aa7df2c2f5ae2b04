//! A task is started.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::DriverRequest;
use crate::driver::cpu_quota::CpuQuota;
use crate::driver::docker::Container;
use crate::driver::isolation::Profile;
use crate::ids::{LaunchId, Run};
use crate::input::DriverInput;
use crate::model::device::Reserved;
use crate::model::network::Ipv4;
use crate::model::task::LogConfig;
use crate::model::value::Value;
use crate::op::{Failure, Op};

/// Start the task under this launch id, which was never used for a start before. Answered by `Started`,
/// `StartFailed` or `StartLost`; later comes `Exited`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Start {
    /// The operation.
    pub op: Op,
    /// The id to bear.
    pub launch: LaunchId,
    /// What to start.
    pub config: Arc<TaskConfig>,
}

impl DriverRequest for Start {
    fn name(&self) -> &'static str {
        "start"
    }

    fn op(&self) -> Op {
        self.op
    }

    fn launch(&self) -> LaunchId {
        self.launch
    }

    fn failed(&self, failure: Failure) -> DriverInput {
        let (op, launch) = (self.op, self.launch);
        DriverInput::StartFailed {
            op,
            launch,
            failure,
        }
    }
}

/// What a driver needs to start a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskConfig {
    /// The running number of this start.
    pub run: Run,
    /// For names that people read.
    pub job: String,
    /// For names that people read.
    pub group: String,
    /// The driver's configuration, interpolated.
    pub config: BTreeMap<String, Value>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// As whom to run; the driver's default if empty.
    pub user: String,
    /// Share of the processor, in MHz.
    pub cpu_shares: u64,
    /// So much of processors and never more; none for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<CpuQuota>,
    /// Bytes of memory that it may use at most; 0 for no limit.
    pub memory_limit: u64,
    /// Bytes of memory that are its own; 0 if that is the limit.
    pub memory_reserved: u64,
    /// The cores that it has for itself.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub cores: BTreeSet<u32>,
    /// How output is kept.
    pub logs: LogConfig,
    /// What the task needs in order to use its devices.
    #[serde(default, skip_serializing_if = "Reserved::is_nothing")]
    pub reserved: Reserved,
    /// The variables that tell it of its devices; they are in [`TaskConfig::env`] too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub device_env: BTreeMap<String, String>,
    /// How the task is isolated, if its driver does that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// What its container may have, if its driver makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// The network that was made for its allocation, if one was: the task starts in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<TaskNetwork>,
}

/// The network that was made for a task's allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskNetwork {
    /// Whether it has a namespace of its own, which the task enters. Otherwise only the files are made that say how
    /// names are resolved.
    pub own: bool,
    /// The name that the task has for itself; the host's if empty.
    pub hostname: String,
    /// Its address, if it has one.
    pub address: Option<Ipv4>,
}
