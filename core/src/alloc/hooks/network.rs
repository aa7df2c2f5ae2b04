//! `network`: the network of the allocation's own, made before any task of it starts.
//!
//! The address of a network that plugins of CNI make is theirs to choose, and is kept when it is made.
//!
//! What is made bears the allocation's id, and what it is made of (the address behind the bridge, the ports)
//! stands in its record before; so after a crash it is found or made again, with the same address. After a restart
//! of the agent the hook runs again, also for tasks that run, and what is there stays as it is. What ends it is in
//! `alloc/runner/network.rs`: it goes when nothing of the allocation is alive, so that others get what it holds. When
//! the allocation is garbage-collected, that is awaited; one that resists keeps nothing else of it from going, and its
//! record stays until the network is gone.

use std::sync::Arc;

use super::{AllocHook, HookOutcome};
use crate::alloc::remote::Asking;
use crate::alloc::runner::AllocRunner;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::input::HookOutput;
use crate::op::Failure;
use crate::store::disk::Disk;

/// The hook.
pub struct NetworkHook;

impl AllocHook for NetworkHook {
    fn name(&self) -> &'static str {
        "network"
    }

    fn prerun(&self, alloc: &AllocRunner, _: &mut Asking, cx: &mut Cx<'_>) -> HookStart {
        match alloc.network_to_build(cx.config) {
            Some(work) => alloc.hook_work(cx, self, Arc::new(work)),
            None => HookStart::Done,
        }
    }

    fn answered(
        &self,
        alloc: &mut AllocRunner,
        _: &mut Asking,
        cx: &mut Cx<'_>,
        result: Result<HookOutput, Failure>,
    ) -> HookOutcome {
        let made = result.map(|output| alloc.network_made(cx, output.network.map(|it| *it)));
        HookOutcome::Over(made)
    }

    fn destroy(&self, alloc: &AllocRunner, _: &mut Cx<'_>) -> HookStart {
        alloc.network_is_gone()
    }

    fn words(&self, _: &AllocRunner, _: &Asking, _: Option<&Disk>) -> Option<String> {
        Some("Making its network".to_owned())
    }
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
