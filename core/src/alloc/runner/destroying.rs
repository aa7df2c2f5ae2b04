//! Removing an allocation that ended: what the table [`DESTROY`] says, then its records. It also works for an
//! allocation that never ran. A hook that fails keeps no other from its turn; what failed is told with its reasons, and
//! all of them have their turn again until none fails.

use super::{AllocRunner, Phase};
use crate::alloc::hooks::{AllocHook, DESTROY};
use crate::cx::Cx;
use crate::hooks::{HookStart, Pipeline, Progress};
use crate::input::HookOutput;
use crate::op::{Failure, Op};
use crate::store::Key;
use crate::time::Span;

const DESTROY_PAUSE: Span = Span::secs(30);

impl AllocRunner {
    /// Cleans it away; ends it first if it is alive. Its records go last.
    pub fn destroy(&mut self, cx: &mut Cx<'_>) {
        if self.record.destroying {
            return;
        }
        self.edit(cx, |record| record.destroying = true);
        self.edit_disk(cx, |disk| disk.lose(self.record.id));
        self.end(cx, None, true);
    }

    pub(super) fn advance_destroy(&mut self, cx: &mut Cx<'_>, mut pipeline: Pipeline) -> bool {
        let begin = |hook: &'static dyn AllocHook| match hook.destroy(self, cx) {
            HookStart::Failed(failure) => HookStart::Failed(of_hook(hook, failure)),
            start @ (HookStart::Done | HookStart::Working(_) | HookStart::Waiting) => start,
        };
        self.phase = match pipeline.advance(DESTROY, begin) {
            Progress::Pending => {
                self.phase = Phase::Destroying(pipeline);
                return false;
            }
            Progress::Finished(errors) if errors.is_empty() => {
                cx.shared.destroys.leave(self.record.id);
                self.forget(cx);
                Phase::Destroyed
            }
            Progress::Finished(errors) => {
                self.destroy_errors = errors;
                self.destroy_later(cx)
            }
            // Errors are collected, so this does not happen.
            Progress::Failed(hook, failure) => {
                self.destroy_errors = vec![of_hook(hook, failure).message];
                self.destroy_later(cx)
            }
        };
        true
    }

    fn destroy_later(&self, cx: &mut Cx<'_>) -> Phase {
        cx.shared.destroys.leave(self.record.id);
        Phase::DestroyPause(cx.now.at + cx.jittered(DESTROY_PAUSE))
    }

    /// What could not be garbage-collected the last time, and why: for each hook that failed.
    pub fn destroy_errors(&self) -> &[String] {
        &self.destroy_errors
    }

    fn forget(&self, cx: &mut Cx<'_>) {
        for task in &self.tasks {
            cx.forget(Key::Task(self.record.id, task.spec().key.task.clone()));
        }
        cx.forget(Key::Alloc(self.record.id));
        cx.shared.broadcasts.close(self.record.id);
        cx.next_index_without_a_record();
    }
}

/// The work of the hook at which the table stands is over. Returns whether anybody awaited that.
pub(super) fn answered(
    pipeline: &mut Pipeline,
    op: Op,
    result: Result<HookOutput, Failure>,
) -> bool {
    let Some(hook) = pipeline.current(DESTROY) else {
        return false;
    };
    let result = result.map(|_| ());
    pipeline.answer(op, result.map_err(|failure| of_hook(hook, failure)))
}

fn of_hook(hook: &dyn AllocHook, failure: Failure) -> Failure {
    Failure {
        message: format!("{}: {}", hook.name(), failure.message),
        ..failure
    }
}
