//! `job stop`: nothing of a job runs any more.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, stopping};
use crate::effect::Reply;
use crate::ids::JobKey;

/// Stop this job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Deregister {
    /// Which.
    pub job: JobKey,
    /// Whether it is forgotten as well.
    pub purge: bool,
    /// Whether its allocations do not wait for their shutdown delays.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub no_shutdown_delay: bool,
}

impl OperatorRequest for Deregister {
    fn name(&self) -> &'static str {
        if self.purge { "purge" } else { "deregister" }
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.clone())
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        if self.no_shutdown_delay {
            asked.agent.skip_shutdown_delays(asked.now, &self.job);
        }
        let eval = asked.agent.deregister(asked.now, &self.job, self.purge);
        let index = asked.agent.shared.index;
        let nothing_to_stop = Reply::Stopping { eval: None, index };
        Some(eval.as_ref().map_or(nothing_to_stop, stopping))
    }
}
