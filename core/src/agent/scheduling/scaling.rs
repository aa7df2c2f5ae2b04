//! How many copies a group shall have, as people or an autoscaler ask, and the last of what they asked.

use std::sync::Arc;

use crate::agent::Agent;
use crate::effect::Reply;
use crate::ids::{GroupName, JobKey};
use crate::model::job::Job;
use crate::model::scaling::{MAX_EVENTS, ScalingEvent};
use crate::time::Now;

impl Agent {
    /// A group gets another count, in a new version of its job; or something is noted of it.
    pub(in crate::agent) fn scale(
        &mut self,
        now: Now,
        key: &JobKey,
        group: &GroupName,
        event: ScalingEvent,
    ) -> Reply {
        let Some(known) = self.local.jobs.get(key).cloned() else {
            return crate::agent::requests::unknown_job();
        };
        let job_index = known.job.job_modify_index;
        let Some(count) = event.count else {
            let index = self.note_scaling(now, key, group, event);
            return Reply::Registered {
                eval: None,
                index,
                job_index,
                deployment: None,
            };
        };
        let mut job = Job::clone(&known.job);
        for one in job.task_groups.iter_mut() {
            if one.name == group.as_str() {
                one.count = Some(count);
            }
        }
        let version = (key.clone(), job.version);
        let submission = self.local.submissions.get(&version).cloned();
        let reply = self.register(now, &Arc::new(job), submission.as_ref());
        if let Reply::Registered { eval, .. } = &reply {
            let eval = *eval;
            self.note_scaling(now, key, group, ScalingEvent { eval, ..event });
        }
        reply
    }

    /// Remembers what was asked. The index of it is that of the job's record, so that it is not lost.
    fn note_scaling(
        &mut self,
        now: Now,
        key: &JobKey,
        group: &GroupName,
        event: ScalingEvent,
    ) -> u64 {
        let index = self.shared.index + 1;
        self.edit_job(now, key, |record| {
            let events = record.scaling_events.entry(group.clone()).or_default();
            if events.len() >= MAX_EVENTS {
                events.remove(0);
            }
            events.push(Arc::new(ScalingEvent { index, ..event }));
        })
    }
}
