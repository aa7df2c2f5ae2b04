//! `system gc`: removes all that ended and is not needed.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject};
use crate::effect::Reply;

/// Remove every allocation that ended, and dead jobs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CollectGarbage;

impl OperatorRequest for CollectGarbage {
    fn name(&self) -> &'static str {
        "collect"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Everything
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        asked.agent.collect_all();
        Some(asked.done())
    }
}
