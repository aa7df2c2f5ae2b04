//! Removing an allocation that ended: its directory, then its records. It also works for an
//! allocation that never ran.

use super::{AllocRunner, Phase};
use crate::alloc::hooks::DESTROY;
use crate::cx::Cx;
use crate::hooks::{Pipeline, Progress};
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
        self.phase = match pipeline.advance(DESTROY, |hook| hook.destroy(self, cx)) {
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
