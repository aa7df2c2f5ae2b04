//! The scheduling side: requests about jobs, and carrying out what reconciliation asks for.

mod dispatch;
mod evaluations;
mod jobs;
mod placing;
mod preempting;
mod rollout;

pub use dispatch::MAX_CHILDREN;
pub use preempting::PREEMPTION_MARGIN;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Agent, cx};
use crate::alloc::runner::AllocRunner;
use crate::cx::Cx;
use crate::effect::{Effect, Refusal, Reply};
use crate::ids::{AllocId, JobKey};
use crate::input::{LocalInput, RequestId};
use crate::local::reconcile::{self, Seen};
use crate::model::alloc::DesiredStatus;
use crate::model::eval::Trigger;
use crate::store::record::AllocRecord;
use crate::time::{Instant, Now};

/// An allocation shall end, and its record says why.
pub(super) fn stop_alloc(cx: &mut Cx<'_>, alloc: &mut AllocRunner, why: &str) {
    if alloc.record().desired == DesiredStatus::Run {
        alloc.edit(cx, |record| {
            record.desired = DesiredStatus::Stop;
            record.desired_description = why.into();
        });
    }
    alloc.stop(cx);
}

impl Agent {
    pub(super) fn on_local(&mut self, now: Now, request: RequestId, input: LocalInput) {
        let reply = match input {
            _ if self.shutdown.is_some() => {
                Reply::Refused(Refusal::Conflict("the agent is shutting down".to_owned()))
            }
            LocalInput::Register { job, expect_index } => self.register(now, &job, expect_index),
            LocalInput::TakeOver { job, from } => self.take_over(now, &job, from),
            LocalInput::Dispatch { job, dispatch } => self.dispatch(now, &job, &dispatch),
            LocalInput::Deregister { job, purge } => self.deregister(now, &job, purge),
            LocalInput::Evaluate { job } => self.look_again(now, &job),
            LocalInput::PutVariable { key, items, expect } => {
                self.put_variable(now, key, items, expect)
            }
            LocalInput::DeleteVariable { key, expect } => self.delete_variable(now, key, expect),
            LocalInput::Collect => {
                self.collect_all = true;
                self.collect_due = true;
                Reply::Done {
                    index: self.shared.index,
                }
            }
        };
        self.shared.ledger.after_save(Effect::Reply(request, reply));
    }

    fn look_again(&mut self, now: Now, key: &JobKey) -> Reply {
        match self.local.jobs.get(key) {
            None => Reply::Refused(Refusal::NotFound("job not found".to_owned())),
            Some(known) if known.job.is_parameterized() => {
                let why = "a parameterized job runs nothing itself".to_owned();
                Reply::Refused(Refusal::Conflict(why))
            }
            Some(_) => {
                let eval = self.evaluate(now, key, Trigger::JobRegister);
                Reply::Stopping {
                    eval: Some(eval.id),
                    index: eval.create_index,
                }
            }
        }
    }

    /// Compares what is wanted with what runs, and carries the difference out. Returns the
    /// allocations that changed.
    pub(super) fn reconcile(&mut self, now: Now, key: &JobKey) -> BTreeSet<AllocId> {
        let mut touched = BTreeSet::new();
        let Some(record) = self.local.jobs.get(key).cloned() else {
            return touched;
        };
        self.look_at_deployment(key);
        let ids = self.local.allocs.get(key).cloned().unwrap_or_default();
        let records: Vec<Arc<AllocRecord>> = ids
            .iter()
            .filter_map(|id| self.allocs.get(id))
            .map(|alloc| alloc.record().clone())
            .collect();
        let allocs: Vec<&AllocRecord> = records.iter().map(|record| &**record).collect();
        let seen = Seen {
            now,
            due: self.local.due.get(key),
            rollout_failed: self.rollout_failed(&record),
        };
        let plan = reconcile::reconcile(&record, &allocs, seen);
        for (id, why) in plan.stop {
            if let Some(alloc) = self.allocs.get_mut(&id) {
                stop_alloc(&mut cx(&self.config, &mut self.shared, now), alloc, why);
                touched.insert(id);
            }
        }
        for id in plan.update {
            if let Some(alloc) = self.allocs.get_mut(&id) {
                let cx = &mut cx(&self.config, &mut self.shared, now);
                alloc.update(cx, record.job.clone(), record.deployment);
                touched.insert(id);
            }
        }
        self.note_due(now, key, plan.due);
        touched.extend(self.place_all(now, key, &record, plan.place));
        touched.extend(self.purge(now, key, &record));
        self.forget_siblings(now, &record);
        touched
    }

    /// Remembers when failed allocations of a job are replaced, and to look at the job then.
    fn note_due(&mut self, now: Now, key: &JobKey, due: BTreeMap<AllocId, Instant>) {
        let next = due.values().copied().filter(|at| *at > now.at).min();
        let before = match next {
            Some(at) => self.local.look_again.insert(key.clone(), at),
            None => self.local.look_again.remove(key),
        };
        // What ended was perhaps kept until then.
        self.collect_due |= before.is_some() && next.is_none();
        if due.is_empty() {
            self.local.due.remove(key);
        } else {
            self.local.due.insert(key.clone(), due);
        }
    }

    /// An allocation's status or health changed, or it is gone.
    pub(super) fn alloc_changed(&mut self, now: Now, alloc: &AllocRecord, gone: bool) {
        self.expect_garbage(now);
        let key = &alloc.job;
        if gone && let Some(of_job) = self.local.allocs.get_mut(key) {
            of_job.remove(&alloc.id);
            if of_job.is_empty() {
                self.local.allocs.remove(key);
            }
        }
        self.local.mark(key);
        // A place that was missing may be free now.
        self.local.mark_blocked();
        self.collect_due = true;
    }
}
