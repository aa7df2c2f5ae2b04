//! Hooks of allocations: what is done before the tasks start, and when the allocation is garbage-collected. One
//! file each: its name, how long its work may take, what it asks of the world (`prerun` and `destroy`, with a
//! payload of [`crate::work`]), and what it makes of the answer (`answered`).
//!
//! The tables say which hooks run when, and in which order; [`crate::hooks`] walks through a table. Each hook runs
//! once before the tasks, and again where a restart of the agent came before their first start: what was done
//! already is found done.

pub mod alloc_dir;
pub mod await_claims;
pub mod await_remote;
pub mod disk_quota;
pub mod fetch_disk;
pub mod migrate_disk;
pub mod network;

use super::remote::Asking;
use super::runner::AllocRunner;
use crate::config::Timeouts;
use crate::cx::Cx;
use crate::hooks::{HookOutcome, HookStart};
use crate::input::HookOutput;
use crate::op::Failure;
use crate::operations::Purpose;
use crate::store::disk::Disk;
use crate::time::Span;

/// What happens before the tasks, in order.
pub const PRERUN: &[&dyn AllocHook] = &[
    &await_claims::AwaitClaims,
    &await_remote::AwaitRemote,
    &network::NetworkHook,
    &alloc_dir::AllocDir,
    &migrate_disk::MigrateDisk,
    &fetch_disk::FetchDisk,
    &disk_quota::DiskQuota,
];

/// What happens when the allocation is garbage-collected, in order. It also works for one that never ran. One that
/// fails keeps none of the others from its turn.
pub const DESTROY: &[&dyn AllocHook] = &[&network::NetworkHook, &alloc_dir::AllocDir];

/// Where those are who hold what a hook awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holders {
    /// On this node.
    Here,
    /// On another node.
    Elsewhere,
}

/// A hook of an allocation.
pub trait AllocHook: Sync {
    /// The name that events and metrics carry.
    fn name(&self) -> &'static str;

    /// What its work is for.
    fn purpose(&self) -> Purpose {
        Purpose::Hook
    }

    /// How long its work may take.
    fn timeout(&self, timeouts: &Timeouts) -> Span {
        timeouts.hook
    }

    /// Whether its work is a question, which leaves nothing behind. All other work is asked for when the
    /// allocation is saved: a directory of one that a crash made unknown would stay for ever.
    fn only_asks(&self) -> bool {
        false
    }

    /// Who holds what it awaits, if it awaits claims.
    fn awaits_claims(&self) -> Option<Holders> {
        None
    }

    /// Begins it before the tasks: asks the world for its work, or says that there is none.
    fn prerun(&self, _: &AllocRunner, _: &mut Asking, _: &mut Cx<'_>) -> HookStart {
        HookStart::Done
    }

    /// Its work before the tasks is over.
    fn answered(
        &self,
        _: &mut AllocRunner,
        _: &mut Asking,
        _: &mut Cx<'_>,
        result: Result<HookOutput, Failure>,
    ) -> HookOutcome {
        HookOutcome::Over(result.map(|_| ()))
    }

    /// What it does or awaits before the tasks, in words; nothing where that is said of the claims.
    fn words(&self, _: &AllocRunner, _: &Asking, _: Option<&Disk>) -> Option<String> {
        None
    }

    /// Begins it when the allocation is garbage-collected.
    fn destroy(&self, _: &AllocRunner, _: &mut Cx<'_>) -> HookStart {
        HookStart::Done
    }
}
