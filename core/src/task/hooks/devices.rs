//! `devices`: what the task needs in order to use its devices.

use super::{Runs, TaskHook};
use crate::config::Config;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::task::runner::{Scope, TaskRunner};
use crate::work::Reserve;

/// The hook.
pub struct Devices;

impl TaskHook for Devices {
    fn name(&self) -> &'static str {
        "devices"
    }

    fn runs(&self, _config: &Config) -> Runs {
        Runs::Once
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, scope: Scope<'_>) -> HookStart {
        let name = task.spec().task().name.as_str();
        let of_alloc = scope.alloc.devices.iter();
        let devices: Vec<_> = of_alloc.filter(|one| one.task == name).cloned().collect();
        if devices.is_empty() {
            return HookStart::Done;
        }
        task.hook_work(cx, self, Reserve { devices })
    }
}
