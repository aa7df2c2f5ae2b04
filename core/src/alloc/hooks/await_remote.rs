//! `await_previous_allocations`, on another node: the end of the allocation there that this one replaces.
//! [`crate::alloc::remote`] says what holds.

use super::{AllocHook, Holders};
use crate::alloc::remote::{self, Asking};
use crate::alloc::runner::AllocRunner;
use crate::cx::Cx;
use crate::hooks::{HookOutcome, HookStart};
use crate::input::HookOutput;
use crate::model::remote::Remote;
use crate::op::Failure;
use crate::store::disk::Disk;
use crate::work::AskRemote;

/// The hook.
pub struct AwaitRemote;

impl AllocHook for AwaitRemote {
    fn name(&self) -> &'static str {
        "await_previous_allocations"
    }

    fn only_asks(&self) -> bool {
        true
    }

    fn awaits_claims(&self) -> Option<Holders> {
        Some(Holders::Elsewhere)
    }

    fn prerun(&self, alloc: &AllocRunner, asking: &mut Asking, cx: &mut Cx<'_>) -> HookStart {
        let previous = remote::previous(alloc, cx).filter(|previous| !previous.ended);
        let Some(previous) = previous.cloned() else {
            return asking.not_needed();
        };
        if !asking.is_due(cx.now.at) {
            return HookStart::Waiting;
        }
        asking.asked(cx.now.at);
        let index = asking.index;
        alloc.hook_work(cx, self, AskRemote { previous, index })
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
        match result.map(|output| output.remote) {
            Ok(Some(Remote::Ended)) => {
                asking.over();
                alloc.edit_disk(cx, |disk| {
                    if let Some(elsewhere) = &mut disk.elsewhere {
                        elsewhere.previous.ended = true;
                    }
                });
                HookOutcome::Over(Ok(()))
            }
            Ok(Some(Remote::Unknown)) => {
                let why = remote::previous(alloc, cx).map_or("", remote::unknown);
                remote::go_on_without(alloc, asking, cx, why);
                HookOutcome::Over(Ok(()))
            }
            Ok(Some(Remote::Runs { index })) => {
                asking.runs(index);
                HookOutcome::Again
            }
            Ok(None) => {
                asking.failed(cx, "the answer is empty".to_owned());
                HookOutcome::Again
            }
            Err(failure) if failure.recoverable => {
                asking.failed(cx, failure.message);
                HookOutcome::Again
            }
            Err(failure) => HookOutcome::Over(Err(failure)),
        }
    }

    fn words(&self, alloc: &AllocRunner, asking: &Asking, disk: Option<&Disk>) -> Option<String> {
        let of = remote::name(disk?.elsewhere_of(alloc.record().id)?);
        Some(asking.words(format!("Waiting for {of} to end")))
    }
}

#[cfg(test)]
#[path = "await_remote_tests.rs"]
mod tests;
