//! A task is asked to end.

use serde::{Deserialize, Serialize};

use super::DriverRequest;
use crate::ids::LaunchId;
use crate::input::DriverInput;
use crate::op::{Failure, Op};
use crate::time::Span;

/// Ask the task to end, with this signal. Answered by `Stopped`; the core counts the grace and destroys
/// afterwards, a driver with a protocol of its own may end it itself by then.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stop {
    /// The operation.
    pub op: Op,
    /// What to end.
    pub launch: LaunchId,
    /// The signal's name; the driver's default if empty.
    pub signal: String,
    /// The grace.
    pub grace: Span,
}

impl DriverRequest for Stop {
    fn name(&self) -> &'static str {
        "stop"
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
        DriverInput::Stopped { op, launch, result }
    }

    fn without_driver(&self, _: Failure) -> DriverInput {
        let (op, launch, result) = (self.op, self.launch, Ok(()));
        DriverInput::Stopped { op, launch, result }
    }
}
