//! Effects: what the core asks of the outside. Two levels, as the inputs.

mod check;
pub mod request;
mod server;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::driver::config::RegistryAuth;
use crate::ids::{
    AllocId, DeploymentId, EvalId, JobKey, LaunchId, RequestId, Slot, TaskKey, TaskName, VolumeId,
};
use crate::model::event::TaskEvent;
use crate::model::notice::Notice;
use crate::model::variable::VariableMeta;
use crate::model::volume::Directory;
use crate::op::Op;
use crate::store::acl::AclTokenRecord;
use crate::store::{Batch, CommitId};
use crate::work::HookWork;
pub use check::{CheckEffect, Probe, ProbeKind};
pub use request::{DriverEffect, Program, TaskConfig, TaskNetwork};
pub use server::ServerEffect;

/// One thing to do outside. Doing it never blocks the core.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Effect {
    /// For the driver of this name.
    Driver(Arc<str>, TaskKey, DriverEffect),
    /// For the driver of this name: what it keeps of the launch, so that it could be found and
    /// its end be told again, is not needed any more. No answer is awaited.
    Forget(Arc<str>, LaunchId),
    /// For whoever does the work of hooks.
    Hook(HookEffect),
    /// For whoever asks services whether they work.
    Check(CheckEffect),
    /// For whoever knows the machine.
    Node(NodeEffect),
    /// For whoever reaches the servers of the cluster.
    Server(ServerEffect),
    /// For the store.
    Store(StoreEffect),
    /// An answer to who asked.
    Reply(RequestId, Reply),
    /// A notification for whoever listens. Nothing depends on it.
    #[serde(alias = "Tell")]
    Notify(Notification),
    /// The agent is done and may end.
    Stopped,
}

impl Effect {
    /// The operation that this asks for, if it has a number.
    pub fn op(&self) -> Option<Op> {
        match self {
            Effect::Driver(_, _, effect) => Some(effect.op()),
            Effect::Hook(HookEffect::Run { op, .. } | HookEffect::Cancel { op }) => Some(*op),
            Effect::Check(effect) => Some(effect.op()),
            Effect::Node(effect) => Some(effect.op()),
            Effect::Server(effect) => effect.op(),
            Effect::Forget(..)
            | Effect::Store(_)
            | Effect::Reply(..)
            | Effect::Notify(_)
            | Effect::Stopped => None,
        }
    }

    /// A commit as an effect.
    pub fn commit(id: CommitId, batch: Arc<Batch>) -> Effect {
        Effect::Store(StoreEffect::Commit(id, batch))
    }
}

/// What the workers of hooks are asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HookEffect {
    /// Do this. Answer with [`crate::input::HookInput`].
    Run {
        /// The operation.
        op: Op,
        /// Whose hook.
        alloc: AllocId,
        /// Which task's, or the allocation's own.
        task: Option<TaskName>,
        /// What to do. Doing it twice is doing it once.
        work: HookWork,
    },
    /// The answer is no longer wanted: end soon.
    Cancel {
        /// The operation.
        op: Op,
    },
}

/// What is asked about the machine. Answers are [`crate::input::NodeInput`] with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NodeEffect {
    /// Find out what this probe is there for.
    Probe {
        /// The operation.
        op: Op,
        /// Which.
        probe: Arc<str>,
    },
    /// Tell of this driver's condition, now and whenever it changes, until the stream ends. An
    /// earlier stream of it is over.
    WatchDriver {
        /// The operation.
        op: Op,
        /// Which.
        driver: Arc<str>,
    },
    /// Find out how full the disk of the allocations' directories is.
    #[serde(alias = "MeasureRoom")]
    MeasureDiskUsage {
        /// The operation.
        op: Op,
    },
    /// Find out how much the directories of these allocations take.
    MeasureDirs {
        /// The operation.
        op: Op,
        /// Which.
        allocs: Vec<AllocId>,
    },
    /// Look up the local time of a zone.
    LookUpTimeZone {
        /// The operation.
        op: Op,
        /// The name of the zone, such as `Europe/Berlin`.
        zone: Arc<str>,
        /// A second, since 1970, before and after which it is wanted as far as it is known.
        around: i64,
    },
    /// Make, find or remove the directory of a volume. Doing it twice is doing it once.
    Volume {
        /// The operation.
        op: Op,
        /// Which.
        volume: VolumeId,
        /// What to do.
        work: VolumeWork,
    },
    /// Ask the registry of an image what its tag means now.
    LookUpImage {
        /// The operation.
        op: Op,
        /// Which image, and as whom.
        query: Arc<ImageQuery>,
    },
    /// Tell of this plugin's devices, in the same way.
    WatchDevices {
        /// The operation.
        op: Op,
        /// Which.
        plugin: Arc<str>,
    },
}

impl NodeEffect {
    /// The operation that this asks for.
    pub fn op(&self) -> Op {
        match self {
            NodeEffect::Probe { op, .. }
            | NodeEffect::MeasureDiskUsage { op }
            | NodeEffect::MeasureDirs { op, .. }
            | NodeEffect::LookUpTimeZone { op, .. }
            | NodeEffect::Volume { op, .. }
            | NodeEffect::LookUpImage { op, .. }
            | NodeEffect::WatchDriver { op, .. }
            | NodeEffect::WatchDevices { op, .. } => *op,
        }
    }
}

/// What is asked of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageQuery {
    /// Whose engine asks.
    pub driver: Arc<str>,
    /// The image with its tag, as the job names it.
    pub image: String,
    /// Who asks, if the job says that.
    pub auth: Option<RegistryAuth>,
    /// Whether the registry is asked without a password where none can be found.
    pub auth_soft_fail: bool,
    /// Launches whose own digests are wanted, too.
    pub launches: BTreeSet<LaunchId>,
}

/// What is done for a volume.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum VolumeWork {
    /// Make its directory, which bears its id.
    Make(Directory),
    /// Find the directory of one that is registered.
    Find {
        /// Where it is.
        path: String,
    },
    /// Leave the directory of one that was registered as it is.
    Leave {
        /// Where it is.
        path: String,
    },
    /// Remove its directory, with all that is in it.
    Remove,
}

/// What the store is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StoreEffect {
    /// Write all of this or nothing, so that it survives a crash. Answer with
    /// [`crate::input::StoreInput`].
    Commit(CommitId, #[serde(with = "crate::pairs::shared")] Arc<Batch>),
}

/// An answer to who asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reply {
    /// The job is taken in.
    Registered {
        /// The evaluation that followed; none for a job that runs nothing itself.
        eval: Option<EvalId>,
        /// The state's index of the evaluation.
        index: u64,
        /// The job's `JobModifyIndex`.
        job_index: u64,
        /// The roll-out, if there is one.
        deployment: Option<DeploymentId>,
    },
    /// A job was made of a parameterized one, now or by an earlier dispatch with the same token.
    Dispatched {
        /// The job that was made.
        job: JobKey,
        /// Its latest evaluation, if there still is one.
        eval: Option<EvalId>,
        /// The state's index of the evaluation.
        index: u64,
        /// The job's `CreateIndex`.
        job_index: u64,
    },
    /// The job or allocation is stopping.
    Stopping {
        /// The evaluation that followed; none where there was nothing to stop.
        eval: Option<EvalId>,
        /// The state's index.
        index: u64,
    },
    /// A roll-out was changed.
    Deployment {
        /// The evaluation that followed.
        eval: Option<EvalId>,
        /// The state's index.
        index: u64,
        /// The version that came back, if one did.
        reverted: Option<u64>,
    },
    /// Another node may take over the job: it awaits these, and fetches their disks, which are kept for it.
    HandedOver(Vec<(Slot, AllocId)>),
    /// The volume is there, or is being made.
    Volume(VolumeId),
    /// The token is this.
    AclToken(Arc<AclTokenRecord>),
    /// The variable is put.
    Variable(VariableMeta),
    /// What people decided about the node is another thing than before, or what it was.
    NodeChanged {
        /// The evaluations of the jobs that may be placed now.
        evals: Vec<EvalId>,
        /// The state's index of the latest of them; 0 if there is none.
        eval_index: u64,
        /// The state's index of the change; 0 if there was none.
        index: u64,
    },
    /// It is done, or under way.
    Done {
        /// The state's index.
        index: u64,
    },
    /// It is refused.
    Refused(Refusal),
}

/// Why something is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    /// There is no such thing.
    NotFound(String),
    /// It cannot be done now.
    Conflict(String),
    /// It can never be done.
    Invalid(String),
    /// A setting forbids it.
    Forbidden(String),
}

/// The story as it happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Notification {
    /// Something happened to a task.
    Event(TaskKey, Arc<TaskEvent>),
    /// The state's index rose: whoever looks again may see something new.
    Index(u64),
    /// Something that operators are told and no record says; only if the configuration wants notices.
    Notice(Arc<Notice>),
}
