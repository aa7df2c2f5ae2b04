//! Evaluations that follow on failures: each waits until the allocation that failed is replaced by its reschedule policy,
//! plans that, and is the one that made the replacement. It is canceled when its job is stopped, or when the allocation
//! is replaced for another reason before.

use std::collections::BTreeMap;

use crate::agent::Agent;
use crate::ids::{AllocId, EvalId, JobKey};
use crate::model::eval::{EvalStatus, Evaluation, FollowUp, Trigger};
use crate::time::{Instant, Now, Span, Timestamp};

/// By how much the wall clock may be off what was said before that is said anew.
const CLOCK_TOLERANCE: Span = Span::secs(1);

/// When an allocation is replaced that failed.
enum Replaced {
    /// Then.
    At(Timestamp),
    /// As soon as a plan is made.
    Now,
    /// By nothing: it has been already, or is not wanted any more.
    Never,
}

impl Agent {
    /// Failed allocations of a job are replaced at these times.
    pub(super) fn note_follow_ups(
        &mut self,
        now: Now,
        key: &JobKey,
        due: &BTreeMap<AllocId, Instant>,
    ) {
        let replaced = |at: Option<&Instant>| match at {
            Some(at) if *at > now.at => Replaced::At(now.wall + (*at - now.at)),
            Some(_) => Replaced::Now,
            None => Replaced::Never,
        };
        let known = self.local.follow_ups.get(key).into_iter().flatten();
        let known: Vec<(AllocId, EvalId)> = known.map(|(alloc, id)| (*alloc, *id)).collect();
        for (alloc, id) in &known {
            self.note_follow_up(*id, &replaced(due.get(alloc)));
        }
        if !known.is_empty() {
            self.forget_old_evals(key);
        }
        for (alloc, at) in due {
            if self.local.follow_up(key, *alloc).is_none()
                && let Replaced::At(wait_until) = replaced(Some(at))
            {
                self.wait_until(now, key, *alloc, wait_until);
            }
        }
    }

    /// Makes the evaluation that waits for the replacement of an allocation.
    fn wait_until(&mut self, now: Now, key: &JobKey, alloc: AllocId, wait_until: Timestamp) {
        let failed = self.allocs.get(&alloc).map(|alloc| alloc.record().eval);
        let eval = self.new_eval(now, key, Trigger::AllocFailure, EvalStatus::Pending);
        self.save_eval(Evaluation {
            previous_eval: failed,
            follow_up: Some(FollowUp {
                alloc,
                wait_until,
                waits: true,
            }),
            ..eval
        });
    }

    /// Updates an evaluation by when that for which it waits is replaced.
    fn note_follow_up(&mut self, id: EvalId, replaced: &Replaced) {
        let Some(known) = self.local.evals.get(&id) else {
            return;
        };
        let mut eval = Evaluation::clone(known);
        let Some(follow_up) = &mut eval.follow_up else {
            return;
        };
        match replaced {
            Replaced::At(then) => {
                // It was due, and the clock was set back.
                follow_up.waits = true;
                let moved = (*then - follow_up.wait_until).0.saturating_abs();
                if moved > CLOCK_TOLERANCE.0 {
                    follow_up.wait_until = *then;
                }
            }
            Replaced::Now => follow_up.waits = false,
            Replaced::Never => eval.status = EvalStatus::Canceled,
        }
        if eval != **known {
            self.change_eval(eval);
        }
    }
}
