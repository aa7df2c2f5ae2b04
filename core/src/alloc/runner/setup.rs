//! Before the tasks start: the end of what this allocation replaces or preempts, its directory, and
//! the disks that it takes over.
//!
//! **Waiting.** An allocation waits for the end of what it replaces and of all that it preempts
//! (`AllocRecord::awaited`). It learns of the end through the broadcaster, and can be stopped while
//! it waits; `alloc status` shows for whom it waits.
//!
//! **Sticky disks.** When an allocation of a group with a sticky disk is placed, its record names
//! the allocations whose disks it takes over (`inherits`): the one that it replaces, and those that
//! this one was to take over and did not. After the wait, and with its own directory made, one hook
//! takes over `alloc/data` and each task's `local` from the nearest that has any, by renaming
//! (`io-real/src/dirs/inherit.rs`). The list is emptied when that succeeded, in the commit before
//! anything starts; until then none of them is removed.
//!
//! - A kill in the middle does no harm: what moved stays moved, and the rest moves when the hook
//!   runs again.
//! - If a disk cannot be moved, the allocation fails and its replacement tries again. Nomad starts
//!   the task with an empty disk.
//! - An allocation that failed halfway, or whose move ended after it was given up, has some of the
//!   disk or all of it. So each part is looked for from the nearest allocation on, both to take it
//!   over and to give it to another node.
//! - The report that a move succeeded counts even when it comes after the deadline: the list is
//!   emptied then too. It is the only late answer that is not stale.
//! - An allocation that failed without any part of the disk is removed before the disk that it was
//!   to get.
//! - What a person purges is nobody's.

use serde::{Deserialize, Serialize};

use super::{AllocRunner, Phase};
use crate::broadcast::{AllocNews, Heard};
use crate::config::Patience;
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect};
use crate::hooks::{HookStart, OnError, Pipeline, Progress};
use crate::ids::{AllocId, TaskName};
use crate::model::event::{EventType, TaskEvent};
use crate::op::Failure;
use crate::time::Span;
use crate::work::{BuildAllocDir, HookWork, InheritDisk};

/// The hooks of an allocation, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AllocHook {
    /// The allocation's directory.
    AllocDir,
    /// The end of the allocation that this one replaces, and of those that it preempts.
    AwaitPrevious,
    /// The end of an allocation of another node that it replaces.
    AwaitRemote,
    /// What those before it left on their disks.
    MigrateDisk,
    /// What an allocation of another node left on its disk.
    FetchDisk,
}

/// What happens before the tasks, in order.
pub const PRERUN: &[AllocHook] = &[
    AllocHook::AwaitPrevious,
    AllocHook::AwaitRemote,
    AllocHook::AllocDir,
    AllocHook::MigrateDisk,
    AllocHook::FetchDisk,
];

impl AllocHook {
    /// The name that events and metrics carry.
    pub fn name(self) -> &'static str {
        match self {
            AllocHook::AllocDir => "alloc_dir",
            AllocHook::AwaitPrevious | AllocHook::AwaitRemote => "await_previous_allocations",
            AllocHook::MigrateDisk | AllocHook::FetchDisk => "migrate_disk",
        }
    }

    /// How long its work may take.
    pub(super) fn patience(self, patience: &Patience) -> Span {
        match self {
            AllocHook::FetchDisk => patience.disk,
            AllocHook::AllocDir
            | AllocHook::AwaitPrevious
            | AllocHook::AwaitRemote
            | AllocHook::MigrateDisk => patience.hook,
        }
    }
}

impl AllocRunner {
    pub(super) fn advance_prerun(&mut self, cx: &mut Cx<'_>, mut pipeline: Pipeline) -> bool {
        if self.kill.is_some() || self.record.is_terminal() {
            return self.abandon_prerun(cx, &pipeline);
        }
        match pipeline.advance(PRERUN, |hook| self.begin_prerun(cx, hook)) {
            Progress::Pending => {
                self.phase = Phase::Prerun(pipeline);
                false
            }
            Progress::Finished(_) => {
                self.phase = Phase::Tasks;
                true
            }
            Progress::Failed(hook, failure) => {
                self.setup_failed(cx, hook, &failure);
                self.phase = Phase::Tasks;
                true
            }
        }
    }

    /// What is done or awaited before its tasks have their turn, in words; nothing afterwards.
    pub fn waits_for(&self) -> Option<String> {
        let Phase::Prerun(pipeline) = &self.phase else {
            return None;
        };
        let of = |id: Option<AllocId>| id.map(|id| id.short().to_string()).unwrap_or_default();
        let hook = pipeline.current(PRERUN)?;
        Some(match hook {
            AllocHook::AwaitPrevious => {
                let awaited: Vec<_> = self.record.awaited().collect();
                let many = if awaited.len() == 1 { "" } else { "s" };
                let names: Vec<_> = awaited.iter().map(|id| id.short().to_string()).collect();
                format!("Waiting for allocation{many} {} to end", names.join(", "))
            }
            AllocHook::AllocDir => "Making its directory".to_owned(),
            AllocHook::MigrateDisk => {
                let nearest = of(self.record.inherits.first().copied());
                format!("Taking over the disk of allocation {nearest}")
            }
            AllocHook::AwaitRemote | AllocHook::FetchDisk => self.waits_for_remote(hook)?,
        })
    }

    /// Whether it waits for what others still hold.
    pub fn awaits_claims(&self) -> bool {
        let Phase::Prerun(pipeline) = &self.phase else {
            return false;
        };
        pipeline.current(PRERUN) == Some(AllocHook::AwaitPrevious)
    }

    fn begin_prerun(&mut self, cx: &mut Cx<'_>, hook: AllocHook) -> HookStart {
        match hook {
            AllocHook::AllocDir => self.hook_work(cx, hook, BuildAllocDir.into()),
            AllocHook::AwaitPrevious => {
                // Of several the first that lives is listened to, and then the next.
                let mut awaited = self.record.awaited();
                match awaited.all(|id| is_over(cx, id, self.record.id)) {
                    true => HookStart::Done,
                    false => HookStart::Waiting,
                }
            }
            AllocHook::MigrateDisk if self.record.inherits.is_empty() => HookStart::Done,
            AllocHook::MigrateDisk => {
                let work = InheritDisk {
                    from: self.record.inherits.clone(),
                    tasks: self.task_names(),
                };
                self.hook_work(cx, hook, work.into())
            }
            AllocHook::AwaitRemote | AllocHook::FetchDisk => self.begin_remote(cx, hook),
        }
    }

    pub(super) fn task_names(&self) -> Vec<TaskName> {
        let names = self.tasks.iter().map(|task| task.spec().key.task.clone());
        names.collect()
    }

    pub(super) fn hook_work(&self, cx: &mut Cx<'_>, hook: AllocHook, work: HookWork) -> HookStart {
        let awaited = cx.awaited(hook.patience(&cx.config.patience));
        let (op, alloc) = (awaited.op, self.record.id);
        let effect = Effect::Hook(HookEffect::Run {
            op,
            alloc,
            task: None,
            work,
        });
        match hook {
            // A question leaves nothing behind.
            AllocHook::AwaitRemote => cx.send(effect),
            // A directory of an allocation that a crash made unknown would stay for ever.
            AllocHook::AllocDir
            | AllocHook::AwaitPrevious
            | AllocHook::MigrateDisk
            | AllocHook::FetchDisk => cx.send_after_save(effect),
        }
        HookStart::Working(awaited)
    }

    fn setup_failed(&mut self, cx: &mut Cx<'_>, hook: AllocHook, failure: &Failure) {
        let why = format!(
            "failed to setup alloc: {}: {}",
            hook.name(),
            failure.message
        );
        for task in &mut self.tasks {
            let event = TaskEvent::new(EventType::SetupFailure, cx.now.wall, &why)
                .detail("setup_error", &why)
                .fails_task();
            task.push(cx, event);
        }
        self.end(cx, Some(why), true);
    }

    /// Whether it takes over a disk.
    pub(super) fn moves_disk(&self) -> bool {
        let Phase::Prerun(pipeline) = &self.phase else {
            return false;
        };
        pipeline.current(PRERUN) == Some(AllocHook::MigrateDisk)
    }

    /// The disk came when nobody waited for it any more. It is here, and nowhere else: those that
    /// had it before are not kept for it, and this one goes no earlier than they.
    pub(super) fn has_disk_after_all(&mut self, cx: &mut Cx<'_>) {
        if matches!(self.phase, Phase::Tasks | Phase::Finished) {
            self.keep_disk(cx, |record| record.inherits.clear());
        }
    }

    /// What is being set up is not wanted any more. What was not even asked for is taken back.
    pub(super) fn cancel_prerun(&mut self, cx: &mut Cx<'_>) {
        let Phase::Prerun(pipeline) = &self.phase else {
            return;
        };
        let Some(awaited) = pipeline.awaited() else {
            return;
        };
        if cx.shared.ledger.withdraw(awaited.op) {
            self.phase = Phase::Prerun(Pipeline::new(OnError::Stop));
        } else {
            cx.send(Effect::Hook(HookEffect::Cancel { op: awaited.op }));
        }
    }

    /// What was to be set up is not wanted any more. An answer that is under way is awaited, so
    /// that nothing is made after it was cleaned away.
    fn abandon_prerun(&mut self, cx: &mut Cx<'_>, pipeline: &Pipeline) -> bool {
        for awaited in self.record.awaited() {
            cx.shared.broadcasts.leave(awaited, self.record.id);
        }
        if pipeline.awaited().is_some() {
            return false;
        }
        if self.never_ran() {
            // Nothing ran that something should come after, and there is no directory for it.
            self.end(cx, None, true);
        } else if self.kill.is_none() {
            self.stop(cx);
        }
        self.phase = Phase::Tasks;
        true
    }
}

/// Whether nothing of `awaited` can be alive. As long as it may be, `listener` hears of it.
fn is_over(cx: &mut Cx<'_>, awaited: AllocId, listener: AllocId) -> bool {
    let over = match cx.shared.broadcasts.listen(awaited, listener) {
        Heard::New(AllocNews { finished, .. }) => *finished,
        Heard::Nothing => false,
        Heard::Closed => true,
    };
    if over {
        cx.shared.broadcasts.leave(awaited, listener);
    }
    over
}
