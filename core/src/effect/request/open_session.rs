//! A program runs beside a task, and somebody is connected to it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{DriverRequest, TaskConfig};
use crate::ids::{LaunchId, SessionId};
use crate::input::DriverInput;
use crate::op::{Failure, Op};

/// Run a program beside the task, as the task would be started now, connected to whoever opened the session.
/// It ends with the task, with the agent, and with whoever is connected to it. Answered by `SessionOpened`;
/// if that succeeded, `SessionEnded` follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpenSession {
    /// The operation.
    pub op: Op,
    /// Beside what.
    pub launch: LaunchId,
    /// Which session.
    pub session: SessionId,
    /// What to run.
    pub program: Arc<SessionProgram>,
}

impl DriverRequest for OpenSession {
    fn name(&self) -> &'static str {
        "open a session in"
    }

    fn op(&self) -> Op {
        self.op
    }

    fn launch(&self) -> LaunchId {
        self.launch
    }

    fn failed(&self, failure: Failure) -> DriverInput {
        let (op, launch) = (self.op, self.launch);
        let result = Err(failure);
        DriverInput::SessionOpened { op, launch, result }
    }
}

/// The program of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionProgram {
    /// Where it is: found as the task's own program is.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Whether it has a terminal.
    pub tty: bool,
    /// What the task would be started with.
    pub task: TaskConfig,
}
