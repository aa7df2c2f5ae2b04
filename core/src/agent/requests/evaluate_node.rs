//! An evaluation of each job that the node runs, as if the node had changed.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject};
use crate::effect::Reply;

/// Evaluate every job that is not dead and runs something itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EvaluateNode;

impl OperatorRequest for EvaluateNode {
    fn name(&self) -> &'static str {
        "evaluate node"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Node
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        Some(asked.agent.evaluate_node(asked.now))
    }
}
