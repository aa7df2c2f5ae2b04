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
}

impl OperatorRequest for Deregister {
    fn name(&self) -> &'static str {
        if self.purge { "purge" } else { "deregister" }
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.clone())
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let eval = asked.agent.deregister(asked.now, &self.job, self.purge);
        let index = asked.agent.shared.index;
        let nothing_to_stop = Reply::Stopping { eval: None, index };
        Some(eval.as_ref().map_or(nothing_to_stop, stopping))
    }
}
