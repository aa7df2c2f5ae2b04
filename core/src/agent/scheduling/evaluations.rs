//! Evaluations: who asked that a job be considered, and what the plan made of it.
//!
//! An evaluation is pending until a plan was made with a node that is known. Then it is complete, and
//! names the groups that could not be placed as a whole. For those a second evaluation of the job is
//! blocked, one at a time, until they are placed; it is canceled when the job is stopped or a newer one
//! waits instead. These are the statuses of Nomad, whose command line waits for "complete", so what
//! was asked for is never "blocked" itself. Those that follow on failures are in `follow_ups.rs`.

use std::sync::Arc;

use crate::agent::{Agent, cx};
use crate::ids::{EvalId, JobKey};
use crate::local::{KEPT_EVALS, KEPT_PURGING_EVALS};
use crate::model::eval::{EvalStatus, Evaluation, GroupChanges, Trigger};
use crate::model::placement::PlacementFailure;
use crate::scheduler::{Changes, Unplaced};
use crate::store::{Key, Record};
use crate::time::Now;

impl Agent {
    /// Notes that a job is to be considered, and why; the plan itself follows once the node is known.
    pub(in crate::agent) fn evaluate(
        &mut self,
        now: Now,
        key: &JobKey,
        trigger: Trigger,
    ) -> Arc<Evaluation> {
        let eval = self.new_eval(now, key, trigger, EvalStatus::Pending);
        let eval = self.save_eval(eval);
        self.forget_old_evals(key);
        self.expect_garbage(now);
        self.local.mark(key);
        eval
    }

    pub(super) fn new_eval(
        &mut self,
        now: Now,
        key: &JobKey,
        trigger: Trigger,
        status: EvalStatus,
    ) -> Evaluation {
        let mut cx = cx(&self.config, &mut self.shared, now);
        let index = cx.next_index();
        Evaluation {
            id: cx.eval_id(),
            job: key.clone(),
            trigger,
            time: now.wall,
            deployment: self.local.jobs.get(key).and_then(|job| job.deployment),
            status,
            failed_groups: Vec::new(),
            changes: Vec::new(),
            blocked_eval: None,
            previous_eval: None,
            follow_up: None,
            create_index: index,
            modify_index: index,
        }
    }

    /// A plan was made for a job: its evaluations say what became of it.
    pub(super) fn note_plan(
        &mut self,
        now: Now,
        key: &JobKey,
        unplaced: Unplaced,
        changes: Changes,
    ) {
        let Unplaced {
            failed, unknown, ..
        } = unplaced;
        if failed.is_empty() {
            self.local.blocked.remove(key);
        } else {
            self.local.blocked.insert(key.clone(), failed.clone());
        }
        if unknown {
            self.local.unknown.insert(key.clone());
            return;
        }
        self.local.unknown.remove(key);
        let changes: Vec<_> = changes.into_iter().collect();
        let open = self.open_evals(key);
        let may_close = !open.is_empty();
        let (pending, blocked): (Vec<_>, Vec<_>) =
            (open.into_iter()).partition(|eval| eval.status == EvalStatus::Pending);
        let blocked_eval = match failed.is_empty() {
            true => {
                self.unblock(key, blocked, &changes);
                None
            }
            false => Some(self.block(now, key, &failed, pending.last(), blocked)),
        };
        for mut eval in pending {
            eval.status = EvalStatus::Complete;
            eval.failed_groups.clone_from(&failed);
            eval.blocked_eval = blocked_eval;
            eval.changes.clone_from(&changes);
            self.change_eval(eval);
        }
        if may_close {
            self.forget_old_evals(key);
        }
    }

    /// The evaluations of a job for which a plan is still to be made, oldest first.
    fn open_evals(&self, key: &JobKey) -> Vec<Evaluation> {
        let open = self.local.open_evals.get(key).into_iter().flatten();
        let open = open.filter_map(|id| self.local.evals.get(id));
        let mut open: Vec<Evaluation> = open.map(|eval| Evaluation::clone(eval)).collect();
        open.sort_unstable_by_key(|eval| eval.create_index);
        open
    }

    /// Nothing of the job has to wait any more.
    fn unblock(
        &mut self,
        key: &JobKey,
        blocked: Vec<Evaluation>,
        changes: &[(String, GroupChanges)],
    ) {
        let stopped = (self.local.jobs.get(key)).is_none_or(|record| record.job.stop);
        for mut eval in blocked {
            if stopped {
                eval.status = EvalStatus::Canceled;
            } else {
                eval.status = EvalStatus::Complete;
                eval.changes = changes.to_vec();
            }
            eval.failed_groups.clear();
            self.change_eval(eval);
        }
    }

    /// These groups have to wait: the job's blocked evaluation says so, a new one if somebody asked.
    fn block(
        &mut self,
        now: Now,
        key: &JobKey,
        failed: &[(String, PlacementFailure)],
        asked: Option<&Evaluation>,
        mut blocked: Vec<Evaluation>,
    ) -> EvalId {
        if asked.is_none()
            && let Some(mut eval) = blocked.pop()
        {
            let id = eval.id;
            if eval.failed_groups != failed {
                eval.failed_groups = failed.to_vec();
                self.change_eval(eval);
            }
            return id;
        }
        for mut eval in blocked {
            eval.status = EvalStatus::Canceled;
            self.change_eval(eval);
        }
        let previous = match asked {
            Some(asked) => Some(asked.id),
            None => self.local.latest_eval(key).map(|eval| eval.id),
        };
        let trigger = Trigger::QueuedAllocs;
        let eval = self.new_eval(now, key, trigger, EvalStatus::Blocked);
        let eval = self.save_eval(Evaluation {
            failed_groups: failed.to_vec(),
            previous_eval: previous,
            ..eval
        });
        eval.id
    }

    /// An evaluation changed. One that was made in this step nobody saw as it was; before an agent told
    /// anything, all are of its earlier life.
    pub(super) fn change_eval(&mut self, mut eval: Evaluation) {
        let is_new = self.notified_index != 0 && eval.create_index > self.notified_index;
        if !is_new {
            self.shared.index += 1;
            eval.modify_index = self.shared.index;
        }
        self.save_eval(eval);
    }

    pub(super) fn save_eval(&mut self, eval: Evaluation) -> Arc<Evaluation> {
        let eval = Arc::new(eval);
        let record = Record::Eval(eval.clone());
        self.shared.ledger.put(Key::Eval(eval.id), record);
        self.local.insert_eval(eval.clone());
        eval
    }

    pub(super) fn forget_old_evals(&mut self, key: &JobKey) {
        let is_closed = |eval: &&Arc<Evaluation>| !eval.status.is_open();
        let closed = self.local.latest_evals(key).filter(is_closed);
        // One that waited for long ended last.
        let closed = closed.map(|eval| (eval.modify_index, eval.create_index, eval.id));
        let mut closed: Vec<_> = closed.collect();
        closed.sort_unstable();
        let too_many = closed.len().saturating_sub(KEPT_EVALS);
        for (_, _, id) in closed.into_iter().take(too_many) {
            self.forget_eval(id);
        }
    }

    /// Forgets the evaluations of a purged job, but for the one that its purge asked for: somebody may wait for it,
    /// as the command line of Nomad does. That one goes with time, or when there are too many of them.
    pub(super) fn forget_evals_of_purged(&mut self, now: Now, key: &JobKey) {
        let purging = self.local.latest_eval(key);
        let purging = purging.filter(|eval| outlives_its_job(eval));
        let purging = purging.map(|eval| (eval.create_index, eval.id));
        self.forget_evals_of(key, purging.map(|(_, id)| id));
        let Some(purging) = purging else {
            return;
        };
        self.local.purging_evals.insert(purging);
        self.expect_garbage(now);
        if self.local.purging_evals.len() > KEPT_PURGING_EVALS
            && let Some((_, oldest)) = self.local.purging_evals.first().copied()
        {
            self.forget_eval(oldest);
        }
    }

    /// Forgets the evaluations of a job, but for that one.
    pub(super) fn forget_evals_of(&mut self, key: &JobKey, except: Option<EvalId>) {
        let of_job = self.local.latest_evals(key).map(|eval| eval.id);
        let waiting = self.local.follow_ups.get(key).into_iter().flatten();
        let all: Vec<EvalId> = of_job.chain(waiting.map(|(_, id)| *id)).collect();
        let all = all.into_iter().filter(|id| Some(*id) != except);
        all.for_each(|id| self.forget_eval(id));
    }

    pub(in crate::agent) fn forget_eval(&mut self, id: EvalId) {
        self.local.remove_eval(id);
        self.shared.ledger.delete(Key::Eval(id));
    }
}

/// Whether an evaluation tells what became of a purge.
fn outlives_its_job(eval: &Evaluation) -> bool {
    eval.trigger == Trigger::JobDeregister && eval.status == EvalStatus::Complete
}
