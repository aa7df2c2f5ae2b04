//! `job run`: a job is taken in, as a new version if it differs from what is known.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict};
use crate::effect::{Refusal, Reply};
use crate::model::job::Job;
use crate::model::submission::Submission;
use crate::store::record::JobRecord;

/// Run this job. It is complete, canonical and valid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Register {
    /// The job.
    pub job: Arc<Job>,
    /// The `JobModifyIndex` that the job must still have; 0 for a new one.
    pub expect_index: Option<u64>,
    /// What it was made from, as it was handed in. Its size is checked by the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<Arc<Submission>>,
}

impl OperatorRequest for Register {
    fn name(&self) -> &'static str {
        "register"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.key())
    }

    fn registers(&self) -> bool {
        true
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        if let Err(why) = asked.agent.check_home(&self.job) {
            return Some(conflict(&why));
        }
        let known = asked.agent.local.jobs.get(&self.job.key());
        Some(
            match wrong_index(known.map(|known| &**known), self.expect_index) {
                Some(refusal) => Reply::Refused(refusal),
                None => {
                    let submission = self.submission.as_ref();
                    let job = asked.agent.with_known_digests(&self.job);
                    asked.agent.register(asked.now, &job, submission)
                }
            },
        )
    }
}

fn wrong_index(known: Option<&JobRecord>, expect: Option<u64>) -> Option<Refusal> {
    let expect = expect?;
    let actual = known.map(|known| known.job.job_modify_index);
    let why = match actual {
        Some(actual) if actual == expect => return None,
        None if expect == 0 => return None,
        Some(_) if expect == 0 => "job already exists".to_owned(),
        Some(actual) => format!("job exists with conflicting job modify index: {actual}"),
        None => "job does not exist".to_owned(),
    };
    Some(Refusal::Conflict(format!(
        "Enforcing job modify index {expect}: {why}"
    )))
}
