//! Somebody says whether a version of a job is stable: a failed roll-out brings the last stable one back.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, unknown_job};
use crate::agent::scheduling::no_version;
use crate::effect::Reply;
use crate::ids::JobKey;

/// Say whether a version of a job is stable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SetStable {
    /// Which job.
    pub job: JobKey,
    /// Which version.
    pub version: u64,
    /// Whether it is.
    pub stable: bool,
}

impl OperatorRequest for SetStable {
    fn name(&self) -> &'static str {
        "set stability of"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.clone())
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let (key, version) = (&self.job, self.version);
        let Some(known) = asked.agent.local.jobs.get(key) else {
            return Some(unknown_job());
        };
        if known.version(version).is_none() {
            return Some(Reply::Refused(no_version(key, version)));
        }
        asked.agent.set_stable(asked.now, key, version, self.stable);
        Some(asked.done())
    }
}
