//! `operator scheduler set-config`: how jobs are taken in and placed from now on.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject};
use crate::effect::Reply;
use crate::model::scheduler::SchedulerConfig;

/// Take these settings instead of those that are known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SetScheduler {
    /// The settings.
    pub config: SchedulerConfig,
    /// The index of their last change that they must still have; 0 if nobody set them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_index: Option<u64>,
}

impl OperatorRequest for SetScheduler {
    fn name(&self) -> &'static str {
        "set scheduler"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Node
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let now = asked.now;
        let agent = &mut *asked.agent;
        Some(agent.set_scheduler_config(now, self.config, self.expect_index))
    }
}
