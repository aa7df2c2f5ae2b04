//! Effects: what the core asks of the outside. Two levels, as the inputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{
    AllocId, DeploymentId, EvalId, JobKey, LaunchId, RequestId, Run, Slot, TaskKey, TaskName,
};
use crate::model::device::Reserved;
use crate::model::event::TaskEvent;
use crate::model::task::LogConfig;
use crate::model::value::Value;
use crate::model::variable::VariableMeta;
use crate::op::Op;
use crate::store::{Batch, CommitId};
use crate::time::Span;
use crate::work::HookWork;

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
    /// For whoever knows the machine.
    Node(NodeEffect),
    /// For the store.
    Store(StoreEffect),
    /// An answer to who asked.
    Reply(RequestId, Reply),
    /// For whoever listens to the story as it happens. Nothing depends on it.
    Tell(Told),
    /// The agent is done and may end.
    Stopped,
}

impl Effect {
    /// The operation that this asks for, if it has a number.
    pub fn op(&self) -> Option<Op> {
        match self {
            Effect::Driver(_, _, effect) => Some(effect.op()),
            Effect::Hook(HookEffect::Run { op, .. } | HookEffect::Cancel { op }) => Some(*op),
            Effect::Node(effect) => Some(effect.op()),
            Effect::Forget(..)
            | Effect::Store(_)
            | Effect::Reply(..)
            | Effect::Tell(_)
            | Effect::Stopped => None,
        }
    }

    /// A commit as an effect.
    pub fn commit(id: CommitId, batch: Arc<Batch>) -> Effect {
        Effect::Store(StoreEffect::Commit(id, batch))
    }
}

/// What a driver is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DriverEffect {
    /// Start the task under this launch id, which was never used for a start before. Answer
    /// `Started` or `StartFailed`, later `Exited`.
    Start {
        /// The operation.
        op: Op,
        /// The id to bear.
        launch: LaunchId,
        /// What to start.
        config: Arc<TaskConfig>,
    },
    /// Find a launch of an earlier life of the agent. Answer `Recovered`; if it runs, later
    /// `Exited`.
    Recover {
        /// The operation.
        op: Op,
        /// The id to look for.
        launch: LaunchId,
        /// How its output is kept on.
        logs: LogConfig,
    },
    /// Ask the task to end, with this signal. Answer `Stopped`; the core counts the grace and
    /// destroys afterwards, a driver with a protocol of its own may end it itself by then.
    Stop {
        /// The operation.
        op: Op,
        /// What to end.
        launch: LaunchId,
        /// The signal's name; the driver's default if empty.
        signal: String,
        /// The grace.
        grace: Span,
    },
    /// Send a signal. Answer `Signaled`.
    Signal {
        /// The operation.
        op: Op,
        /// What to send it to.
        launch: LaunchId,
        /// The signal's name.
        signal: String,
    },
    /// Run a program beside the task, as the task would be started now: as its user, in its directory,
    /// with its variables, and within its limits. It ends with the task at the latest. Nobody reads what it
    /// says. Answer `Executed`.
    Exec {
        /// The operation.
        op: Op,
        /// Beside what.
        launch: LaunchId,
        /// What to run.
        program: Arc<Program>,
    },
    /// End whatever of the launch is alive, by force, and clean up what it left outside the
    /// allocation's directory. Also of a launch that never started. Answer `Destroyed`. Until
    /// [`Effect::Forget`], the launch can still be looked for, and its end be told again.
    Destroy {
        /// The operation.
        op: Op,
        /// What to destroy.
        launch: LaunchId,
    },
}

impl DriverEffect {
    /// The operation that this asks for.
    pub fn op(&self) -> Op {
        match self {
            DriverEffect::Start { op, .. }
            | DriverEffect::Recover { op, .. }
            | DriverEffect::Stop { op, .. }
            | DriverEffect::Signal { op, .. }
            | DriverEffect::Exec { op, .. }
            | DriverEffect::Destroy { op, .. } => *op,
        }
    }

    /// The launch that it is about.
    pub fn launch(&self) -> LaunchId {
        match self {
            DriverEffect::Start { launch, .. }
            | DriverEffect::Recover { launch, .. }
            | DriverEffect::Stop { launch, .. }
            | DriverEffect::Signal { launch, .. }
            | DriverEffect::Exec { launch, .. }
            | DriverEffect::Destroy { launch, .. } => *launch,
        }
    }
}

/// What a driver needs to start a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Bytes of memory that it may use at most; 0 for no limit.
    pub memory_limit: u64,
    /// Bytes of memory that are its own; 0 if that is the limit.
    pub memory_reserved: u64,
    /// How output is kept.
    pub logs: LogConfig,
    /// What the task needs in order to use its devices.
    #[serde(default, skip_serializing_if = "Reserved::is_nothing")]
    pub reserved: Reserved,
    /// The variables that tell it of its devices; they are in [`TaskConfig::env`] too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub device_env: BTreeMap<String, String>,
}

/// A program that is run beside a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Program {
    /// Where it is: found as the task's own program is.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// How long it may run; then it is ended, and has failed.
    pub timeout: Span,
    /// What the task would be started with.
    pub task: TaskConfig,
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
    MeasureRoom {
        /// The operation.
        op: Op,
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
            | NodeEffect::MeasureRoom { op }
            | NodeEffect::WatchDriver { op, .. }
            | NodeEffect::WatchDevices { op, .. } => *op,
        }
    }
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
    /// Another node may take over the job: it awaits these, and fetches their disks, which are kept for it.
    HandedOver(Vec<(Slot, AllocId)>),
    /// The variable is put.
    Variable(VariableMeta),
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
}

/// The story as it happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Told {
    /// Something happened to a task.
    Event(TaskKey, Arc<TaskEvent>),
    /// The state's index rose: whoever looks again may see something new.
    Index(u64),
}
