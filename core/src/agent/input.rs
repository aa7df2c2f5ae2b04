//! The inputs of the agent: a variant for each component that reports, with a vocabulary of its own.

use serde::{Deserialize, Serialize};

use super::requests::Request;
use crate::ids::{RequestId, TaskKey};
use crate::input::{
    CheckInput, DriverInput, HookInput, NodeInput, ServerInput, ShutdownMode, StoreInput,
    TemplateInput,
};

/// One thing that happened outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Input {
    /// A driver says something of a task.
    Driver(TaskKey, DriverInput),
    /// A hook's work is over.
    Hook(HookInput),
    /// Something happens to a task's templates after they were asked for.
    Template(TaskKey, TemplateInput),
    /// A service answered to a check.
    Check(CheckInput),
    /// The store says something of a commit.
    Store(StoreInput),
    /// An operator asks something.
    #[serde(alias = "Local", alias = "Operator")]
    Request(RequestId, Request),
    /// The node learned something of itself.
    Node(NodeInput),
    /// The servers of the cluster say something.
    Server(ServerInput),
    /// The agent shall end.
    Shutdown(ShutdownMode),
}
