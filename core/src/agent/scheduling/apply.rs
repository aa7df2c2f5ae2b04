//! Carries out what [`crate::scheduler::plan`] decided, in its order, and decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::{Agent, cx};
use crate::alloc::runner::{AllocRunner, Update};
use crate::ids::{AllocId, JobKey};
use crate::model::alloc::DesiredStatus;
use crate::model::eval::{DeploymentStatus, Trigger};
use crate::scheduler::reconcile::UPDATING;
use crate::scheduler::{Action, NewAlloc, Plan};
use crate::time::{Instant, Now};

impl Agent {
    /// Carries out a plan. Returns the allocations that changed.
    pub(super) fn apply(&mut self, now: Now, plan: Plan) -> BTreeSet<AllocId> {
        let mut touched = BTreeSet::new();
        self.shared.rng = plan.rng;
        for action in plan.actions {
            touched.extend(self.act(now, action));
        }
        plan.rest.iter().for_each(|key| self.local.mark(key));
        touched
    }

    fn act(&mut self, now: Now, action: Action) -> Vec<AllocId> {
        match action {
            Action::EndRollout(id, status, why) => {
                self.end_deployment(now, id, status, &why);
                if status == DeploymentStatus::Successful {
                    self.mark_stable(id);
                }
            }
            Action::Promote(id, groups) => return self.promote(now, id, &groups),
            Action::Revert(key, version) => self.roll_back(now, &key, version),
            Action::ProgressBy(key, groups) => self.note_progress(key, groups),
            Action::Stop(id, why) => return self.stop(now, id, why),
            Action::Update(id, job, deployment) => {
                if let Some(alloc) = self.allocs.get_mut(&id) {
                    let cx = &mut cx(&self.config, &mut self.shared, now);
                    alloc.update(cx, Update::Version(job, deployment));
                }
                if let Some(deployment) = deployment {
                    self.goes_on_in_place(now, deployment);
                }
                return vec![id];
            }
            Action::ReplaceAt(job, due) => self.note_due(now, &job, due),
            Action::Place(new) => return self.make(now, *new),
            Action::Considered(job, unplaced, changes) => {
                self.note_plan(now, &job, unplaced, changes);
            }
            Action::Remove(id) => {
                self.remove(now, id);
                return vec![id];
            }
            Action::Forget(job) => self.forget_job(now, &job),
            Action::Planned(job) => self.forget_siblings(now, &job),
        }
        Vec::new()
    }

    fn stop(&mut self, now: Now, id: AllocId, why: &str) -> Vec<AllocId> {
        let Some(alloc) = self.allocs.get_mut(&id) else {
            return Vec::new();
        };
        let cx = &mut cx(&self.config, &mut self.shared, now);
        alloc.update(cx, Update::Stop(why));
        vec![id]
    }

    /// Makes an allocation, and ends those that it preempts or that are of an old version. Returns all.
    fn make(&mut self, now: Now, new: NewAlloc) -> Vec<AllocId> {
        let key = new.record.job.clone();
        let follow_up = (new.record.previous).and_then(|failed| self.local.follow_up(&key, failed));
        let eval = follow_up.or_else(|| self.local.latest_eval(&key).map(|eval| eval.id));
        let mut cx = cx(&self.config, &mut self.shared, now);
        let mut alloc = new.record;
        let (id, index) = (alloc.id, cx.next_index());
        alloc.eval = eval.unwrap_or_default();
        (alloc.create_time, alloc.modify_time) = (now.wall, now.wall);
        (alloc.create_index, alloc.modify_index) = (index, index);
        cx.save_disk(alloc.slot(), new.disk);
        let mut touched = vec![id];
        touched.extend(&alloc.preempts);
        let previous = alloc.previous;
        let runner = AllocRunner::new(&mut cx, alloc, new.job);
        if let Some(replaced) = previous.and_then(|id| self.allocs.get_mut(&id)) {
            replaced.edit(&mut cx, |record| record.next = Some(id));
        }
        self.allocs.insert(id, runner);
        self.local.allocs.entry(key).or_default().insert(id);
        self.evict(now, id, &new.evicts);
        if let Some(outdated) = previous.filter(|_| new.outdates) {
            touched.extend(self.stop(now, outdated, UPDATING));
        }
        touched
    }

    /// Ends those that are preempted by another.
    fn evict(&mut self, now: Now, by: AllocId, evicts: &[AllocId]) {
        let mut jobs: BTreeSet<JobKey> = BTreeSet::new();
        for id in evicts {
            let Some(alloc) = self.allocs.get_mut(id) else {
                continue;
            };
            let cx = &mut cx(&self.config, &mut self.shared, now);
            alloc.edit(cx, |record| {
                record.desired = DesiredStatus::Evict;
                record.desired_description = format!("Preempted by alloc ID {by}").into();
                record.preempted_by = Some(by);
            });
            alloc.stop(cx);
            jobs.insert(alloc.job_key().clone());
        }
        for job in jobs {
            self.evaluate(now, &job, Trigger::Preemption);
        }
    }

    /// Remembers when failed allocations of a job are replaced, and to plan the job again then.
    fn note_due(&mut self, now: Now, key: &JobKey, due: BTreeMap<AllocId, Instant>) {
        self.note_follow_ups(now, key, &due);
        let next = due.values().copied().filter(|at| *at > now.at).min();
        match next {
            Some(at) => self.local.re_evaluate_at.insert(key.clone(), at),
            None => self.local.re_evaluate_at.remove(key),
        };
        if due.is_empty() {
            self.local.due.remove(key);
        } else {
            self.local.due.insert(key.clone(), due);
        }
    }
}
