//! A program runs beside a task.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{DriverRequest, TaskConfig};
use crate::ids::LaunchId;
use crate::input::DriverInput;
use crate::op::{Failure, Op};
use crate::time::Span;

/// Run a program beside the task, as the task would be started now: as its user, in its directory, with its
/// variables, and within its limits. It ends with the task at the latest. Answered by `Executed`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Exec {
    /// The operation.
    pub op: Op,
    /// Beside what.
    pub launch: LaunchId,
    /// What to run.
    pub program: Arc<Program>,
    /// Whether the beginning of what it prints is wanted with the answer. Else nobody reads it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub output: bool,
}

impl DriverRequest for Exec {
    fn name(&self) -> &'static str {
        "run script in"
    }

    fn op(&self) -> Op {
        self.op
    }

    fn launch(&self) -> LaunchId {
        self.launch
    }

    fn failed(&self, failure: Failure) -> DriverInput {
        DriverInput::executed(self.op, self.launch, Err(failure))
    }
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
