//! Requests of operators about allocations.

use std::collections::BTreeSet;

use super::{Agent, cx};
use crate::alloc::runner::{AllocRunner, Update};
use crate::cx::Cx;
use crate::effect::{Effect, Refusal, Reply};
use crate::ids::{AllocId, JobKey, RequestId, TaskName};
use crate::input::{OperatorInput, RestartScope};
use crate::model::alloc::TaskLife;
use crate::model::eval::Trigger;
use crate::store::disk::AFTER_TRANSFER;
use crate::time::Now;

impl Agent {
    /// Answers, or sees to it that the answer follows. Returns what it touched.
    pub(super) fn on_operator(
        &mut self,
        now: Now,
        request: RequestId,
        input: OperatorInput,
    ) -> BTreeSet<AllocId> {
        let id = match &input {
            OperatorInput::StopAlloc { alloc }
            | OperatorInput::Collect { alloc }
            | OperatorInput::TransferComplete { alloc }
            | OperatorInput::Restart { alloc, .. }
            | OperatorInput::Signal { alloc, .. } => *alloc,
        };
        if !self.allocs.contains_key(&id)
            && let Some(job) = self.collected.get(id).map(|known| known.alloc.job.clone())
        {
            let reply = self.asked_of_collected(now, &job, &input);
            self.shared.ledger.after_save(Effect::Reply(request, reply));
            return BTreeSet::new();
        }
        let reply = match input {
            OperatorInput::StopAlloc { .. } => Some(self.stop_by_operator(now, id)),
            OperatorInput::Collect { .. } => Some(self.collect_one(now, id)),
            OperatorInput::TransferComplete { .. } => Some(self.transfer_complete(now, id)),
            OperatorInput::Restart { tasks, .. } => Some(self.restart(now, id, &tasks)),
            OperatorInput::Signal { task, signal, .. } => {
                self.signal(now, id, task.as_ref(), &signal, request)
            }
        };
        if let Some(reply) = reply {
            self.shared.ledger.after_save(Effect::Reply(request, reply));
        }
        BTreeSet::from([id])
    }

    /// What is asked of an allocation of which only a record is left.
    fn asked_of_collected(&mut self, now: Now, job: &JobKey, input: &OperatorInput) -> Reply {
        match input {
            // As of any that is over: its job is considered again.
            OperatorInput::StopAlloc { .. } => {
                let eval = self.evaluate(now, job, Trigger::AllocStop);
                Reply::Stopping {
                    eval: Some(eval.id),
                    index: eval.create_index,
                }
            }
            OperatorInput::Collect { .. } => Reply::Done {
                index: self.shared.index,
            },
            OperatorInput::TransferComplete { .. }
            | OperatorInput::Restart { .. }
            | OperatorInput::Signal { .. } => {
                conflict("the allocation is over, and its directory was garbage-collected")
            }
        }
    }

    fn stop_by_operator(&mut self, now: Now, id: AllocId) -> Reply {
        let Some(alloc) = self.allocs.get_mut(&id) else {
            return unknown(id);
        };
        let key = alloc.job_key().clone();
        // What is over stays what it was: a batch job that completed is not run again for this.
        if alloc.record().finished {
            let eval = self.evaluate(now, &key, Trigger::AllocStop);
            return Reply::Stopping {
                eval: Some(eval.id),
                index: eval.create_index,
            };
        }
        let why = "alloc was stopped by an operator";
        alloc.update(
            &mut cx(&self.config, &mut self.shared, now),
            Update::Stop(why),
        );
        let eval = self.evaluate(now, &key, Trigger::AllocStop);
        Reply::Stopping {
            eval: Some(eval.id),
            index: eval.create_index,
        }
    }

    fn collect_one(&mut self, now: Now, id: AllocId) -> Reply {
        let Some(alloc) = self.allocs.get(&id) else {
            return unknown(id);
        };
        let record = alloc.record().clone();
        if !record.finished {
            return conflict("the allocation is not over: stop it first");
        }
        if self.past(now.wall).is_needed(&record) {
            return conflict(
                "the allocation is still needed: for its replacement, its disk or its roll-out",
            );
        }
        self.remove(now, id);
        Reply::Done {
            index: self.shared.index,
        }
    }

    /// The other node has what it wanted; it is kept a while longer, for that node may die before it makes use of it.
    fn transfer_complete(&mut self, now: Now, id: AllocId) -> Reply {
        let Some(alloc) = self.allocs.get(&id) else {
            return unknown(id);
        };
        let (slot, until) = (alloc.record().slot(), now.wall + AFTER_TRANSFER);
        let mut cx = cx(&self.config, &mut self.shared, now);
        cx.edit_disk(&slot, |disk| disk.transfer_complete(id, until));
        Reply::Done {
            index: self.shared.index,
        }
    }

    fn restart(&mut self, now: Now, id: AllocId, scope: &RestartScope) -> Reply {
        let Some(alloc) = self.allocs.get_mut(&id) else {
            return unknown(id);
        };
        if alloc.record().is_terminal() || alloc.record().finished {
            return conflict("restart of an alloc that should not run");
        }
        let cx = &mut cx(&self.config, &mut self.shared, now);
        let done = match scope {
            RestartScope::Task(name) => match alloc.task_mut(name) {
                None => return missing_task(alloc, name),
                Some(task) => task.restart(cx, "User requested task to restart"),
            },
            RestartScope::Running => {
                restart_running(cx, alloc, "User requested running tasks to restart")
            }
            RestartScope::All => alloc.rerun_all(cx, "User requested all tasks to restart"),
        };
        if done {
            Reply::Done {
                index: self.shared.index,
            }
        } else {
            conflict("Task not running")
        }
    }

    /// The answer, unless it is left to the driver.
    fn signal(
        &mut self,
        now: Now,
        id: AllocId,
        task: Option<&TaskName>,
        signal: &str,
        request: RequestId,
    ) -> Option<Reply> {
        let Some(alloc) = self.allocs.get_mut(&id) else {
            return Some(unknown(id));
        };
        let cx = &mut cx(&self.config, &mut self.shared, now);
        if let Some(name) = task {
            if alloc.task(name).is_none() {
                return Some(conflict("Task not found"));
            }
            if let Some(task) = alloc.task_mut(name) {
                task.signal(cx, signal, request);
            }
            return None;
        }
        let running = running_tasks(alloc);
        let Some((last, others)) = running.split_last() else {
            return Some(conflict("Task not running"));
        };
        // One answer for all: that of the last. The others' have nobody to go to.
        for name in others {
            if let Some(task) = alloc.task_mut(name) {
                task.signal(cx, signal, NOBODY);
            }
        }
        if let Some(task) = alloc.task_mut(last) {
            task.signal(cx, signal, request);
        }
        None
    }
}

/// A request number under which nobody awaits an answer.
const NOBODY: RequestId = RequestId(0);

fn running_tasks(alloc: &AllocRunner) -> Vec<TaskName> {
    let running = |state| state == TaskLife::Running;
    let tasks = alloc
        .tasks()
        .iter()
        .filter(|task| running(task.state().state));
    tasks.map(|task| task.spec().key.task.clone()).collect()
}

fn restart_running(cx: &mut Cx<'_>, alloc: &mut AllocRunner, reason: &str) -> bool {
    let mut any = false;
    for name in running_tasks(alloc) {
        if let Some(task) = alloc.task_mut(&name) {
            any |= task.restart(cx, reason);
        }
    }
    any
}

fn missing_task(alloc: &AllocRunner, name: &TaskName) -> Reply {
    let known: Vec<&str> = alloc
        .tasks()
        .iter()
        .map(|t| t.spec().key.task.as_str())
        .collect();
    let known = known.join(", ");
    conflict(&format!(
        "Could not find task runner for task: {name}; there are: {known}"
    ))
}

fn conflict(why: &str) -> Reply {
    Reply::Refused(Refusal::Conflict(why.to_owned()))
}

fn unknown(id: AllocId) -> Reply {
    Reply::Refused(Refusal::NotFound(format!("Unknown allocation \"{id}\"")))
}
