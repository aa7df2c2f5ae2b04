//! What is left of a launch is ended and cleaned up.

use serde::{Deserialize, Serialize};

use super::DriverRequest;
use crate::ids::LaunchId;
use crate::input::DriverInput;
use crate::op::{Failure, Op};

/// End whatever of the launch is alive, by force, and clean up what it left outside the allocation's
/// directory. Also of a launch that never started. Answered by `Destroyed`. Until
/// [`Effect::Forget`](crate::effect::Effect::Forget), the launch can still be looked for, and its end be told
/// again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Destroy {
    /// The operation.
    pub op: Op,
    /// What to destroy.
    pub launch: LaunchId,
}

impl DriverRequest for Destroy {
    fn name(&self) -> &'static str {
        "destroy"
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
        DriverInput::Destroyed { op, launch, result }
    }

    fn without_driver(&self, _: Failure) -> DriverInput {
        let (op, launch, result) = (self.op, self.launch, Ok(None));
        DriverInput::Destroyed { op, launch, result }
    }
}
