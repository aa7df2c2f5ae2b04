//! `job tag unset`: a version of a job loses its name. It may be dropped from then on, as all versions are.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, unknown_job};
use crate::effect::Reply;
use crate::ids::JobKey;

/// Take the name of a version away.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UntagVersion {
    /// Which job.
    pub job: JobKey,
    /// The name.
    pub name: Arc<str>,
}

impl OperatorRequest for UntagVersion {
    fn name(&self) -> &'static str {
        "untag version of"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.clone())
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let (key, name) = (&self.job, &self.name);
        let Some(known) = asked.agent.local.jobs.get(key) else {
            return Some(unknown_job());
        };
        let Some(version) = known.tagged(name) else {
            let id = &key.id;
            return Some(conflict(&format!(
                "tag \"{name}\" not found on job \"{id}\""
            )));
        };
        asked.agent.set_tag(asked.now, key, version, None);
        Some(asked.done())
    }
}
