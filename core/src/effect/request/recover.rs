//! A launch of an earlier agent is found again.

use serde::{Deserialize, Serialize};

use super::DriverRequest;
use crate::ids::LaunchId;
use crate::input::{DriverInput, Found};
use crate::model::task::LogConfig;
use crate::op::{Failure, Op};

/// Find a launch of an earlier life of the agent. Answered by `Recovered`; if it runs, later comes `Exited`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Recover {
    /// The operation.
    pub op: Op,
    /// The id to recover.
    pub launch: LaunchId,
    /// How its output is kept on.
    pub logs: LogConfig,
}

impl DriverRequest for Recover {
    fn name(&self) -> &'static str {
        "recover"
    }

    fn op(&self) -> Op {
        self.op
    }

    fn launch(&self) -> LaunchId {
        self.launch
    }

    fn failed(&self, failure: Failure) -> DriverInput {
        let (op, launch) = (self.op, self.launch);
        let found = Found::Gone(failure.message);
        let network = None;
        DriverInput::Recovered {
            op,
            launch,
            found,
            network,
        }
    }
}
