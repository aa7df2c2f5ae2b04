//! `job eval`: what a job wants is compared once more with what runs.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, stopping, unknown_job};
use crate::effect::Reply;
use crate::ids::JobKey;
use crate::model::eval::Trigger;

/// Make an evaluation of this job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Evaluate {
    /// Which.
    pub job: JobKey,
    /// Whether allocations that failed are replaced now, whatever the policies of their groups say.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub force_reschedule: bool,
}

impl OperatorRequest for Evaluate {
    fn name(&self) -> &'static str {
        "evaluate"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.clone())
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        Some(match asked.agent.local.jobs.get(&self.job) {
            None => unknown_job(),
            Some(known) if known.job.is_parameterized() => {
                conflict("a parameterized job runs nothing itself")
            }
            Some(known) if known.job.is_periodic() => {
                conflict("a periodic job runs nothing itself; job periodic force launches it")
            }
            // What is dead in a namespace that is gone does not come back.
            Some(_) if let Err(why) = asked.agent.check_namespace_of(&self.job) => conflict(&why),
            Some(_) => {
                if self.force_reschedule {
                    asked.agent.give_up_failed(asked.now, &self.job);
                }
                let trigger = Trigger::JobRegister;
                stopping(&asked.agent.evaluate(asked.now, &self.job, trigger))
            }
        })
    }
}
