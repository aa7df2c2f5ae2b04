//! `job revert`: an earlier version of a job becomes its latest one, as a new version.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, unknown_job};
use crate::effect::Reply;
use crate::ids::JobKey;

/// Go back to a version of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RevertJob {
    /// Which job.
    pub job: JobKey,
    /// To which version.
    pub version: u64,
    /// The version that must be the latest one.
    pub expect_version: Option<u64>,
}

impl OperatorRequest for RevertJob {
    fn name(&self) -> &'static str {
        "revert"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.clone())
    }

    fn registers(&self) -> bool {
        true
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let Some(known) = asked.agent.local.jobs.get(&self.job) else {
            return Some(unknown_job());
        };
        let latest = known.job.version;
        if let Some(expected) = self.expect_version.filter(|expected| *expected != latest) {
            return Some(conflict(&format!(
                "Current job has version {latest}; enforcing version {expected}"
            )));
        }
        // A stopped job is started again by its latest version.
        if self.version == latest && !known.job.stop {
            return Some(conflict("can't revert to current version"));
        }
        if let Some(job) = known.version(self.version)
            && let Err(why) = asked.agent.check_home(job)
        {
            return Some(conflict(&why));
        }
        Some(asked.agent.revert(asked.now, &self.job, self.version))
    }
}
