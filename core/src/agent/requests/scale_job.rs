//! `job scale`: a group gets another count, within the bounds of its `scaling` block; or something is noted of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, NewWork, OperatorRequest, Subject, unknown_job};
use crate::effect::{Refusal, Reply};
use crate::ids::{GroupName, JobKey};
use crate::model::eval::Deployment;
use crate::model::job::JobType;
use crate::model::scaling::ScalingEvent;
use crate::model::value::Value;
use crate::store::record::JobRecord;

/// Scale a group of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScaleJob {
    /// Which job.
    pub job: JobKey,
    /// Which group.
    pub group: GroupName,
    /// How many copies there shall be; none for a mere note.
    pub count: Option<i64>,
    /// Somebody's words. Their size is checked by the API, as that of `meta`.
    pub message: Arc<str>,
    /// Whether it tells of a failure.
    pub error: bool,
    /// Somebody's data.
    pub meta: Value,
    /// The `JobModifyIndex` that the job must still have.
    pub expect_index: Option<u64>,
}

impl OperatorRequest for ScaleJob {
    fn name(&self) -> &'static str {
        "scale"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.clone())
    }

    fn registers(&self) -> bool {
        true
    }

    fn new_work(&self) -> NewWork<'_> {
        match self.count {
            Some(count) => NewWork::Copies(&self.job, &self.group, count),
            None => NewWork::None,
        }
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let local = &asked.agent.local;
        let Some(known) = local.jobs.get(&self.job) else {
            return Some(unknown_job());
        };
        let rollout = known.deployment.and_then(|id| local.deployments.get(&id));
        let previous = match self.check(known, rollout.map(|rollout| &**rollout)) {
            Ok(previous) => previous,
            Err(why) => return Some(Reply::Refused(Refusal::Invalid(why))),
        };
        let event = ScalingEvent {
            time: asked.now.wall,
            count: self.count,
            previous,
            message: self.message.clone(),
            error: self.error,
            meta: self.meta.clone(),
            ..ScalingEvent::default()
        };
        let (now, group) = (asked.now, &self.group);
        Some(asked.agent.scale(now, &self.job, group, event))
    }
}

impl ScaleJob {
    /// How many copies the group was to have until now.
    ///
    /// # Errors
    /// Why it cannot be scaled so.
    pub fn check(&self, known: &JobRecord, rollout: Option<&Deployment>) -> Result<i64, String> {
        let (job, name) = (&known.job, &self.group);
        let Some(group) = job.group(name.as_str()) else {
            return Err(format!(
                "task group \"{name}\" specified for scaling does not exist in job"
            ));
        };
        let index = job.job_modify_index;
        if let Some(expected) = self.expect_index.filter(|expected| *expected != index) {
            return Err(format!(
                "job modify index {expected} was expected, and it is {index}"
            ));
        }
        let previous = group.wanted();
        let Some(count) = self.count else {
            return Ok(previous);
        };
        if self.error {
            return Err("scaling action should not contain count if error is true".to_owned());
        }
        if count < 0 {
            return Err("scaling action count can't be negative".to_owned());
        }
        if job.job_type == JobType::System || job.job_type == JobType::Sysbatch {
            let kind = job.job_type.as_str();
            return Err(format!("cannot scale jobs of type \"{kind}\""));
        }
        if job.stop {
            return Err("job is stopped: start it, then scale it".to_owned());
        }
        if let Some(policy) = &group.scaling {
            policy.admits(count)?;
        }
        if rollout.is_some_and(Deployment::is_active) {
            return Err("job scaling blocked due to active deployment".to_owned());
        }
        Ok(previous)
    }
}
