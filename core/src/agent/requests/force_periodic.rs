//! `job periodic force`: a periodic job is launched now, whatever its times are and whether launches may overlap.
//!
//! The launch bears the second in which it was asked for. If another launch bears that, it is the first one after it that
//! none bears; but the times of the job are for the clock to launch, which would take such a one for launched. Of a
//! job that has a time in every second it is the latest one before.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, unknown_job};
use crate::agent::Agent;
use crate::agent::periodic::child_of;
use crate::effect::Reply;
use crate::ids::JobKey;
use crate::model::eval::Trigger;
use crate::model::job::Job;
use crate::model::periodic::launch_id;
use crate::store::periodic::second_of;
use crate::time::Now;

use super::MAX_CHILDREN;

/// How many seconds after the one in which a launch was asked for it may bear. Few, since another schedule of the job
/// may have a time in them.
const AHEAD: i64 = 5;

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
        let child = Arc::new(child_of(&parent.job, self.free_second(now, &parent.job)));
        self.register_by(now, &child, None, Trigger::PeriodicJob);
        self.made(&child)
    }

    /// The second that a launch by hand bears.
    fn free_second(&mut self, now: Now, parent: &Job) -> i64 {
        let second = second_of(now.wall);
        let to = second.saturating_add(AHEAD);
        // Where the zone is not known, any second to come may be a time.
        let times = self.times_after(now, &parent.key(), to);
        let after = times.map(|times| (second + 1..=to).filter(move |at| !times.contains(at)));
        let before = (0..second).rev();
        let mut seconds = core::iter::once(second)
            .chain(after.into_iter().flatten())
            .chain(before);
        let mut key = parent.key();
        let free = seconds.find(|at| {
            key.id = launch_id(&parent.id, *at).as_str().into();
            !self.local.jobs.contains_key(&key)
        });
        free.unwrap_or(second)
    }
}
