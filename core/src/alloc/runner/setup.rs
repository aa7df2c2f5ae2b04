//! Before the tasks start: its claims, its directory, and the disks that it takes over.
//!
//! **Waiting.** An allocation waits until all its claims are granted ([`crate::claims`] has the rule,
//! `agent/granting.rs` applies it). It can be stopped while it waits; `alloc status` shows for what and
//! for whom it waits.
//!
//! **Sticky disks.** The record of the slot's disk ([`crate::store::disk`]) says from which allocations it moves
//! here. After the wait, and with its own directory made, one hook takes over `alloc/data` and each task's `local`
//! from the nearest that has any, by renaming (`io-real/src/dirs/inherit.rs`). That it moved is remembered in the
//! commit before anything starts; until then none of them is removed.
//!
//! - A kill in the middle does no harm: what moved stays moved, and the rest moves when the hook
//!   runs again.
//! - If a disk cannot be moved, the allocation fails and its replacement tries again. Nomad starts
//!   the task with an empty disk.
//! - The report that a move succeeded counts even when it comes after the deadline. It is the only late answer
//!   that is not stale.

use serde::{Deserialize, Serialize};

use super::{AllocRunner, Phase};
use crate::config::Timeouts;
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect};
use crate::hooks::{HookStart, OnError, Pipeline, Progress};
use crate::ids::{AllocId, TaskName};
use crate::model::event::{EventType, TaskEvent};
use crate::op::Failure;
use crate::operations::{Owner, Purpose};
use crate::store::disk::Disk;
use crate::time::Span;
use crate::work::{BuildAllocDir, HookWork, InheritDisk};

/// The hooks of an allocation, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AllocHook {
    /// The allocation's directory.
    AllocDir,
    /// What it claims and others of this node hold.
    AwaitClaims,
    /// Its slot, if the allocation that holds it is on another node.
    AwaitRemote,
    /// What those before it left on their disks.
    MigrateDisk,
    /// What an allocation of another node left on its disk.
    FetchDisk,
}

/// What happens before the tasks, in order.
pub const PRERUN: &[AllocHook] = &[
    AllocHook::AwaitClaims,
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
            AllocHook::AwaitClaims | AllocHook::AwaitRemote => "await_previous_allocations",
            AllocHook::MigrateDisk | AllocHook::FetchDisk => "migrate_disk",
        }
    }

    /// What its work is for.
    fn purpose(self) -> Purpose {
        match self {
            AllocHook::MigrateDisk => Purpose::MoveDisk,
            AllocHook::AllocDir
            | AllocHook::AwaitClaims
            | AllocHook::AwaitRemote
            | AllocHook::FetchDisk => Purpose::Hook,
        }
    }

    /// How long its work may take.
    fn time_limit(self, timeouts: &Timeouts) -> Span {
        match self {
            AllocHook::FetchDisk => timeouts.disk,
            AllocHook::AllocDir
            | AllocHook::AwaitClaims
            | AllocHook::AwaitRemote
            | AllocHook::MigrateDisk => timeouts.hook,
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

    /// What is done or awaited before its tasks have their turn, in words; nothing afterwards, and not what
    /// others of this node hold.
    pub fn waits_for(&self, disk: Option<&Disk>) -> Option<String> {
        let Phase::Prerun(pipeline) = &self.phase else {
            return None;
        };
        let of = |id: Option<AllocId>| id.map(|id| id.short().to_string()).unwrap_or_default();
        let hook = pipeline.current(PRERUN)?;
        Some(match hook {
            AllocHook::AwaitClaims => return None,
            AllocHook::AllocDir => "Making its directory".to_owned(),
            AllocHook::MigrateDisk => {
                let sources = disk.map(|disk| disk.sources_of(self.record.id));
                let nearest = of(sources.and_then(|sources| sources.first().copied()));
                format!("Migrating the disk of allocation {nearest}")
            }
            AllocHook::AwaitRemote | AllocHook::FetchDisk => self.waits_for_remote(hook, disk)?,
        })
    }

    /// Whether it waits for claims that others of this node hold.
    pub fn awaits_claims(&self) -> bool {
        self.prerun_hook() == Some(AllocHook::AwaitClaims) && !self.has_claims()
    }

    /// Whether it waits for claims, whoever holds them.
    pub fn awaits_any_claim(&self) -> bool {
        self.awaits_claims() || self.prerun_hook() == Some(AllocHook::AwaitRemote)
    }

    /// Whether others of this node hold nothing of what it claims: that was granted once, and whatever ran
    /// in an earlier life of the agent had it.
    pub fn has_claims(&self) -> bool {
        self.granted || !self.never_ran()
    }

    /// What it claims is its own from now on.
    pub fn grant(&mut self) {
        self.granted = true;
    }

    fn prerun_hook(&self) -> Option<AllocHook> {
        match &self.phase {
            Phase::Prerun(pipeline) => pipeline.current(PRERUN),
            Phase::Tasks
            | Phase::Finished
            | Phase::Destroying(_)
            | Phase::DestroyPause(_)
            | Phase::Destroyed => None,
        }
    }

    fn begin_prerun(&mut self, cx: &mut Cx<'_>, hook: AllocHook) -> HookStart {
        match hook {
            AllocHook::AllocDir => self.hook_work(cx, hook, BuildAllocDir.into()),
            AllocHook::AwaitClaims if self.has_claims() => HookStart::Done,
            AllocHook::AwaitClaims => HookStart::Waiting,
            AllocHook::MigrateDisk => {
                let disk = cx.shared.disks.get(&self.record.slot());
                let from = disk.map(|disk| disk.sources_of(self.record.id).to_vec());
                let Some(from) = from.filter(|from| !from.is_empty()) else {
                    return HookStart::Done;
                };
                let tasks = self.task_names();
                self.hook_work(cx, hook, InheritDisk { from, tasks }.into())
            }
            AllocHook::AwaitRemote | AllocHook::FetchDisk => self.begin_remote(cx, hook),
        }
    }

    pub(super) fn task_names(&self) -> Vec<TaskName> {
        let names = self.tasks.iter().map(|task| task.spec().key.task.clone());
        names.collect()
    }

    pub(super) fn hook_work(&self, cx: &mut Cx<'_>, hook: AllocHook, work: HookWork) -> HookStart {
        let alloc = self.record.id;
        let limit = hook.time_limit(&cx.config.timeouts);
        let op = cx.operation(Owner::Alloc(alloc), hook.purpose(), limit);
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
            | AllocHook::AwaitClaims
            | AllocHook::MigrateDisk
            | AllocHook::FetchDisk => cx.send_after_save(effect),
        }
        HookStart::Working(op)
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

    /// What is being set up is not wanted any more. What was not even asked for is taken back.
    pub(super) fn cancel_prerun(&mut self, cx: &mut Cx<'_>) {
        let Phase::Prerun(pipeline) = &self.phase else {
            return;
        };
        let Some(op) = pipeline.awaited() else {
            return;
        };
        if cx.withdraw(op) {
            self.phase = Phase::Prerun(Pipeline::new(OnError::Stop));
        } else {
            cx.send(Effect::Hook(HookEffect::Cancel { op }));
        }
    }

    /// What was to be set up is not wanted any more. An answer that is under way is awaited, so
    /// that nothing is made after it was garbage-collected.
    fn abandon_prerun(&mut self, cx: &mut Cx<'_>, pipeline: &Pipeline) -> bool {
        cx.shared.broadcasts.leave(self.record.id);
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
