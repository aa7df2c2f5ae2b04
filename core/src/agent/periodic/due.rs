//! Times that have come: which of them are launched, and how.

use crate::model::job::JobStatus;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agent::Agent;
use crate::agent::requests::MAX_CHILDREN;
use crate::cron::schedule::Schedule;
use crate::cron::zone::ZoneOffsets;
use crate::ids::JobKey;
use crate::model::eval::Trigger;
use crate::model::job::Job;
use crate::model::periodic::launch_id;
use crate::model::policy::Missed;
use crate::store::periodic::{Considered, Outcome, PeriodicRecord, second_of};
use crate::store::record::JobRecord;
use crate::time::Now;

/// A time is launched as if it were on time if the agent reaches it at most so many seconds late.
pub const ON_TIME: i64 = 10;

impl Agent {
    /// Launches what has come.
    pub(in crate::agent) fn launch_due(&mut self, now: Now) {
        if self.shutdown.is_some() {
            return;
        }
        let second = second_of(now.wall);
        let due = self.launches.queue.iter();
        let due = due.take_while(|(at, _)| *at <= second);
        let due: Vec<JobKey> = due.map(|(_, key)| key.clone()).collect();
        for key in due {
            self.launch_due_of(now, &key);
        }
    }

    /// Whether it is not known yet if a launch would overlap an earlier one: what waits for a place or for its next
    /// start is found out when jobs are planned first, and until then it looks as if it were dead.
    pub(in crate::agent) fn is_overlap_unknown(&self, key: &JobKey) -> bool {
        let prohibits = || {
            let job = self.local.jobs.get(key);
            let periodic = job.and_then(|job| job.job.periodic.as_ref());
            periodic.is_some_and(|periodic| periodic.prohibit_overlap)
        };
        self.shared.fingerprint_pending && prohibits()
    }

    /// Launches what has come of one job, and finds out what comes next.
    pub(in crate::agent) fn launch_due_of(&mut self, now: Now, key: &JobKey) {
        if self.is_overlap_unknown(key) {
            return;
        }
        if let Some((schedule, zone)) = self.schedule_of(key)
            && let Some(zone) = self.zone(now, &zone)
        {
            self.consider_times(now, key, &schedule, &zone);
        }
        self.set_next_launch(now, key);
    }

    fn consider_times(&mut self, now: Now, key: &JobKey, schedule: &Schedule, zone: &ZoneOffsets) {
        let Some(record) = self.launches.records.get(key) else {
            return;
        };
        let second = second_of(now.wall);
        let mut record = PeriodicRecord::clone(record);
        let late = second.saturating_sub(ON_TIME).saturating_sub(1);
        let on_time = schedule.between(zone, record.followed.max(late), second);
        let on_time: Vec<i64> = on_time
            .into_iter()
            .filter(|at| !record.is_over(*at))
            .collect();
        if let Some(missed) = latest_open(&record, schedule, zone, late.min(second)) {
            match self.missed(key) {
                // What is launched now is as good as the one that was missed.
                _ if !on_time.is_empty() => {}
                Missed::RunOnce => self.consider(now, key, &mut record, missed, missed),
                Missed::Skip => {
                    let outcome = Outcome::Missed;
                    record.last = Some(Considered {
                        time: missed,
                        outcome,
                    });
                }
            }
            // Something lies between what is over and what comes now.
            record.followed = record.followed.max(missed);
        }
        for time in on_time {
            let since = record.followed;
            self.consider(now, key, &mut record, since, time);
            record.followed = time;
        }
        record.follow(second);
        self.edit_launches(key, |known| {
            let index = known.modify_index;
            *known = record;
            known.modify_index = index;
        });
    }

    /// The times of a job after now and up to `to`, if its zone is known.
    pub(in crate::agent) fn times_after(
        &mut self,
        now: Now,
        key: &JobKey,
        to: i64,
    ) -> Option<BTreeSet<i64>> {
        let (schedule, zone) = self.schedule_of(key)?;
        let zone = self.zone(now, &zone)?;
        let times = schedule.between(&zone, second_of(now.wall), to);
        Some(times.into_iter().collect())
    }

    fn missed(&self, key: &JobKey) -> Missed {
        let job = self.local.jobs.get(key);
        let periodic = job.and_then(|job| job.job.periodic.as_ref());
        periodic.map(|periodic| periodic.missed).unwrap_or_default()
    }

    /// A time is over, and so are all since `since`: it is launched, or it is not for a reason of the job's.
    fn consider(
        &mut self,
        now: Now,
        key: &JobKey,
        record: &mut PeriodicRecord,
        since: i64,
        time: i64,
    ) {
        let outcome = self.launch(now, key, time);
        record.end(since, time);
        record.last = Some(Considered { time, outcome });
    }

    fn launch(&mut self, now: Now, key: &JobKey, time: i64) -> Outcome {
        let Some(parent) = self.local.jobs.get(key).cloned() else {
            return Outcome::Missed;
        };
        let child = child_of(&parent.job, time);
        if self.local.jobs.contains_key(&child.key()) {
            // It was launched by hand in this very second.
            return Outcome::Launched;
        }
        let children = self.children(key);
        let prohibits = (parent.job.periodic.as_ref()).is_some_and(|it| it.prohibit_overlap);
        let is_alive =
            |child: &Arc<JobRecord>| self.view().job_status(&child.job.key()) != JobStatus::Dead;
        if prohibits && children.iter().any(is_alive) {
            return Outcome::Overlapping;
        }
        if children.len() >= MAX_CHILDREN {
            return Outcome::TooMany;
        }
        self.register_by(now, &Arc::new(child), None, Trigger::PeriodicJob);
        Outcome::Launched
    }
}

/// The latest time up to `to` that is not over.
fn latest_open(
    record: &PeriodicRecord,
    schedule: &Schedule,
    zone: &ZoneOffsets,
    mut to: i64,
) -> Option<i64> {
    loop {
        let at = schedule.latest(zone, record.followed, to)?;
        match record.stretch_of(at) {
            Some((first, _)) => to = first.saturating_sub(1),
            None => return Some(at),
        }
    }
}

/// The job that is made of a periodic one for this time.
pub(in crate::agent) fn child_of(parent: &Job, time: i64) -> Job {
    let mut child = parent.clone();
    let id = launch_id(&parent.id, time);
    child.name.clone_from(&id);
    child.id = id;
    child.parent_id.clone_from(&parent.id);
    child.periodic = None;
    child.dispatch_idempotency_token.clear();
    (child.version, child.stable) = (0, false);
    child
}
