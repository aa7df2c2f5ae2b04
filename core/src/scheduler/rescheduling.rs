//! Whether and when a failed allocation is replaced, by the reschedule policy of its group.

use super::reconcile::{JobContext, Verdict};
use crate::model::group::TaskGroup;
use crate::model::job::{Job, JobType};
use crate::model::policy::ReschedulePolicy;
use crate::store::record::AllocRecord;
use crate::time::{Span, Timestamp};

/// Whether and when a failed allocation is replaced, by the reschedule policy.
pub(super) fn reschedule(
    job: &Job,
    group: &TaskGroup,
    alloc: &AllocRecord,
    seen: JobContext<'_>,
) -> Verdict {
    let now = seen.now;
    let Some(rules) = Rules::of(job, group.reschedule_policy.as_ref()) else {
        return Verdict::Keep;
    };
    // As it was when it ended: what is not replaced then never is, however much later somebody looks.
    let ended = alloc.modify_time;
    // Of a clock that was set far back, times that are still to come say as little as old ones.
    let recent = |time: &&Timestamp| {
        let apart = (ended - **time).0.saturating_abs();
        rules.unlimited || apart < rules.interval.0
    };
    let used = alloc.reschedules.iter().filter(recent).count();
    if !rules.unlimited && used >= rules.attempts {
        return Verdict::Keep;
    }
    let known = seen.due.and_then(|due| due.get(&alloc.id).copied());
    let at = known.unwrap_or_else(|| {
        let delay = rules.delay(alloc.reschedules.len());
        let left = (alloc.modify_time + delay) - now.wall;
        now.at + Span(left.0.clamp(0, delay.0.max(0)))
    });
    if at > now.at {
        return Verdict::Later(at);
    }
    let mut times = alloc.reschedules.clone();
    times.push(now.wall);
    if times.len() > MAX_TIMES {
        times.remove(0);
    }
    Verdict::Reschedule(at, times)
}

/// How long the replacement of a failed allocation waits, after so many earlier ones; not at all for jobs whose
/// allocations are not replaced.
pub fn reschedule_delay(job: &Job, group: &TaskGroup, earlier: usize) -> Span {
    let rules = Rules::of(job, group.reschedule_policy.as_ref());
    rules.map_or(Span::ZERO, |rules| rules.delay(earlier))
}

/// How many failed allocations in one place may be replaced in which time, without limit if none; nothing for jobs
/// whose allocations are not replaced.
pub fn reschedule_limits(job: &Job, group: &TaskGroup) -> Option<(Option<usize>, Span)> {
    let rules = Rules::of(job, group.reschedule_policy.as_ref())?;
    let attempts = (!rules.unlimited).then_some(rules.attempts);
    Some((attempts, rules.interval))
}

/// More times than this are not remembered: no delay function grows that long.
const MAX_TIMES: usize = 64;

/// A reschedule policy with nothing left open.
struct Rules {
    attempts: usize,
    interval: Span,
    base: Span,
    function: String,
    max_delay: Span,
    unlimited: bool,
}

impl Rules {
    /// The job type's rules of Nomad, overridden by what is written; none for jobs of which
    /// every node has one.
    fn of(job: &Job, written: Option<&ReschedulePolicy>) -> Option<Rules> {
        let batch = match job.job_type {
            JobType::System | JobType::Sysbatch => return None,
            JobType::Service => false,
            JobType::Batch => true,
        };
        let default = ReschedulePolicy::default();
        let written = written.or(job.reschedule.as_ref()).unwrap_or(&default);
        let unlimited = written
            .unlimited
            .unwrap_or(!batch && written.attempts.is_none());
        let attempts = written.attempts.unwrap_or(i64::from(batch));
        let function = if batch { "constant" } else { "exponential" };
        Some(Rules {
            attempts: usize::try_from(attempts).unwrap_or(0),
            interval: written.interval.unwrap_or(Span::secs(24 * 3600)),
            base: written
                .delay
                .unwrap_or(Span::secs(if batch { 5 } else { 30 })),
            function: written
                .delay_function
                .clone()
                .unwrap_or_else(|| function.to_owned()),
            max_delay: written.max_delay.unwrap_or(Span::secs(3600)),
            unlimited,
        })
    }

    fn delay(&self, earlier: usize) -> Span {
        let longest = if self.max_delay.is_zero() {
            Span(i64::MAX)
        } else {
            self.max_delay
        };
        let factor = match self.function.as_str() {
            "exponential" => 1_i64
                .checked_shl(u32::try_from(earlier).unwrap_or(63))
                .unwrap_or(0),
            "fibonacci" => fibonacci(earlier),
            _ => return self.base,
        };
        let factor = if factor <= 0 { i64::MAX } else { factor };
        Span(self.base.0.saturating_mul(factor)).min(longest)
    }
}

fn fibonacci(n: usize) -> i64 {
    let (mut a, mut b) = (1_i64, 1_i64);
    for _ in 0..n {
        (a, b) = (b, a.saturating_add(b));
    }
    a
}
