//! Removing an allocation that ended: its directory, then its records. It also works for an
//! allocation that never ran.

use super::setup::AllocHook;
use super::{AllocRunner, Phase};
use crate::cx::Cx;
use crate::hooks::{HookStart, Pipeline, Progress};
use crate::store::Key;
use crate::time::Span;
use crate::work::RemoveAllocDir;

const DESTROY_PAUSE: Span = Span::secs(30);

/// What happens when the allocation is garbage-collected, in order.
pub const DESTROY: &[AllocHook] = &[AllocHook::AllocDir];

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
        let progress = pipeline.advance(DESTROY, |hook| match hook {
            AllocHook::AllocDir => self.hook_work(cx, hook, RemoveAllocDir.into()),
            AllocHook::AwaitClaims
            | AllocHook::AwaitRemote
            | AllocHook::MigrateDisk
            | AllocHook::FetchDisk => HookStart::Done,
        });
        self.phase = match progress {
            Progress::Pending => {
                self.phase = Phase::Destroying(pipeline);
                return false;
            }
            Progress::Finished(errors) if errors.is_empty() => {
                cx.shared.destroys.leave(self.record.id);
                self.forget(cx);
                Phase::Destroyed
            }
            Progress::Finished(_) | Progress::Failed(..) => {
                cx.shared.destroys.leave(self.record.id);
                Phase::DestroyPause(cx.now.at + cx.jittered(DESTROY_PAUSE))
            }
        };
        true
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
