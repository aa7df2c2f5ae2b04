//! `dispatch_payload`: what a dispatch brought, as a file of the task.

use super::{Runs, TaskHook};
use crate::config::Config;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::op::Failure;
use crate::paths::task_path::TaskPath;
use crate::task::runner::{Scope, TaskRunner};
use crate::work::WritePayload;

/// The hook.
pub struct DispatchPayload;

impl TaskHook for DispatchPayload {
    fn name(&self) -> &'static str {
        "dispatch_payload"
    }

    fn runs(&self, _config: &Config) -> Runs {
        Runs::Once
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, _scope: Scope<'_>) -> HookStart {
        let (job, of) = (task.spec().job(), task.spec().task());
        let Some(wanted) = &of.dispatch_payload else {
            return HookStart::Done;
        };
        if !job.dispatched || job.payload.is_empty() {
            return HookStart::Done;
        }
        match TaskPath::in_local(&wanted.file, &of.name) {
            Err(why) => HookStart::Failed(Failure::fatal(why)),
            Ok(file) => {
                let payload = job.payload.clone();
                task.hook_work(cx, self, WritePayload { file, payload })
            }
        }
    }
}
