//! A task gets a signal.

use serde::{Deserialize, Serialize};

use super::DriverRequest;
use crate::ids::LaunchId;
use crate::input::DriverInput;
use crate::op::{Failure, Op};

/// Send a signal. Answered by `Signaled`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signal {
    /// The operation.
    pub op: Op,
    /// What to send it to.
    pub launch: LaunchId,
    /// The signal's name.
    pub signal: String,
}

impl DriverRequest for Signal {
    fn name(&self) -> &'static str {
        "signal"
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
        DriverInput::Signaled { op, launch, result }
    }
}
