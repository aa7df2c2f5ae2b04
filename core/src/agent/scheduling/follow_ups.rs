//! Evaluations that follow on failures: each waits until the allocation that failed is replaced by its reschedule policy,
//! plans that, and is the one that made the replacement. It is canceled when its job is stopped, or when the allocation
//! is replaced for another reason before.

use std::collections::BTreeMap;

use crate::agent::Agent;
use crate::ids::{AllocId, EvalId, JobKey};
use crate::model::eval::{EvalStatus, Evaluation, FollowUp, Trigger};
use crate::time::{Instant, Now, Span, Timestamp};

/// By how much the wall clock may be off what was said before that is said anew.
const CLOCK_MOVES: Span = Span::secs(1);

impl Agent {
    /// Failed allocations of a job are replaced at these times.
    pub(super) fn note_follow_ups(
        &mut self,
        now: Now,
        key: &JobKey,
        due: &BTreeMap<AllocId, Instant>,
    ) {
        let known = self.local.follow_ups.get(key).cloned().unwrap_or_default();
        let time = |at: &Instant| (*at > now.at).then(|| now.wall + (*at - now.at));
        for (alloc, id) in &known {
            self.note_follow_up(*id, due.get(alloc).map(time));
        }
        if !known.is_empty() {
            self.forget_old_evals(key);
        }
        let new = due.iter().filter(|(alloc, _)| !known.contains_key(alloc));
        for (alloc, at) in new {
            if let Some(wait_until) = time(at) {
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

    /// What an evaluation is for is replaced then, or now if that is none; it is of no use if neither.
    fn note_follow_up(&mut self, id: EvalId, replaced: Option<Option<Timestamp>>) {
        let Some(known) = self.local.evals.get(&id) else {
            return;
        };
        let mut eval = Evaluation::clone(known);
        let Some(follow_up) = &mut eval.follow_up else {
            return;
        };
        match replaced {
            Some(Some(then)) => {
                // It was due, and the clock was set back.
                follow_up.waits = true;
                let moved = (then - follow_up.wait_until).0.saturating_abs();
                if moved > CLOCK_MOVES.0 {
                    follow_up.wait_until = then;
                }
            }
            Some(None) => follow_up.waits = false,
            None => eval.status = EvalStatus::Canceled,
        }
        if eval != **known {
            self.change_eval(eval);
        }
    }
}
