//! Inputs: what the outside reports to the core. Two levels: a variant for each component that
//! reports, and a small vocabulary of its own inside.
//!
//! Inputs of one source arrive in order; across sources no order is leased. Each answer names the
//! operation that it belongs to, and the launch where there is one.

mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cron::zone::ZoneOffsets;
use crate::device::reported::{ReportedAttribute, ReportedGroup};
use crate::fingerprint::Fingerprint;
use crate::ids::{AllocId, LaunchId, TaskName, VolumeId};
use crate::model::alloc::{DriverNetwork, ExitResult};
use crate::model::device::{DeviceNode, Mount};
use crate::model::network::PluginNetwork;
use crate::model::remote::{Remote, RemotePrevious};
use crate::op::{Failure, Op};
use crate::store::CommitId;
pub use server::ServerInput;

/// What a driver says of a task. Each launch ends with at most one `Exited`; the core does not
/// rely on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DriverInput {
    /// The task runs.
    Started {
        /// The operation.
        op: Op,
        /// What was started.
        launch: LaunchId,
        /// What only the driver knows after the start.
        network: Option<DriverNetwork>,
    },
    /// The task could not be started. It may nevertheless have run.
    StartFailed {
        /// The operation.
        op: Op,
        /// What was to be started.
        launch: LaunchId,
        /// Why not.
        failure: Failure,
    },
    /// What was to start the task was killed before it could say how that went, which is no failure of
    /// the task's program. That one may nevertheless have run.
    StartLost {
        /// The operation.
        op: Op,
        /// What was to be started.
        launch: LaunchId,
        /// What happened, for a person to read.
        why: String,
    },
    /// What a launch of an earlier life of the agent has become.
    Recovered {
        /// The operation.
        op: Op,
        /// What was looked for.
        launch: LaunchId,
        /// What was found.
        found: Found,
        /// What only the driver knows of its network, if it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<DriverNetwork>,
    },
    /// The process of a launch ended.
    Exited {
        /// What ended.
        launch: LaunchId,
        /// How.
        result: ExitResult,
    },
    /// The polite signal was sent, or could not be.
    Stopped {
        /// The operation.
        op: Op,
        /// What was asked to end.
        launch: LaunchId,
        /// Whether the signal was sent; not running any more is success.
        result: Result<(), Failure>,
    },
    /// A signal was sent, or could not be.
    Signaled {
        /// The operation.
        op: Op,
        /// What it was sent to.
        launch: LaunchId,
        /// Whether it was sent.
        result: Result<(), Failure>,
    },
    /// A program that was run beside the task ended, or could not be run to its end.
    Executed {
        /// The operation.
        op: Op,
        /// Beside what it ran.
        launch: LaunchId,
        /// Its exit code; 128 and the signal's number if one killed it.
        result: Result<i32, Failure>,
        /// The beginning of what it printed, where that was asked for.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
    },
    /// The program of a session runs, or could not be started.
    SessionOpened {
        /// The operation.
        op: Op,
        /// Beside what.
        launch: LaunchId,
        /// Whether it runs.
        result: Result<(), Failure>,
    },
    /// Nothing of an open session is left.
    SessionEnded {
        /// The operation that opened it.
        op: Op,
        /// Beside what it ran.
        launch: LaunchId,
    },
    /// Nothing of the launch is alive any more and its remains are gone.
    Destroyed {
        /// The operation.
        op: Op,
        /// What was destroyed.
        launch: LaunchId,
        /// How it ended, where the driver knows and has not said yet.
        result: Result<Option<ExitResult>, Failure>,
    },
    /// Something happens to a launch that people may want to know; nothing follows from it.
    #[serde(alias = "Said")]
    Event {
        /// What it is about.
        launch: LaunchId,
        /// In words.
        message: String,
        /// More of it, by name.
        details: BTreeMap<String, String>,
    },
}

impl DriverInput {
    /// What became of a program beside a task, or of a look at its health: a code and what was printed.
    pub fn executed(
        op: Op,
        launch: LaunchId,
        ended: Result<(i32, String), Failure>,
    ) -> DriverInput {
        let (result, output) = match ended {
            Ok((code, output)) => (Ok(code), output),
            Err(failure) => (Err(failure), String::new()),
        };
        DriverInput::Executed {
            op,
            launch,
            result,
            output,
        }
    }

    /// The operation that this answers and whether that succeeded, if it answers one.
    pub fn answers(&self) -> Option<(Op, bool)> {
        match self {
            DriverInput::Started { op, .. } | DriverInput::Recovered { op, .. } => {
                Some((*op, true))
            }
            DriverInput::StartFailed { op, .. } | DriverInput::StartLost { op, .. } => {
                Some((*op, false))
            }
            DriverInput::Stopped { op, result, .. } | DriverInput::Signaled { op, result, .. } => {
                Some((*op, result.is_ok()))
            }
            DriverInput::Executed { op, result, .. } => Some((*op, result.is_ok())),
            DriverInput::SessionOpened { op, result, .. } => Some((*op, result.is_ok())),
            DriverInput::Destroyed { op, result, .. } => Some((*op, result.is_ok())),
            DriverInput::Exited { .. }
            | DriverInput::SessionEnded { .. }
            | DriverInput::Event { .. } => None,
        }
    }

    /// What is reported, in a few words.
    pub fn name(&self) -> &'static str {
        match self {
            DriverInput::Started { .. } => "started",
            DriverInput::StartFailed { failure, .. } if failure.recoverable => {
                "start failed for now"
            }
            DriverInput::StartFailed { .. } => "start failed",
            DriverInput::StartLost { .. } => "start lost",
            DriverInput::Recovered { found, .. } => match found {
                Found::Running => "found running",
                Found::Exited(_) => "found ended",
                Found::NeverStarted => "found never started",
                Found::Rebooted => "found ended by a reboot",
                Found::Gone(_) => "found gone",
            },
            DriverInput::Exited { result, .. } if result.is_success() => "exited well",
            DriverInput::Exited { .. } => "exited",
            DriverInput::Stopped { result: Ok(()), .. } => "stopped",
            DriverInput::Stopped { .. } => "stop failed",
            DriverInput::Signaled { result: Ok(()), .. } => "signaled",
            DriverInput::Signaled { .. } => "signal failed",
            DriverInput::Executed { result: Ok(0), .. } => "script ran",
            DriverInput::Executed { .. } => "script failed",
            DriverInput::SessionOpened { result: Ok(()), .. } => "session opened",
            DriverInput::SessionOpened { .. } => "session failed",
            DriverInput::SessionEnded { .. } => "session ended",
            DriverInput::Destroyed {
                result: Ok(Some(_)),
                ..
            } => "destroyed, exit known",
            DriverInput::Destroyed {
                result: Ok(None), ..
            } => "destroyed",
            DriverInput::Destroyed { .. } => "destroy failed",
            DriverInput::Event { .. } => "event",
        }
    }

    /// Why what was asked could not be done.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            DriverInput::StartFailed { failure, .. } => Some(failure),
            DriverInput::Stopped { result, .. }
            | DriverInput::Signaled { result, .. }
            | DriverInput::SessionOpened { result, .. } => result.as_ref().err(),
            DriverInput::Executed { result, .. } => result.as_ref().err(),
            DriverInput::Destroyed { result, .. } => result.as_ref().err(),
            DriverInput::Started { .. }
            | DriverInput::StartLost { .. }
            | DriverInput::Recovered { .. }
            | DriverInput::Exited { .. }
            | DriverInput::SessionEnded { .. }
            | DriverInput::Event { .. } => None,
        }
    }

    /// The launch that is spoken of.
    pub fn launch(&self) -> LaunchId {
        match self {
            DriverInput::Started { launch, .. }
            | DriverInput::StartFailed { launch, .. }
            | DriverInput::StartLost { launch, .. }
            | DriverInput::Recovered { launch, .. }
            | DriverInput::Exited { launch, .. }
            | DriverInput::Stopped { launch, .. }
            | DriverInput::Signaled { launch, .. }
            | DriverInput::Executed { launch, .. }
            | DriverInput::SessionOpened { launch, .. }
            | DriverInput::SessionEnded { launch, .. }
            | DriverInput::Destroyed { launch, .. }
            | DriverInput::Event { launch, .. } => *launch,
        }
    }
}

/// What became of a launch while nobody looked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Found {
    /// It runs, and its end will be told.
    Running,
    /// It ended.
    Exited(ExitResult),
    /// It never started, and by having been asked for it never will.
    NeverStarted,
    /// It ran when the machine went down: another boot's. Nothing of it is alive.
    Rebooted,
    /// It may have run; nothing of it can be found, or what is left has no owner. Destroying it
    /// ends what is left.
    Gone(String),
}

/// The end of a hook's work.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HookInput {
    /// The operation.
    pub op: Op,
    /// Whose hook.
    pub alloc: AllocId,
    /// Which task's, or the allocation's own.
    pub task: Option<TaskName>,
    /// What it gives, or why it failed.
    pub result: Result<HookOutput, Failure>,
}

/// What a hook gives to its task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct HookOutput {
    /// Variables for the task's environment.
    pub env: BTreeMap<String, String>,
    /// Directories and files of the host for the task to see.
    pub mounts: Vec<Mount>,
    /// Device nodes of the host for the task to use.
    pub nodes: Vec<DeviceNode>,
    /// What was rendered of each template: texts that are the same as long as the file is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rendered: Vec<Arc<str>>,
    /// What people may want to know of it; nothing if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What another node said of an allocation, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
    /// From which allocation that one was to get the disk that was asked for, where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lies_with: Option<Box<RemotePrevious>>,
    /// Which secrets directory the task has now: another one when what was in it is lost.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub secrets: String,
    /// Whether the task's directory was gone, and was made anew: nothing of what was prepared before is in it.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub rebuilt: bool,
    /// What plugins said of the network that they made, if they made one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Box<PluginNetwork>>,
}

/// What a service answered to a check, or why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CheckInput {
    /// The operation.
    pub op: Op,
    /// Whose service.
    pub alloc: AllocId,
    /// The answer.
    pub result: Result<ProbeAnswer, Failure>,
}

/// What a service answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProbeAnswer {
    /// An answer to a request.
    Http {
        /// Its status.
        code: u16,
        /// The beginning of its body, as text.
        body: String,
    },
    /// It took the connection.
    Connected,
    /// What it says of its health.
    Grpc {
        /// Whether it says that it serves.
        serves: bool,
        /// What it says, in the words of the protocol.
        status: String,
    },
}

/// What is told of templates that are watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TemplateInput {
    /// They cannot be rendered before this is there.
    Missing {
        /// The operation that asked for them.
        op: Op,
        /// What is missing, for people. Empty when nothing is any more.
        missing: Vec<String>,
    },
    /// They are rendered anew.
    Rendered {
        /// The operation that asked for them.
        op: Op,
        /// What they are now.
        output: HookOutput,
    },
    /// They could not be rendered anew. What was rendered before stays.
    Failed {
        /// The operation that asked for them.
        op: Op,
        /// Why not.
        why: String,
    },
}

impl TemplateInput {
    /// The operation that asked for the templates.
    pub fn op(&self) -> Op {
        match self {
            TemplateInput::Missing { op, .. }
            | TemplateInput::Rendered { op, .. }
            | TemplateInput::Failed { op, .. } => *op,
        }
    }
}

/// What the store says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StoreInput {
    /// The commit would survive a crash now.
    Saved(CommitId),
    /// The commit could not be written.
    Failed(CommitId, String),
}

/// What the node learned of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NodeInput {
    /// A probe of the machine answers.
    Probed {
        /// The operation.
        op: Op,
        /// Which.
        probe: String,
        /// What it found, whole; what it no longer names vanishes.
        result: Result<Fingerprint, Failure>,
    },
    /// News of a driver's condition.
    Driver {
        /// The stream that they are of.
        op: Op,
        /// Its name.
        driver: String,
        /// What it says.
        #[serde(alias = "news")]
        report: DriverReport,
    },
    /// How full the disk of the allocations' directories is.
    #[serde(alias = "Room")]
    DiskUsage {
        /// The operation.
        op: Op,
        /// What was measured.
        result: Result<DiskUsage, Failure>,
    },
    /// How much the directories of allocations take.
    DirUsage {
        /// The operation.
        op: Op,
        /// The bytes of each; who is gone is left out.
        result: Result<BTreeMap<AllocId, u64>, Failure>,
    },
    /// The local time of a zone.
    TimeZone {
        /// The operation.
        op: Op,
        /// Which zone.
        zone: String,
        /// Its offsets from UTC.
        result: Result<ZoneOffsets, Failure>,
    },
    /// The work for a volume is done, or cannot be done.
    Volume {
        /// The operation.
        op: Op,
        /// Which.
        volume: VolumeId,
        /// The path of its directory.
        result: Result<String, Failure>,
    },
    /// What the tag of an image means in its registry.
    Image {
        /// The operation.
        op: Op,
        /// The digests.
        result: Result<ImageDigests, Failure>,
    },
    /// News of a plugin's devices.
    Devices {
        /// The stream that they are of.
        op: Op,
        /// Its name.
        plugin: String,
        /// What it says.
        #[serde(alias = "news")]
        report: DeviceReport,
    },
}

impl NodeInput {
    /// The operation that this belongs to.
    pub fn op(&self) -> Op {
        match self {
            NodeInput::Probed { op, .. }
            | NodeInput::Driver { op, .. }
            | NodeInput::DiskUsage { op, .. }
            | NodeInput::DirUsage { op, .. }
            | NodeInput::TimeZone { op, .. }
            | NodeInput::Volume { op, .. }
            | NodeInput::Image { op, .. }
            | NodeInput::Devices { op, .. } => *op,
        }
    }
}

/// What is found out about an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageDigests {
    /// What its tag means in the registry, such as `sha256:4f5a…`.
    pub tag: String,
    /// What the launches run that were asked about, those of them that run and whose image has a digest. One that
    /// has several counts with that of the tag, if that is among them.
    pub used: BTreeSet<String>,
}

/// How full a disk is, in percent, rounded up. What has no count of its own is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskUsage {
    /// Of the bytes that tasks may use.
    pub disk_percent: u8,
    /// Of the inodes.
    pub inode_percent: u8,
}

/// A report of a driver on itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DriverReport {
    /// Its condition, whole.
    Fingerprint(DriverFingerprint),
    /// It could not find out its condition this time.
    Failed(String),
    /// Nothing more will come.
    Ended(String),
}

/// A driver's condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DriverFingerprint {
    /// How it is.
    pub health: DriverHealth,
    /// Why it is what it is.
    pub description: String,
    /// Its attributes, whole; those that it no longer names vanish.
    pub attributes: BTreeMap<String, ReportedAttribute>,
}

/// How a driver is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DriverHealth {
    /// The machine has not what it needs.
    #[default]
    Undetected,
    /// It does not work now.
    Unhealthy,
    /// It works.
    Healthy,
}

/// A report of a plugin on its devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DeviceReport {
    /// Its devices, whole.
    Devices(Vec<ReportedGroup>),
    /// There is nothing for it on this machine, and never will be.
    Disabled(String),
    /// Nothing more will come.
    Ended(String),
}

/// How the agent ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ShutdownMode {
    /// Tasks go on; the next agent finds them again.
    KeepTasks,
    /// Every task is stopped first, in its order.
    StopTasks,
}
