//! `task_dir`: the task's directory, and its secrets in memory.
//!
//! A directory that is gone, because the state was restored on another machine or somebody removed it, is made anew,
//! and all that is prepared once is prepared again.

use super::{Runs, TaskHook};
use crate::config::Config;
use crate::cx::Cx;
use crate::driver::isolation::{account, has_own_users};
use crate::hooks::HookStart;
use crate::input::HookOutput;
use crate::model::event::{EventType, TaskEvent};
use crate::op::Op;
use crate::task::runner::{Scope, TaskRunner};
use crate::work::BuildTaskDir;

/// The hook.
pub struct TaskDir;

impl TaskHook for TaskDir {
    fn name(&self) -> &'static str {
        "task_dir"
    }

    fn runs(&self, config: &Config) -> Runs {
        match config.sees_to_task_dirs {
            true => Runs::EachTimeKnown,
            false => Runs::Once,
        }
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, _scope: Scope<'_>) -> HookStart {
        let made = task.has_run(self);
        if !made {
            let words = "Building Task Directory";
            let event = TaskEvent::new(EventType::TaskSetup, cx.now.wall, words);
            task.push(cx, event.detail("message", words));
        }
        let of = task.spec().task();
        let work = BuildTaskDir {
            user: account(of).to_owned(),
            secrets_mb: u64::try_from(of.resources.secrets_mb).unwrap_or(0),
            made,
            private: has_own_users(&of.driver),
        };
        task.hook_work(cx, self, work)
    }

    fn done(&self, task: &mut TaskRunner, _cx: &mut Cx<'_>, _op: Op, answer: &HookOutput) {
        task.secrets = answer.secrets.clone();
        if answer.rebuilt {
            // What other hooks prepare once was in it.
            task.edit().hooks_done.clear();
        }
    }
}
