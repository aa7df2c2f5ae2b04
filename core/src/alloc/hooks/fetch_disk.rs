//! `migrate_disk`, from another node: what the allocation there left on its disk. [`crate::alloc::remote`] says
//! what holds.

use super::AllocHook;
use crate::alloc::remote::{self, Asking, DISK_TRIES};
use crate::alloc::runner::AllocRunner;
use crate::config::Timeouts;
use crate::cx::Cx;
use crate::hooks::{HookOutcome, HookStart};
use crate::input::HookOutput;
use crate::model::remote::Remote;
use crate::op::Failure;
use crate::store::disk::Disk;
use crate::time::Span;
use crate::work;

/// The hook.
pub struct FetchDisk;

impl AllocHook for FetchDisk {
    fn name(&self) -> &'static str {
        "migrate_disk"
    }

    fn timeout(&self, timeouts: &Timeouts) -> Span {
        timeouts.disk
    }

    fn prerun(&self, alloc: &AllocRunner, asking: &mut Asking, cx: &mut Cx<'_>) -> HookStart {
        let Some(previous) = remote::previous(alloc, cx).cloned() else {
            return asking.not_needed();
        };
        if !remote::fetches_disk(alloc) {
            // It goes on without. What it writes is newer, should a later version want a disk.
            alloc.edit_disk(cx, |disk| disk.elsewhere = None);
            return asking.not_needed();
        }
        if !asking.is_due(cx.now.at) {
            return HookStart::Waiting;
        }
        asking.asked(cx.now.at);
        let tasks = alloc.task_names();
        alloc.hook_work(cx, self, work::FetchDisk { previous, tasks })
    }

    fn answered(
        &self,
        alloc: &mut AllocRunner,
        asking: &mut Asking,
        cx: &mut Cx<'_>,
        result: Result<HookOutput, Failure>,
    ) -> HookOutcome {
        if alloc.is_ending() {
            return HookOutcome::Over(result.map(|_| ()));
        }
        match result {
            Ok(HookOutput {
                lies_with: Some(further),
                ..
            }) if remote::asks_further(alloc, cx, &further) => return HookOutcome::FromStart,
            Ok(output) if output.remote == Some(Remote::Unknown) => {
                let why = match output.message.as_str() {
                    "" => "its node does not offer it",
                    why => why,
                };
                remote::go_on_without(alloc, asking, cx, why);
            }
            Ok(output) => {
                if !output.message.is_empty() {
                    alloc.notify_tasks(cx, &output.message);
                }
                asking.over();
                alloc.edit_disk(cx, |disk| disk.elsewhere = None);
            }
            Err(failure) if !failure.recoverable => return HookOutcome::Over(Err(failure)),
            Err(failure) if asking.failures + 1 < DISK_TRIES => {
                asking.failures += 1;
                asking.failed(cx, failure.message);
                return HookOutcome::Again;
            }
            Err(failure) => remote::go_on_without(alloc, asking, cx, &failure.message),
        }
        HookOutcome::Over(Ok(()))
    }

    fn words(&self, alloc: &AllocRunner, asking: &Asking, disk: Option<&Disk>) -> Option<String> {
        let of = remote::name(disk?.elsewhere_of(alloc.record().id)?);
        Some(asking.words(format!("Migrating the disk of {of}")))
    }
}

#[cfg(test)]
#[path = "fetch_disk_tests.rs"]
mod tests;
