//! What a task's own health check says.

use serde::{Deserialize, Serialize};

use super::DriverRequest;
use crate::ids::LaunchId;
use crate::input::DriverInput;
use crate::op::{Failure, Op};

/// Say what the health check found last that the task brings with it, as the `HEALTHCHECK` of an image. Answered by
/// `Executed` with one of the codes of this type, and what the check printed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Health {
    /// The operation.
    pub op: Op,
    /// Of what.
    pub launch: LaunchId,
}

impl Health {
    /// It is well.
    pub const HEALTHY: i32 = 0;
    /// It is not.
    pub const UNHEALTHY: i32 = 2;
    /// It starts, and nobody can say.
    pub const STARTING: i32 = 3;
}

impl DriverRequest for Health {
    fn name(&self) -> &'static str {
        "look at the health of"
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
