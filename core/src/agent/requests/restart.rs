//! `alloc restart`: tasks are started again.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, cx, unknown};
use crate::alloc::runner::AllocRunner;
use crate::cx::Cx;
use crate::effect::Reply;
use crate::ids::{AllocId, TaskName};
use crate::model::alloc::TaskLife;

/// Start tasks again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Restart {
    /// Whose.
    pub alloc: AllocId,
    /// Which.
    pub tasks: RestartScope,
}

/// Which tasks are started again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RestartScope {
    /// This one.
    Task(TaskName),
    /// Those that run.
    Running,
    /// All, in their order, also those that ended.
    All,
}

impl OperatorRequest for Restart {
    fn name(&self) -> &'static str {
        match self.tasks {
            RestartScope::Task(_) => "restart one",
            RestartScope::Running => "restart what runs",
            RestartScope::All => "restart all",
        }
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Alloc(self.alloc)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let cx = &mut cx(&asked.agent.config, &mut asked.agent.shared, asked.now);
        let Some(alloc) = asked.agent.allocs.get_mut(&self.alloc) else {
            return Some(unknown(self.alloc));
        };
        if alloc.record().is_terminal() || alloc.record().finished {
            return Some(conflict("restart of an alloc that should not run"));
        }
        let is_restarted = match &self.tasks {
            RestartScope::Task(name) => match alloc.task_mut(name) {
                None => return Some(missing_task(alloc, name)),
                Some(task) => task.restart(cx, "User requested task to restart"),
            },
            RestartScope::Running => restart_running(cx, alloc),
            RestartScope::All => alloc.rerun_all(cx, "User requested all tasks to restart"),
        };
        Some(match is_restarted {
            true => asked.done(),
            false => conflict("Task not running"),
        })
    }
}

pub(super) fn running_tasks(alloc: &AllocRunner) -> Vec<TaskName> {
    let tasks = alloc.tasks().iter();
    let running = tasks.filter(|task| task.state().state == TaskLife::Running);
    running.map(|task| task.spec().key.task.clone()).collect()
}

fn restart_running(cx: &mut Cx<'_>, alloc: &mut AllocRunner) -> bool {
    let mut any = false;
    for name in running_tasks(alloc) {
        if let Some(task) = alloc.task_mut(&name) {
            any |= task.restart(cx, "User requested running tasks to restart");
        }
    }
    any
}

fn missing_task(alloc: &AllocRunner, name: &TaskName) -> Reply {
    let known = alloc
        .tasks()
        .iter()
        .map(|task| task.spec().key.task.as_str());
    let known: Vec<&str> = known.collect();
    let known = known.join(", ");
    conflict(&format!(
        "Could not find task runner for task: {name}; there are: {known}"
    ))
}
