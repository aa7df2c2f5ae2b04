//! `alloc signal`: tasks get a signal.

use serde::{Deserialize, Serialize};

use super::restart::running_tasks;
use super::{Asked, OperatorRequest, Subject, conflict, cx, unknown};
use crate::effect::Reply;
use crate::ids::{AllocId, RequestId, TaskName};

/// Send a signal. The answer is left to the driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signal {
    /// Whose tasks.
    pub alloc: AllocId,
    /// One task, or all that run.
    pub task: Option<TaskName>,
    /// Its name, such as `SIGHUP`.
    pub signal: String,
}

impl OperatorRequest for Signal {
    fn name(&self) -> &'static str {
        "signal"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Alloc(self.alloc)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let cx = &mut cx(&asked.agent.config, &mut asked.agent.shared, asked.now);
        let Some(alloc) = asked.agent.allocs.get_mut(&self.alloc) else {
            return Some(unknown(self.alloc));
        };
        if let Some(name) = &self.task {
            let Some(task) = alloc.task_mut(name) else {
                return Some(conflict("Task not found"));
            };
            task.signal(cx, &self.signal, asked.request);
            return None;
        }
        let running = running_tasks(alloc);
        let Some(last) = running.len().checked_sub(1) else {
            return Some(conflict("Task not running"));
        };
        // One answer for all: that of the last. The others' have nobody to go to.
        for (at, name) in running.iter().enumerate() {
            let request = if at == last { asked.request } else { NOBODY };
            if let Some(task) = alloc.task_mut(name) {
                task.signal(cx, &self.signal, request);
            }
        }
        None
    }
}

/// A request number under which nobody awaits an answer.
const NOBODY: RequestId = RequestId(0);
