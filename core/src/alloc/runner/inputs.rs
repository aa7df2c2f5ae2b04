//! Inputs of an allocation: reports of drivers and hooks, and requests about all its tasks.

use super::{AllocRunner, Phase, destroying};
use crate::alloc::coordinator::Coordinator;
use crate::alloc::hooks::migrate_disk;
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect};
use crate::hooks::too_late;
use crate::ids::TaskName;
use crate::input::{DriverInput, HookOutput, TemplateInput};
use crate::op::{Failure, Op};
use crate::operations::{Owner, Purpose, Wait};

impl AllocRunner {
    /// A driver says something of a task.
    pub fn on_driver(&mut self, cx: &mut Cx<'_>, task: &TaskName, input: DriverInput) {
        let Some(input) = self.on_check_program(cx, input) else {
            return;
        };
        match self.task_mut(task) {
            Some(task) => task.on_driver(cx, input),
            None => cx.count_stale(),
        }
    }

    /// Something happens to a task's templates.
    pub fn on_template(&mut self, cx: &mut Cx<'_>, task: &TaskName, input: TemplateInput) {
        match self.task_mut(task) {
            Some(task) => task.on_template(cx, input),
            None => cx.count_stale(),
        }
    }

    /// The work of a hook is over.
    pub fn on_hook(
        &mut self,
        cx: &mut Cx<'_>,
        task: Option<&TaskName>,
        op: Op,
        result: Result<HookOutput, Failure>,
    ) {
        if let Some(name) = task {
            match self.task_mut(name) {
                Some(task) => task.on_hook(cx, op, result),
                None => cx.count_stale(),
            }
            return;
        }
        let owner = Owner::Alloc(self.record.id);
        match cx.shared.operations.answered(&owner, op, result.is_ok()) {
            Some(operation) if operation.wait == Wait::Over => {
                cx.count_stale();
                if result.is_ok() {
                    migrate_disk::moved(self, cx);
                }
            }
            Some(_) => self.answered(cx, op, result),
            None => cx.count_stale(),
        }
    }

    /// The answer to `op` did not come in time.
    pub fn on_overdue(&mut self, cx: &mut Cx<'_>, op: Op, purpose: &Purpose) {
        if *purpose == Purpose::Check {
            return self.check_is_overdue(cx, op);
        }
        cx.send(Effect::Hook(HookEffect::Cancel { op }));
        self.answered(cx, op, Err(too_late()));
    }

    /// The work of a hook of its own is over, or given up.
    fn answered(&mut self, cx: &mut Cx<'_>, op: Op, result: Result<HookOutput, Failure>) {
        if self.network_removed(cx, op, &result) {
            return;
        }
        let awaited = match &mut self.phase {
            Phase::Prerun(setup) => {
                let setup = setup.clone();
                self.set_up(cx, setup, op, result)
            }
            Phase::Destroying(pipeline) => destroying::answered(pipeline, op, result),
            Phase::Tasks(_) | Phase::Finished | Phase::DestroyPause(_) | Phase::Destroyed => false,
        };
        if !awaited {
            cx.count_stale();
        }
    }

    /// All tasks run again, in their order, also those that ended. `false` if that cannot be.
    pub fn rerun_all(&mut self, cx: &mut Cx<'_>, reason: &str) -> bool {
        if self.kill.is_some() || !matches!(self.phase, Phase::Tasks(_)) {
            return false;
        }
        self.phase = Phase::Tasks(Coordinator::Again);
        for task in &mut self.tasks {
            let _ = task.restart(cx, reason) || task.rerun(cx);
        }
        true
    }
}
