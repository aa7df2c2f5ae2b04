//! The hooks that concern another node: the end of an allocation there, and its disk.
//! [`crate::alloc::remote`] says what holds.

use super::{AllocHook, AllocRunner, PRERUN, Phase};
use crate::alloc::remote::DISK_TRIES;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::input::HookOutput;
use crate::model::event::{EventType, TaskEvent};
use crate::model::remote::{Remote, RemotePrevious};
use crate::op::{Failure, Op};
use crate::store::disk::Disk;
use crate::time::Instant;
use crate::work::AskRemote;
use crate::work::FetchDisk;

/// What follows from another node's answer.
enum HookOutcome {
    /// The hook is over, so or so.
    Done(Result<(), Failure>),
    /// It is asked again.
    Again,
}

impl AllocRunner {
    pub(super) fn begin_remote(&mut self, cx: &mut Cx<'_>, hook: AllocHook) -> HookStart {
        let Some(previous) = self.elsewhere(cx).cloned() else {
            return HookStart::Done;
        };
        let work = match hook {
            AllocHook::FetchDisk if self.fetches_disk() => FetchDisk {
                previous,
                tasks: self.task_names(),
            }
            .into(),
            AllocHook::AwaitRemote if !previous.ended => AskRemote {
                previous,
                index: self.asking.index,
            }
            .into(),
            AllocHook::FetchDisk => {
                // It goes on without. What it writes is newer, should a later version want a disk.
                self.edit_disk(cx, |disk| disk.elsewhere = None);
                return HookStart::Done;
            }
            AllocHook::AwaitRemote
            | AllocHook::AwaitClaims
            | AllocHook::AllocDir
            | AllocHook::MigrateDisk => return HookStart::Done,
        };
        if !self.asking.is_due(cx.now.at) {
            return HookStart::Waiting;
        }
        self.asking.asked(cx.now.at);
        self.hook_work(cx, hook, work)
    }

    /// The previous allocation on another node, if this one is to await it and to fetch its disk.
    fn elsewhere<'a>(&self, cx: &'a Cx<'_>) -> Option<&'a RemotePrevious> {
        let disk = cx.shared.disks.get(&self.record.slot())?;
        disk.elsewhere_of(self.record.id)
    }

    /// Changes what is known of the disk of its slot.
    pub(super) fn edit_disk(&self, cx: &mut Cx<'_>, change: impl FnOnce(&mut Disk)) {
        cx.edit_disk(&self.record.slot(), change);
    }

    /// Whether what was on a disk elsewhere shall be on this one.
    fn fetches_disk(&self) -> bool {
        let group = self.job.group(self.record.group.as_str());
        let disk = group.and_then(|group| group.ephemeral_disk);
        disk.is_some_and(|disk| disk.migrate)
    }

    /// When another node is asked again, if nobody is being asked.
    pub fn asks_again_at(&self) -> Option<Instant> {
        let Phase::Prerun(pipeline) = &self.phase else {
            return None;
        };
        let asks = matches!(
            pipeline.current(PRERUN),
            Some(AllocHook::AwaitRemote | AllocHook::FetchDisk)
        );
        self.asking
            .not_before
            .filter(|_| asks && pipeline.awaited().is_none())
    }

    /// The work of a hook of its setup is over. Returns whether anybody awaited that.
    pub(super) fn set_up(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        result: Result<HookOutput, Failure>,
    ) -> bool {
        let Phase::Prerun(pipeline) = &self.phase else {
            return false;
        };
        if pipeline.awaited() != Some(op) {
            return false;
        }
        let wanted = self.kill.is_none();
        let hook_outcome = match pipeline.current(PRERUN) {
            Some(AllocHook::AwaitRemote) if wanted => self.on_remote_answer(cx, result),
            Some(AllocHook::FetchDisk) if wanted => self.disk_came(cx, result),
            Some(AllocHook::MigrateDisk) if result.is_ok() => {
                // Before any task runs: a disk is taken over once.
                self.edit_disk(cx, |disk| disk.moved_to(self.record.id));
                HookOutcome::Done(Ok(()))
            }
            Some(
                AllocHook::AwaitClaims
                | AllocHook::AwaitRemote
                | AllocHook::AllocDir
                | AllocHook::MigrateDisk
                | AllocHook::FetchDisk,
            )
            | None => HookOutcome::Done(result.map(|_| ())),
        };
        let Phase::Prerun(pipeline) = &mut self.phase else {
            return false;
        };
        match hook_outcome {
            HookOutcome::Done(result) => pipeline.answer(op, result),
            HookOutcome::Again => pipeline.again(op),
        }
    }

    fn on_remote_answer(
        &mut self,
        cx: &mut Cx<'_>,
        result: Result<HookOutput, Failure>,
    ) -> HookOutcome {
        match result.map(|output| output.remote) {
            Ok(Some(Remote::Ended)) => {
                self.asking.over();
                self.edit_disk(cx, |disk| {
                    if let Some(elsewhere) = &mut disk.elsewhere {
                        elsewhere.previous.ended = true;
                    }
                });
                HookOutcome::Done(Ok(()))
            }
            Ok(Some(Remote::Unknown)) => {
                self.without_remote(cx, "its node knows nothing of it");
                HookOutcome::Done(Ok(()))
            }
            Ok(Some(Remote::Runs { index })) => {
                self.asking.runs(index);
                HookOutcome::Again
            }
            Ok(None) => {
                self.asking.failed(cx, "the answer is empty".to_owned());
                HookOutcome::Again
            }
            Err(failure) if failure.recoverable => {
                self.asking.failed(cx, failure.message);
                HookOutcome::Again
            }
            Err(failure) => HookOutcome::Done(Err(failure)),
        }
    }

    fn disk_came(&mut self, cx: &mut Cx<'_>, result: Result<HookOutput, Failure>) -> HookOutcome {
        match result {
            Ok(output) if output.remote == Some(Remote::Unknown) => {
                self.without_remote(cx, "its node does not offer it");
            }
            Ok(output) => {
                if !output.message.is_empty() {
                    self.notify_tasks(cx, &output.message);
                }
                self.asking.over();
                self.edit_disk(cx, |disk| disk.elsewhere = None);
            }
            Err(failure) if !failure.recoverable => return HookOutcome::Done(Err(failure)),
            Err(failure) if self.asking.failures + 1 < DISK_TRIES => {
                self.asking.failures += 1;
                self.asking.failed(cx, failure.message);
                return HookOutcome::Again;
            }
            Err(failure) => self.without_remote(cx, &failure.message),
        }
        HookOutcome::Done(Ok(()))
    }

    /// It goes on without what the other node has.
    fn without_remote(&mut self, cx: &mut Cx<'_>, why: &str) {
        self.asking.over();
        let Some(previous) = self.elsewhere(cx).cloned() else {
            return;
        };
        self.edit_disk(cx, |disk| disk.elsewhere = None);
        if self.fetches_disk() {
            let of = of(&previous);
            let words = format!("Did not migrate the disk of {of}: {why}. The disk begins empty");
            self.notify_tasks(cx, &words);
        }
    }

    fn notify_tasks(&mut self, cx: &mut Cx<'_>, words: &str) {
        let words: String = words.chars().take(MAX_WORDS).collect();
        for task in &mut self.tasks {
            let event = TaskEvent::new(EventType::HookMessage, cx.now.wall, &words);
            task.push(cx, event.detail("message", &words));
        }
    }

    /// What is awaited of another node, in words.
    pub(super) fn waits_for_remote(&self, hook: AllocHook, disk: Option<&Disk>) -> Option<String> {
        let of = of(disk?.elsewhere_of(self.record.id)?);
        let doing = match hook {
            AllocHook::AwaitRemote => format!("Waiting for {of} to end"),
            AllocHook::FetchDisk => format!("Migrating the disk of {of}"),
            AllocHook::AwaitClaims | AllocHook::AllocDir | AllocHook::MigrateDisk => {
                return None;
            }
        };
        Some(match &self.asking.last_error {
            Some(why) => format!("{doing}; the last attempt failed: {why}"),
            None => doing,
        })
    }
}

/// The longest message that people are told, in letters.
const MAX_WORDS: usize = 500;

fn of(remote: &RemotePrevious) -> String {
    let (id, address) = (remote.alloc.short(), &remote.address);
    format!("allocation {id} at {address}")
}
