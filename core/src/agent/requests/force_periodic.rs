//! `job periodic force`: a periodic job is launched now, whatever its times are and whether launches may overlap.
//!
//! The launch bears the second in which it was asked for, or the latest one before it that no launch bears.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, unknown_job};
use crate::agent::Agent;
use crate::agent::periodic::child_of;
use crate::effect::Reply;
use crate::ids::JobKey;
use crate::model::eval::Trigger;
use crate::store::periodic::second_of;
use crate::time::Now;

use super::MAX_CHILDREN;

/// Launch this periodic job now.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ForcePeriodic {
    /// Which.
    pub job: JobKey,
}

impl OperatorRequest for ForcePeriodic {
    fn name(&self) -> &'static str {
        "periodic force"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.clone())
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        Some(asked.agent.force_launch(asked.now, &self.job))
    }
}

impl Agent {
    fn force_launch(&mut self, now: Now, key: &JobKey) -> Reply {
        let Some(parent) = self.local.jobs.get(key).cloned() else {
            return unknown_job();
        };
        if !parent.job.is_periodic() {
            return conflict("can't force launch non-periodic job");
        }
        if parent.job.schedule().is_none() {
            return conflict("the periodic job is stopped, or not enabled");
        }
        // A time that has come is not launched by hand.
        self.launch_due_of(now, key);
        if self.children(key).len() >= MAX_CHILDREN {
            let why = format!("the job has {MAX_CHILDREN} launches: let some end first");
            return conflict(&why);
        }
        let mut second = second_of(now.wall);
        let mut child = child_of(&parent.job, second);
        while self.local.jobs.contains_key(&child.key()) {
            second -= 1;
            child = child_of(&parent.job, second);
        }
        let child = Arc::new(child);
        self.register_by(now, &child, None, Trigger::PeriodicJob);
        self.made(&child)
    }
}
