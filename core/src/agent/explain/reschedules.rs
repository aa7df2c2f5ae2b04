//! How often a failed allocation may still be replaced, by the reschedule policy of its group.

use super::{Waiting, wall};
use crate::agent::View;
use crate::alloc::runner::AllocRunner;
use crate::model::alloc::ClientStatus;
use crate::scheduler::reconcile::copies;
use crate::scheduler::reschedule_limits;
use crate::time::{Now, Span, Timestamp};

/// What of a reschedule policy is used up, and how much it allows.
struct Reschedules {
    used: usize,
    /// None if there is no limit.
    attempts: Option<usize>,
    interval: Span,
}

impl View<'_> {
    /// The time at which a failed allocation is replaced.
    pub(super) fn reschedule_wait(self, now: Now, alloc: &AllocRunner) -> Option<Waiting> {
        let record = alloc.record();
        if record.next.is_some() || record.desired.is_terminal() {
            return None;
        }
        let due = self.agent.local.due.get(&record.job)?;
        let at = due.get(&record.id).filter(|at| **at > now.at)?;
        Some(Waiting {
            what: "the reschedule delay of its group".to_owned(),
            until: Some(wall(now, *at)),
            then: "a replacement is placed".to_owned(),
        })
    }

    /// Whether an allocation of the latest version failed, and its reschedule policy allows no replacement.
    pub(super) fn is_given_up(self, now: Now, alloc: &AllocRunner) -> bool {
        let record = alloc.record();
        let failed = record.status == ClientStatus::Failed && record.finished && !record.canary;
        let is_used_up =
            of(now, alloc).is_some_and(|it| it.attempts.is_some_and(|most| it.used >= most));
        let wanted = self.job(&record.job).is_some_and(|job| {
            let group = job.job.group(record.group.as_str());
            let copies = group.map_or(0, |group| copies(&job.job, group));
            let latest = job.job.version == record.job_version && !job.job.stop;
            latest && record.index < copies
        });
        let last = record.next.is_none() && !record.desired.is_terminal();
        failed && is_used_up && wanted && last
    }
}

/// Why an allocation has its status, and how often it may be replaced if it failed or replaces one that did.
pub(super) fn described(now: Now, alloc: &AllocRunner) -> String {
    let why = alloc.record().status_description.to_string();
    match of(now, alloc).map(|one| words(&one)) {
        None => why,
        Some(words) if why.is_empty() => words,
        Some(words) => format!("{why}; {words}"),
    }
}

/// Nothing of one that neither failed nor replaces one that did, or that servers replace by their own rules.
fn of(now: Now, alloc: &AllocRunner) -> Option<Reschedules> {
    let (record, job) = (alloc.record(), alloc.job());
    let failed = record.status == ClientStatus::Failed;
    let concerned = failed || !record.reschedules.is_empty();
    if record.of_servers || !concerned {
        return None;
    }
    let group = job.group(record.group.as_str())?;
    let (attempts, interval) = reschedule_limits(job, group)?;
    // The policy looks back from the end.
    let seen = if failed { record.modify_time } else { now.wall };
    let counts = |time: &&Timestamp| {
        let apart = (seen - **time).0.saturating_abs();
        attempts.is_none() || apart < interval.0
    };
    Some(Reschedules {
        used: record.reschedules.iter().filter(counts).count(),
        attempts,
        interval,
    })
}

fn words(one: &Reschedules) -> String {
    let (used, interval) = (one.used, one.interval);
    match one.attempts {
        None => format!("reschedules so far: {used}, without a limit"),
        Some(0) => "its reschedule policy allows no replacement".to_owned(),
        Some(attempts) => format!("{used} of {attempts} reschedules in {interval} are used"),
    }
}
